"""Suffix decoding: propose what most often followed the same words earlier, as far as that is likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.drafting.remembered import RememberedAnswers
from localspec.engine.drafting.suffix_index import SuffixIndex
from localspec.engine.drafting.suffix_search import Bounds, Continuation, best_continuation
from localspec.engine.model import Progress
from localspec.engine.values import DraftStop


class SuffixDrafter:
    """Searches the text so far, and earlier answers if there are any; the higher score speaks (see suffix_search.py).

    The draft's probabilities are shares of earlier continuations, so its length follows from how often, how long
    and how uniformly something has been seen.
    """

    def __init__(self, factor: float, p_min: float, remembered: RememberedAnswers | None = None) -> None:
        """Take the settings suffix_factor and suffix_p_min, and what earlier answers are kept in."""
        self._bounds = Bounds(1, factor, p_min)
        self._index = SuffixIndex()
        self._remembered = remembered
        self._unread: list[int] = []
        self._num_prompt = 0
        self._is_alone = False
        self._begins_alone = False

    @property
    def name(self) -> str:
        """What screens and reports call it."""
        return "suffix" if self._remembered is None else "suffix with earlier answers"

    def forget(self) -> None:
        """Empty the index. The answer that follows neither profits from earlier ones nor is it kept."""
        self._index.clear()
        self._unread.clear()
        self._num_prompt = 0
        self._begins_alone = True

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Index a prompt, of which only what differs from the old text is new."""
        self._is_alone, self._begins_alone = self._begins_alone, False
        self._unread.clear()
        num_shared = _num_shared(self._index.text, prompt)
        self._index.truncate(num_shared)
        self._index.extend(prompt[num_shared:])
        self._num_prompt = len(prompt)

    @property
    def num_unseen(self) -> int:
        """Nothing: there is no model."""
        return 0

    @property
    def is_free(self) -> bool:
        """Yes: a draft is a few searches by bisection."""
        return True

    @property
    def num_bytes(self) -> int:
        """Memory of the text's index; that of earlier answers is apart."""
        return self._index.num_bytes

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose at most `limit` tokens."""
        self._read()
        bounds = self._bounds
        if bounds.limit != limit:
            bounds = self._bounds = replace(bounds, limit=limit)
        context = self._index.context()
        best = best_continuation(self._index, context, bounds)
        if self._remembered is not None and not self._is_alone:
            earlier = best_continuation(self._remembered.index, context, bounds)
            if earlier.score > best.score or not best.is_found:
                best = earlier
        return Draft(
            best.tokens, _stop(best, limit), best.probabilities, match_length=best.match_length if best.tokens else 0
        )

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target emitted; it is indexed when something is next asked for."""
        self._unread.extend(tokens)

    def _read(self) -> None:
        if self._unread:
            self._index.extend(self._unread)
            self._unread.clear()

    def keep_answer(self) -> None:
        """Put what followed the prompt among the earlier answers. To be called when the answer is complete."""
        self._read()
        if self._remembered is not None and not self._is_alone:
            self._remembered.add(self._index.text[self._num_prompt :])
        self._num_prompt = len(self._index.text)

    def close(self) -> None:
        """Free the index."""
        self._index.clear()


def _stop(best: Continuation, limit: int) -> DraftStop:
    if not best.is_found:
        return "no_match"
    if len(best.tokens) == limit:
        return "n_max"
    return "p_min" if best.is_unsure else "silent"


def _num_shared(left: Sequence[int], right: Sequence[int]) -> int:
    length = min(len(left), len(right))
    differing = np.nonzero(np.asarray(left[:length], np.int64) != np.asarray(right[:length], np.int64))[0]
    return int(differing[0]) if differing.size else length
