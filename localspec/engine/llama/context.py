"""One context with one sequence: the real SequenceModel."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp.llama_cpp as C
import numpy as np
import numpy.typing as npt

from localspec.engine.llama import log
from localspec.engine.llama.abort import AbortFlag
from localspec.engine.llama.context_log import read_log
from localspec.engine.llama.model import LlamaModel
from localspec.engine.llama.params import context_params, placement_of
from localspec.engine.model import Cancelled, Progress
from localspec.engine.values import ContextSettings
from localspec.errors import DecodeError, ModelLoadError

_ABORTED = 2
_NO_SLOT = 1


class LlamaContext:
    """A KV cache over a loaded model, which grows at its end and can be cut back."""

    def __init__(self, model: LlamaModel, settings: ContextSettings, n_threads: int, abort: AbortFlag) -> None:
        """Make the context.

        Args:
            model: stays open while the context lives.
            settings: n_ctx 0 takes the trained context; thread counts 0 take `n_threads`.
            n_threads: physical cores.
            abort: flag that stops a running step.

        Raises:
            ModelLoadError: llama.cpp could not make it, for example for want of memory.
        """
        params = context_params(placement_of(settings))
        params.n_threads = settings.n_threads or n_threads
        params.n_threads_batch = settings.n_threads_batch or params.n_threads
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        mark = log.position()
        self.settings = settings
        self.model = model
        self._abort = abort
        lines: list[str] = []
        with log.listening(lines.append):
            self._handle: Any = C.llama_init_from_model(model.handle, params)
        self.log = read_log(lines)
        """What llama.cpp said of memory."""
        if not self._handle:
            raise ModelLoadError(
                f"llama.cpp could not make a context of {settings.n_ctx or 'the trained number of'} tokens "
                f"for {model.name}: {log.last_error(mark) or 'it gave no reason'}",
                "Try a smaller context (--n-ctx), a smaller KV type, or flash attention (needed for a quantised V).",
            )
        self._memory = C.llama_get_memory(self._handle)
        self._n_ctx = int(C.llama_n_ctx(self._handle))
        self._n_batch = int(C.llama_n_batch(self._handle))
        self._n_swa = int(C.llama_model_n_swa(model.handle))
        self.n_threads = int(params.n_threads)
        self.n_threads_batch = int(params.n_threads_batch)
        self._tokens: list[int] = []
        self._first_row = 0
        self._row_type: Any = ctypes.c_float * self.n_vocab
        self._make_batch()

    def _make_batch(self) -> None:
        # Filled through numpy views: a ctypes store per item costs five times as much.
        self._batch = C.llama_batch_init(self._n_batch, 0, 1)
        size = self._n_batch
        self._batch_tokens = np.ctypeslib.as_array(self._batch.token, (size,))
        self._batch_positions = np.ctypeslib.as_array(self._batch.pos, (size,))
        self._batch_outputs = np.ctypeslib.as_array(self._batch.logits, (size,))
        for index in range(size):
            self._batch.n_seq_id[index] = 1
            self._batch.seq_id[index][0] = 0
        self._positions = np.arange(self._n_ctx, dtype=np.int32)

    @property
    def handle(self) -> Any:
        """llama.cpp's context pointer."""
        return self._handle

    @property
    def n_ctx(self) -> int:
        """Positions, read back from llama.cpp."""
        return self._n_ctx

    @property
    def n_vocab(self) -> int:
        """Number of token ids, padding rows included."""
        return self.model.vocabulary.n_tokens

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens in the cache, in order."""
        return self._tokens

    def decode(self, tokens: Sequence[int], num_logits: int) -> None:
        """Append tokens in one step; see SequenceModel."""
        count, start = len(tokens), len(self._tokens)
        if not 0 < count <= self._n_batch or num_logits > count:
            raise DecodeError(
                f"A step of {count} tokens does not fit a batch of {self._n_batch}.", "Use a larger batch (--n-batch)."
            )
        if start + count > self._n_ctx:
            raise DecodeError(
                f"The context of {self._n_ctx} tokens is full: {start} are used and {count} more were asked for.",
                "Start a new conversation or use a larger context (--n-ctx).",
            )
        self._batch.n_tokens = count
        self._batch_tokens[:count] = tokens
        self._batch_positions[:count] = self._positions[start : start + count]
        self._batch_outputs[: count - num_logits] = 0
        self._batch_outputs[count - num_logits : count] = 1
        mark = log.position()
        status = C.llama_decode(self._handle, self._batch)
        if status == 0:
            C.llama_synchronize(self._handle)
            self._tokens.extend(tokens)
            self._first_row = count - num_logits
            return
        self._restore(start)
        if status == _ABORTED or self._abort.is_set:
            raise Cancelled
        if status == _NO_SLOT:
            raise DecodeError(
                f"llama.cpp found no room in the KV cache for {count} tokens at position {start}.",
                "Start a new conversation or use a larger context (--n-ctx).",
            )
        raise DecodeError(
            f"llama.cpp refused a step of {count} tokens at position {start} (status {status}): "
            f"{log.last_error(mark) or 'it gave no reason'}",
            "The log file has llama.cpp's own words.",
        )

    def _restore(self, length: int) -> None:
        """Take back what a failed step left in the cache."""
        if not C.llama_memory_seq_rm(self._memory, 0, length, -1):
            self.clear()

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> None:
        """Append any number of tokens in batches; see SequenceModel."""
        total = len(tokens)
        for begin in range(0, total, self._n_batch):
            part = tokens[begin : begin + self._n_batch]
            if self._abort.is_set:
                raise Cancelled
            end = begin + len(part)
            self.decode(part, 1 if end == total else 0)
            if progress is not None:
                progress(end, total)

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens; see SequenceModel."""
        if length >= len(self._tokens):
            return
        if not C.llama_memory_seq_rm(self._memory, 0, length, -1):
            raise DecodeError(
                f"{self.model.name} cannot take back tokens: its memory is recurrent and holds no earlier state.",
                "Use it with speculation off.",
            )
        del self._tokens[length:]

    def keep_prefix(self, tokens: Sequence[int]) -> int:
        """Cut the cache to what it shares with the beginning of `tokens`, and return how many that are.

        At least one token is left to be decoded. Where the memory cannot be cut exactly (recurrent state, a
        sliding window that has moved on), everything is forgotten and the answer is 0.
        """
        shared = _common_length(self._tokens, tokens)
        shared = min(shared, len(tokens) - 1)
        if shared == len(self._tokens):
            return shared
        oldest = C.llama_memory_seq_pos_min(self._memory, 0)
        window_is_gone = self._n_swa > 0 and oldest > max(0, shared - self._n_swa)
        if shared <= 0 or window_is_gone or not C.llama_memory_seq_rm(self._memory, 0, shared, -1):
            self.clear()
            return 0
        del self._tokens[shared:]
        return shared

    def clear(self) -> None:
        """Forget everything."""
        C.llama_memory_clear(self._memory, False)
        self._tokens.clear()

    def can_roll_back(self) -> bool:
        """Try for real whether the last token can be taken back; the cache is empty afterwards."""
        self.clear()
        probe = max(self.model.vocabulary.bos, 0)
        self.decode([probe, probe], 0)
        is_possible = bool(C.llama_memory_seq_rm(self._memory, 0, 1, -1))
        self.clear()
        return is_possible

    def row_index(self, row: int) -> int:
        """Return the batch index of a computed row, as llama.cpp's samplers want it."""
        return self._first_row + row

    def logits(self, row: int) -> npt.NDArray[np.float32]:
        """Return a row's logits, shape [n_vocab]: a view that the next step overwrites."""
        pointer = C.llama_get_logits_ith(self._handle, self._first_row + row)
        if not pointer:
            raise DecodeError(f"llama.cpp has no logits for row {row}.", "Please report this as a bug.")
        values: Any = self._row_type.from_address(ctypes.addressof(pointer.contents))
        return np.frombuffer(values, dtype=np.float32)

    def argmax(self, row: int) -> int:
        """Return the most probable token of a row."""
        return int(self.logits(row).argmax())

    def argmax_with_probability(self, row: int) -> tuple[int, float]:
        """Return the most probable token of a row and its probability in the full softmax."""
        logits = self.logits(row)
        best = int(logits.argmax())
        return best, float(1.0 / np.exp(logits - logits[best]).sum(dtype=np.float64))

    def close(self) -> None:
        """Free the context. No call follows."""
        if self._handle:
            del self._batch_tokens, self._batch_positions, self._batch_outputs
            C.llama_batch_free(self._batch)
            C.llama_free(self._handle)
            self._handle = None


def _common_length(left: Sequence[int], right: Sequence[int]) -> int:
    length = min(len(left), len(right))
    differing = np.nonzero(np.asarray(left[:length], np.int64) != np.asarray(right[:length], np.int64))[0]
    return int(differing[0]) if differing.size else length
