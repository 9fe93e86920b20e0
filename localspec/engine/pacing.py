"""How many tokens to draft in a round."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.values import MAX_DRAFT_TOKENS, Beliefs, SpeculationSettings
from localspec.errors import UsageError


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a round; times in seconds."""

    draft: Draft
    num_accepted: int
    num_emitted: int
    was_ended: bool
    """The text ended in this round, so that tokens after the end were not judged."""
    draft_s: float
    verify_s: float
    sample_s: float
    total_s: float
    n_past: int
    """Positions in the target's cache after the round."""
    emitted: tuple[int, ...] = ()
    """The round's tokens, so that proposals which were not verified can be judged too."""


class Pacing(Protocol):
    """Decides how long a round's draft is."""

    def propose(self, drafter: Drafter, room: int) -> Draft:
        """Return the draft as it goes to the target.

        Args:
            drafter: to ask, or not.
            room: most tokens that fit in the target and in what is left to generate; may be 0 or less.
        """

    def learn(self, outcome: Outcome) -> None:
        """Hear what became of the round of the last draft."""

    @property
    def beliefs(self) -> Beliefs | None:
        """What the last proposal was chosen by; None where nothing is believed."""


class FixedPacing:
    """Always the same length: n_max, and nothing at all if the drafter has fewer than n_min to say."""

    def __init__(self, settings: SpeculationSettings) -> None:
        check_speculation(settings)
        self._n_max = settings.n_max
        self._n_min = settings.n_min

    @property
    def beliefs(self) -> Beliefs | None:
        """None: nothing is learnt."""
        return None

    def learn(self, outcome: Outcome) -> None:
        """Learn nothing."""

    def propose(self, drafter: Drafter, room: int) -> Draft:
        """Ask the drafter for n_max tokens, or for as many as there is room for."""
        limit = self.limit(room)
        return self.apply(drafter.draft(limit), limit) if limit > 0 else Draft((), "room")

    def limit(self, room: int) -> int:
        """Return the longest draft wanted when `room` tokens would fit."""
        length = min(self._n_max, room)
        return length if length >= self._n_min else 0

    def apply(self, draft: Draft, limit: int) -> Draft:
        """Return the draft as it goes to the target: whole, or thrown away for being short.

        A draft that ended at a limit below n_max ended for want of room.
        """
        # A draft that was drawn stays whole: throwing it away for where it ended would choose between texts.
        if len(draft.tokens) < self._n_min and draft.distributions is None:
            return Draft((), "n_min", num_discarded=len(draft.tokens) + draft.num_discarded, drafter=draft.drafter)
        if draft.stop == "n_max" and limit < self._n_max:
            return replace(draft, stop="room")
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
    if not 0.1 <= settings.suffix_factor <= MAX_DRAFT_TOKENS:
        raise UsageError(f"suffix_factor is {settings.suffix_factor}.", f"Choose between 0.1 and {MAX_DRAFT_TOKENS}.")
    if not 0.0 <= settings.suffix_p_min <= 1.0:
        raise UsageError(f"suffix_p_min is {settings.suffix_p_min}.", "It is a probability: between 0 (off) and 1.")
    if not settings.draft_temperature <= 100.0:
        raise UsageError(
            f"draft_temperature is {settings.draft_temperature}.", "Choose at most 100; -1 for the target's."
        )
    if not 1 <= settings.ngram_min <= settings.ngram_max <= 64:
        raise UsageError(
            f"ngram_min is {settings.ngram_min} and ngram_max is {settings.ngram_max}.",
            "They must keep 1 <= ngram_min <= ngram_max <= 64.",
        )
