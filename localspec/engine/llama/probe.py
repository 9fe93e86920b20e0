"""A model that is opened to be asked for sizes: its header is read, its weights are neither read nor allocated."""

from __future__ import annotations

import ctypes
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.catalog.gguf_walk import printable
from localspec.catalog.header import GgufHeader
from localspec.engine.llama import log
from localspec.engine.llama.params import MAX_OUTPUTS, context_params, probe_params
from localspec.engine.llama.recurrent import MAX_TOUCHED_BYTES, state_bound
from localspec.engine.llama.token_texts import check_texts
from localspec.engine.llama.untouched import untouched_host_memory
from localspec.engine.values import MAX_BATCH, MAX_CTX, MAX_DRAFT_TOKENS, MAX_LAYERS
from localspec.errors import ModelLoadError, UsageError
from localspec.planning.footprint import Placement


@dataclass(frozen=True, slots=True)
class ProbedContext:
    """A context of which nothing but recurrent state and a row of logits is allocated. It can decode nothing."""

    handle: Any
    lines: tuple[str, ...]
    """What was logged while it was made."""

    @property
    def n_ctx(self) -> int:
        """Positions, read back."""
        return int(C.llama_n_ctx(self.handle))

    @property
    def n_rs_seq(self) -> int:
        """Snapshots of recurrent state, read back: 0 where the architecture keeps none."""
        return int(C.llama_n_rs_seq(self.handle))


class ProbedModel:
    """One model with one placement of its layers."""

    def __init__(
        self,
        header: GgufHeader,
        placement: Placement,
        devices: Sequence[int] | None = None,
        *,
        load_mtp: bool = False,
    ) -> None:
        """Open it.

        Args:
            header: of the file or of its copy without a vocabulary.
            placement: n_gpu_layers and experts_on_cpu count.
            devices: ggml's handles of the only devices to place layers on; None leaves the choice to llama.cpp.
            load_mtp: count the heads for multi-token prediction too.

        Raises:
            ModelFileError: two of its tokens have the same text.
            ModelLoadError: llama.cpp refuses it.
        """
        check_texts(header)
        self.header = header
        self.placement = placement
        self.loads_mtp = load_mtp
        self._params = probe_params(placement, devices, load_mtp=load_mtp)
        lines: list[str] = []
        mark = log.position()
        with quietly(lines):
            self.handle: Any = self._open()
        self.lines = tuple(lines)
        """What was logged while it was opened."""
        self.states: dict[int, Counter[str]] = {}
        """Bytes of recurrent state by buffer, by number of snapshots, as far as they are known."""
        if not self.handle:
            raise ModelLoadError(
                f"llama.cpp could not open {printable(header.path)}: {log.last_error(mark) or 'it gave no reason'}",
                "Check that the file is complete and that this llama.cpp knows its architecture "
                f"({printable(header.architecture) or 'not stated'}).",
            )

    def _open(self) -> Any:
        paths = [path.encode() for path in self.header.shards]
        if len(paths) > 1:
            return C.llama_model_load_from_splits(
                (ctypes.c_char_p * len(paths))(*paths), len(paths), self._params.value
            )
        return C.llama_model_load_from_file(paths[0], self._params.value)

    @property
    def n_ctx_train(self) -> int:
        """Positions that the model was trained with."""
        return int(C.llama_model_n_ctx_train(self.handle))

    @property
    def n_vocab(self) -> int:
        """Number of token ids."""
        return int(C.llama_vocab_n_tokens(C.llama_model_get_vocab(self.handle)))

    @property
    def is_recurrent(self) -> bool:
        """Whether its memory is recurrent state and nothing else."""
        return bool(C.llama_model_is_recurrent(self.handle))

    @property
    def is_hybrid(self) -> bool:
        """Whether its memory is recurrent state beside a KV cache."""
        return bool(C.llama_model_is_hybrid(self.handle))

    @property
    def can_generate(self) -> bool:
        """Whether it is a plain decoder: no encoder in front, no diffusion."""
        return (
            bool(C.llama_model_has_decoder(self.handle))
            and not C.llama_model_has_encoder(self.handle)
            and not C.llama_model_is_diffusion(self.handle)
        )

    @contextmanager
    def context(
        self, placement: Placement, *, is_mtp: bool = False, other: Any = None, swa_full: bool = False
    ) -> Iterator[ProbedContext]:
        """Make a context, and free it when the block ends.

        Args:
            placement: of the context; the layers stay where they were placed at opening.
            is_mtp: for the model's heads for multi-token prediction.
            other: the target's context, for a draft that reads it.
            swa_full: give sliding windows the whole length too.

        Raises:
            ModelLoadError: llama.cpp refuses these settings.
        """
        params = context_params(placement)
        params.swa_full = swa_full
        if is_mtp:
            params.ctx_type = C.LLAMA_CONTEXT_TYPE_MTP
        if other is not None:
            params.ctx_other = other
        lines: list[str] = []
        mark = log.position()
        is_large = state_bound(self.header) > MAX_TOUCHED_BYTES
        with quietly(lines), untouched_host_memory() if is_large else nullcontext():
            handle = C.llama_init_from_model(self.handle, params)
        if not handle:
            raise _refused(placement, self.header.path, log.last_error(mark))
        try:
            yield ProbedContext(handle, tuple(lines))
        finally:
            with quietly([]):
                C.llama_free(handle)

    def close(self) -> None:
        """Free it; contexts must be gone. Safe to call twice."""
        if self.handle:
            C.llama_model_free(self.handle)
            self.handle = None


def _refused(placement: Placement, path: str, reason: str) -> ModelLoadError:
    """Return the error for llama.cpp's reason to make no context, with a hint that fits it."""
    if "does not divide" in reason:
        # llama_init_from_model looks at this before anything is measured: such a cache consists of blocks.
        kv = " and ".join(dict.fromkeys((placement.type_k, placement.type_v)))
        message = f"The heads of {printable(path)} have a size that a KV cache of type {kv} cannot hold: {reason}"
        return ModelLoadError(message, "Take f16 for the KV cache, which goes with every model.")
    message = (
        f"llama.cpp would make no context of {placement.n_ctx or 'the trained number of'} tokens for "
        f"{printable(path)}: {reason or 'it gave no reason'}"
    )
    if "flash_attn" in reason:
        return ModelLoadError(message, "Set flash attention on, or take f16 for the V cache.")
    return ModelLoadError(message, "Try a smaller context.")


@contextmanager
def quietly(lines: list[str]) -> Iterator[None]:
    """Collect what llama.cpp logs, and keep all but warnings out of the log file: a plan opens dozens of contexts."""
    level = log.logger.level
    log.logger.setLevel(logging.WARNING)
    try:
        with log.listening(lines.append):
            yield
    finally:
        log.logger.setLevel(level)


def check_placement(placement: Placement) -> None:
    """Refuse numbers that no load may have.

    Raises:
        UsageError: one is out of bounds.
    """
    least = MAX_OUTPUTS
    for name, value, low, high in (
        ("n_ctx", placement.n_ctx, 0, MAX_CTX),
        ("n_batch", placement.n_batch, least, MAX_BATCH),
        ("n_ubatch", placement.n_ubatch, least, placement.n_batch),
        ("n_gpu_layers", placement.n_gpu_layers, -1, MAX_LAYERS),
        ("n_rs_seq", placement.n_rs_seq, 0, MAX_DRAFT_TOKENS),
    ):
        if not low <= value <= high:
            raise UsageError(f"{name} is {value}.", f"It must lie between {low} and {high}.")
