"""Rounds and beliefs with only what a test cares about."""

from __future__ import annotations

from dataclasses import replace

from localspec.engine.events import EmittedToken, RoundFinished
from localspec.engine.values import Beliefs


def beliefs(drafter: str = "suffix", limit: int = 4, **changes: float) -> Beliefs:
    """Return what adaptive pacing believed; times are in steps of 10 ms."""
    plain = Beliefs(drafter, limit, expected_tokens=1.5, expected_s=0.01, plain_s=0.01, acceptance=0.5, needed=0.25)
    return replace(plain, **changes)  # type: ignore[arg-type]


def a_round(
    index: int, drafted: int = 0, accepted: int = 0, drafter: str = "suffix", believed: Beliefs | None = None
) -> RoundFinished:
    """Return a round that takes 10 ms."""
    emitted = tuple(EmittedToken(place, "x", "accepted") for place in range(accepted + 1))
    return RoundFinished(
        id=1,
        index=index,
        drafter=drafter,
        drafted=tuple(range(drafted)),
        num_accepted=accepted,
        num_discarded=0,
        emitted=emitted,
        num_cut=0,
        draft_stop="n_max" if drafted else "resting",
        draft_s=0.0,
        verify_s=0.01,
        sample_s=0.0,
        total_s=0.01,
        at_s=0.01 * index,
        n_past=10 + index,
        match_length=3 if drafted else 0,
        beliefs=believed,
    )
