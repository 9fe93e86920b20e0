"""A loaded model file."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.catalog.header import GgufHeader
from localspec.engine.llama import log
from localspec.engine.llama.params import model_params, placement_of
from localspec.engine.llama.vocabulary import Vocabulary
from localspec.engine.model import Cancelled
from localspec.engine.values import ContextSettings
from localspec.errors import ModelLoadError


class LlamaModel:
    """Weights and vocabulary of one GGUF."""

    def __init__(
        self,
        header: GgufHeader,
        settings: ContextSettings,
        progress: Callable[[float], bool] | None = None,
    ) -> None:
        """Load the weights.

        Args:
            header: the file's header, read before so that a damaged file never gets here.
            settings: placement (n_gpu_layers, experts_on_cpu, use_mmap).
            progress: called with a fraction from 0 to 1; returning False cancels.

        Raises:
            Cancelled: progress said so.
            ModelLoadError: llama.cpp could not load the file.
        """
        was_cancelled = False

        def on_progress(fraction: float, _user_data: Any) -> bool:
            nonlocal was_cancelled
            was_cancelled = was_cancelled or (progress is not None and not progress(fraction))
            return not was_cancelled

        self._params = model_params(placement_of(settings), use_mmap=settings.use_mmap)
        callback = C.llama_progress_callback(on_progress)
        self._params.value.progress_callback = callback
        mark = log.position()
        self.header = header
        self.name = header.text("general.name") or Path(header.path).stem
        self.handle: Any = self._load(self._params.value)
        if was_cancelled and self.handle:
            self.close()
        if was_cancelled:
            raise Cancelled
        if not self.handle:
            raise ModelLoadError(
                f"llama.cpp could not load {header.path}: {log.last_error(mark) or 'it gave no reason'}",
                "Check that the file is complete and that this llama.cpp knows its architecture "
                f"({header.architecture or 'not stated'}).",
            )
        self.vocabulary = Vocabulary(self.handle)

    def _load(self, params: Any) -> Any:
        paths = [path.encode() for path in self.header.shards]
        if len(paths) > 1:
            array = (ctypes.c_char_p * len(paths))(*paths)
            return C.llama_model_load_from_splits(array, len(paths), params)
        return C.llama_model_load_from_file(self.header.path.encode(), params)

    @property
    def description(self) -> str:
        """llama.cpp's one-line description."""
        buffer = ctypes.create_string_buffer(256)
        C.llama_model_desc(self.handle, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        return int(C.llama_model_size(self.handle))

    @property
    def num_params(self) -> int:
        """Number of weights."""
        return int(C.llama_model_n_params(self.handle))

    @property
    def n_ctx_train(self) -> int:
        """Positions that the model was trained with."""
        return int(C.llama_model_n_ctx_train(self.handle))

    @property
    def can_generate(self) -> bool:
        """Whether it is a plain decoder: no encoder in front, no diffusion."""
        return (
            bool(C.llama_model_has_decoder(self.handle))
            and not C.llama_model_has_encoder(self.handle)
            and not C.llama_model_is_diffusion(self.handle)
        )

    def close(self) -> None:
        """Free the weights; contexts must be closed before."""
        if self.handle:
            C.llama_model_free(self.handle)
            self.handle = None
