"""What llama.cpp's samplers leave of a row of logits, as probabilities."""

from __future__ import annotations

import ctypes
from typing import Any

import llama_cpp.llama_cpp as C
import numpy as np
import numpy.typing as npt

from localspec.engine.distribution import Distribution

Ids = npt.NDArray[np.int32]
Logits = npt.NDArray[np.float32]

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
_FEW = 512
_MANY = 4096


class Candidates:
    """llama.cpp's array of candidates, kept between rows: whole vocabularies, or the few ids that can matter."""

    def __init__(self, n_vocab: int) -> None:
        self._n_vocab = n_vocab
        self._all_ids = np.arange(n_vocab, dtype=np.int32)
        self._all_ids.flags.writeable = False
        self._memory = np.zeros(_FEW, _CANDIDATE)
        self._scratch = np.zeros(_FEW)

    def distribution(self, history: Any, filters: Any, logits: Logits, ids: Ids | None = None) -> Distribution | None:
        """Apply two chains and return the softmax of what is left, as llama.cpp's final draw sees it.

        Args:
            history: changes logits and removes none (grammar, penalties); None for nothing to change.
            filters: removes candidates and scales the logits (top-k, top-p, min-p, temperature).
            logits: shape [n_vocab].
            ids: ascending, all those that the filters can leave; None for the whole vocabulary.

        Returns:
            None if the filters' border falls between equal logits: which of them llama.cpp leaves depends
            on the whole array, and `ids` were only a part.
        """
        chosen = self._all_ids if ids is None else ids
        if self._memory.size < chosen.size:
            self._memory = np.zeros(chosen.size, _CANDIDATE)
        candidates = self._memory[: chosen.size]
        candidates["id"] = chosen
        candidates["logit"] = logits if ids is None else logits[ids]
        array = C.llama_token_data_array(candidates.ctypes.data_as(C.llama_token_data_p), chosen.size, -1, False)
        if history is not None:
            C.llama_sampler_apply(history, ctypes.byref(array))
        before = None if ids is None else candidates["logit"].copy()
        C.llama_sampler_apply(filters, ctypes.byref(array))
        left = candidates[: array.size]
        if before is not None and ids is not None and _is_tied(before, ids, left["id"]):
            return None
        return self._softmax(left, bool(array.sorted))

    def _softmax(self, left: npt.NDArray[Any], is_sorted: bool) -> Distribution:
        # In place in kept memory, since fresh pages for a whole vocabulary cost more than its exponentials.
        if self._scratch.size < left.size:
            self._scratch = np.zeros(self._memory.size)
        weights = self._scratch[: left.size]
        weights[:] = left["logit"]
        weights -= weights[0] if is_sorted else weights.max()
        np.exp(weights, out=weights)
        ids = left["id"]
        if is_sorted and ids.size > _MANY:
            # Through the whole vocabulary, since sorting tens of thousands of ids takes longer.
            dense = np.zeros(self._n_vocab)
            dense[ids] = weights
            ids = ids_where(dense > 0.0)
            weights = dense[ids]
        elif is_sorted:
            order = ids.argsort()
            ids, weights = ids[order], weights[order]
        if not weights.all():
            is_possible = weights > 0.0
            ids, weights = ids[is_possible], weights[is_possible]
        # Copies: both lie in memory that the next row overwrites.
        return Distribution(self._all_ids if ids.size == self._n_vocab else np.array(ids), weights / weights.sum())


def _is_tied(before: Logits, ids: Ids, left: Ids) -> bool:
    """Whether a candidate was removed whose logit equals that of one which was left."""
    lowest = before[ids.searchsorted(left)].min()
    return bool(np.count_nonzero(before >= lowest) != left.size)


def likely_ids(logits: Logits, count: int) -> Ids:
    """Return the ids of the `count` largest logits, with any that equal the last of them and a few more, ascending.

    The vocabulary is dealt to many more classes than `count`. At least `count` logits are as large as the count-th
    largest of the classes' maxima, so what is smaller is not among the largest, and few others are as large.
    """
    num_classes = min(max(logits.size // 128, 4 * count), logits.size)
    if count >= num_classes:
        return np.arange(logits.size, dtype=np.int32)
    num_whole = logits.size // num_classes * num_classes
    largest = logits[:num_whole].reshape(-1, num_classes).max(axis=0)
    rest = logits[num_whole:]
    np.maximum(largest[: rest.size], rest, out=largest[: rest.size])
    bound = np.partition(largest, num_classes - count)[num_classes - count]
    return ids_where(logits >= bound)


def ids_where(is_wanted: npt.NDArray[np.bool_]) -> Ids:
    """Return the ids of a mask over the vocabulary, ascending."""
    return is_wanted.nonzero()[0].astype(np.int32)
