"""How many tokens to draft in a round."""

from __future__ import annotations

from localspec.engine.drafting.drafter import Draft
from localspec.engine.values import MAX_DRAFT_TOKENS, SpeculationSettings
from localspec.errors import UsageError


class FixedPacing:
    """Always the same length: n_max, and nothing at all if the drafter has fewer than n_min to say."""

    def __init__(self, settings: SpeculationSettings) -> None:
        check_speculation(settings)
        self._n_max = settings.n_max
        self._n_min = settings.n_min

    def limit(self, room: int) -> int:
        """Return the longest draft wanted when `room` tokens would fit."""
        length = min(self._n_max, room)
        return length if length >= self._n_min else 0

    def apply(self, draft: Draft, limit: int) -> Draft:
        """Return the draft as it goes to the target: whole, or thrown away for being short.

        A draft that ended at a limit below n_max ended for want of room.
        """
        if len(draft.tokens) < self._n_min:
            return Draft((), "n_min", num_discarded=len(draft.tokens) + draft.num_discarded)
        if draft.stop == "n_max" and limit < self._n_max:
            return Draft(draft.tokens, "room", draft.probabilities, draft.num_discarded)
        return draft


def check_speculation(settings: SpeculationSettings) -> None:
    """Refuse draft settings that cannot work together.

    Raises:
        UsageError: with the two values that clash.
    """
    if not 1 <= settings.n_max <= MAX_DRAFT_TOKENS:
        raise UsageError(f"n_max is {settings.n_max}.", f"It must lie between 1 and {MAX_DRAFT_TOKENS}.")
    if not 0 <= settings.n_min <= settings.n_max:
        raise UsageError(
            f"n_min is {settings.n_min} and n_max is {settings.n_max}: no draft could be long enough.",
            "Choose n_min between 0 and n_max.",
        )
    if not 0.0 <= settings.p_min <= 1.0:
        raise UsageError(f"p_min is {settings.p_min}.", "It is a probability: between 0 (off) and 1.")
    if not 1 <= settings.ngram_min <= settings.ngram_max <= 64:
        raise UsageError(
            f"ngram_min is {settings.ngram_min} and ngram_max is {settings.ngram_max}.",
            "They must keep 1 <= ngram_min <= ngram_max <= 64.",
        )
