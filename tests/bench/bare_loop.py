"""Plain decoding with llama.cpp's functions and nothing around them: as fast as this build can be from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from time import perf_counter

import llama_cpp.llama_cpp as C

from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.library import start_library
from localspec.engine.llama.loading import load
from localspec.errors import DecodeError
from tests.bench.setting import Setting


class BareLoop:
    """A target with a greedy sampler chain. Raises LocalspecError if it cannot be loaded; must be closed."""

    def __init__(self, setting: Setting) -> None:
        start_library()
        path = str(setting.models.target)
        self._loaded = load(path, setting.context, setting.n_threads, AbortFlag(), lambda _: True)
        self._chain = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
        C.llama_sampler_chain_add(self._chain, C.llama_sampler_init_greedy())

    def decode_tps(self, prompt: Sequence[int], num_tokens: int) -> float:
        """Return tokens per second after the first one; end-of-generation tokens are decoded like others."""
        context = self._loaded.context
        context.clear()
        context.prefill(prompt)
        token = (ctypes.c_int32 * 1)(C.llama_sampler_sample(self._chain, context.handle, -1))
        started = perf_counter()
        for _ in range(num_tokens - 1):
            if C.llama_decode(context.handle, C.llama_batch_get_one(token, 1)) != 0:
                raise DecodeError("llama.cpp refused a step.", "Use fewer tokens.")
            token[0] = C.llama_sampler_sample(self._chain, context.handle, -1)
        return (num_tokens - 1) / (perf_counter() - started)

    def close(self) -> None:
        """Free everything."""
        C.llama_sampler_free(self._chain)
        self._loaded.close()
