"""What drafting and verifying achieved, as a fold over rounds.

Counts and ratios have the names and denominators of vLLM's SpecDecodingStats; a round without drafts is
a plain step and is in no denominator. A ratio without a denominator is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localspec.metrics.pacing import NO_PACING, PacingStats, pacing_of

if TYPE_CHECKING:
    from localspec.engine.events import RoundFinished
    from localspec.engine.values import DraftStop


NOBODY = "none"
"""Name of the share of rounds in which no drafter proposed anything."""


@dataclass(frozen=True, slots=True)
class DrafterShare:
    """One drafter's part in the counts."""

    num_rounds: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    draft_s: float = 0.0

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted tokens / drafted tokens that the target checked."""
        return _ratio(self.num_accepted_tokens, self.num_draft_tokens)

    def __add__(self, other: DrafterShare) -> DrafterShare:
        return DrafterShare(
            self.num_rounds + other.num_rounds,
            self.num_draft_tokens + other.num_draft_tokens,
            self.num_accepted_tokens + other.num_accepted_tokens,
            self.draft_s + other.draft_s,
        )


@dataclass(frozen=True, slots=True)
class SpeculationStats:
    """Counts and times of one generation, or the sum of several."""

    num_tokens: int = 0
    """Tokens emitted."""
    num_target_passes: int = 0
    """Rows of the target that gave a token of their own: one each round, the prefill's last row included."""
    num_rounds: int = 0
    """Rounds in which the target checked at least one draft token (vLLM: num_drafts)."""
    num_draft_tokens: int = 0
    """Draft tokens that the target checked."""
    num_accepted_tokens: int = 0
    num_cut: int = 0
    """Rounds whose own target token had no place after a stop."""
    num_discarded: int = 0
    """Draft tokens thrown away unchecked; they are not in num_draft_tokens."""
    draft_s: float = 0.0
    verify_s: float = 0.0
    sample_s: float = 0.0
    total_s: float = 0.0
    """Time of all rounds; the prefill is not in it."""
    drafting_s: float = 0.0
    """total_s of the rounds in num_rounds alone."""
    drafted_at: tuple[int, ...] = ()
    """Item i: rounds that checked a draft token at position i, from 0."""
    reached_at: tuple[int, ...] = ()
    """Item i: rounds that checked a token at position i after accepting all before it."""
    accepted_at: tuple[int, ...] = ()
    """Item i: rounds that accepted the token at position i."""
    accepted_lengths: tuple[int, ...] = ()
    """Item m: rounds with drafts that accepted exactly m tokens."""
    draft_stops: Mapping[DraftStop, int] = field(default_factory=dict)
    """Rounds by the reason for which the draft ended."""
    by_drafter: Mapping[str, DrafterShare] = field(default_factory=dict)
    """By their names; NOBODY has the time of rounds in which none proposed anything."""
    pacing: PacingStats = NO_PACING
    """What adaptive drafting chose and expected."""

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted tokens / drafted tokens that the target checked."""
        return _ratio(self.num_accepted_tokens, self.num_draft_tokens)

    @property
    def mean_accepted_length(self) -> float | None:
        """Tau: 1 + accepted tokens / rounds with drafts; the target's own token is the 1."""
        ratio = _ratio(self.num_accepted_tokens, self.num_rounds)
        return None if ratio is None else 1.0 + ratio

    @property
    def mean_drafted_length(self) -> float | None:
        """Checked draft tokens / rounds with drafts."""
        return _ratio(self.num_draft_tokens, self.num_rounds)

    @property
    def acceptance_by_position(self) -> tuple[float, ...]:
        """Item i: rounds that accepted position i / all rounds with drafts. Their sum is tau - 1."""
        return tuple(count / self.num_rounds for count in self.accepted_at) if self.num_rounds else ()

    @property
    def conditional_acceptance_by_position(self) -> tuple[float | None, ...]:
        """Item i: accepted at i / rounds that had a draft token at i and accepted every one before it.

        This is the a_i of the cost model: a draft that ended before i says nothing about position i.
        """
        accepted = self.accepted_at + (0,) * (len(self.reached_at) - len(self.accepted_at))
        return tuple(_ratio(kept, tried) for kept, tried in zip(accepted, self.reached_at, strict=True))

    @property
    def target_passes_saved(self) -> int:
        """Passes that plain decoding would have needed more for the same tokens."""
        return self.num_tokens - self.num_target_passes

    @property
    def tokens_per_target_pass(self) -> float | None:
        """Emitted tokens / target passes, plain steps included."""
        return _ratio(self.num_tokens, self.num_target_passes)

    @property
    def own_s(self) -> float:
        """Time of the rounds that neither a model nor the sampler used."""
        return max(0.0, self.total_s - self.draft_s - self.verify_s - self.sample_s)

    @property
    def is_consistent(self) -> bool:
        """Whether emitted tokens = target passes + accepted tokens - cut ones, as they must."""
        return self.num_tokens == self.num_target_passes + self.num_accepted_tokens - self.num_cut

    def observe(self, round_: RoundFinished) -> SpeculationStats:
        """Return these numbers with one more round."""
        return self + _one_round(round_)

    def __add__(self, other: SpeculationStats) -> SpeculationStats:
        return SpeculationStats(
            num_tokens=self.num_tokens + other.num_tokens,
            num_target_passes=self.num_target_passes + other.num_target_passes,
            num_rounds=self.num_rounds + other.num_rounds,
            num_draft_tokens=self.num_draft_tokens + other.num_draft_tokens,
            num_accepted_tokens=self.num_accepted_tokens + other.num_accepted_tokens,
            num_cut=self.num_cut + other.num_cut,
            num_discarded=self.num_discarded + other.num_discarded,
            draft_s=self.draft_s + other.draft_s,
            verify_s=self.verify_s + other.verify_s,
            sample_s=self.sample_s + other.sample_s,
            total_s=self.total_s + other.total_s,
            drafting_s=self.drafting_s + other.drafting_s,
            drafted_at=_add_counts(self.drafted_at, other.drafted_at),
            reached_at=_add_counts(self.reached_at, other.reached_at),
            accepted_at=_add_counts(self.accepted_at, other.accepted_at),
            accepted_lengths=_add_counts(self.accepted_lengths, other.accepted_lengths),
            draft_stops={
                stop: self.draft_stops.get(stop, 0) + other.draft_stops.get(stop, 0)
                for stop in (*self.draft_stops, *(stop for stop in other.draft_stops if stop not in self.draft_stops))
            },
            by_drafter={
                name: self.by_drafter.get(name, DrafterShare()) + other.by_drafter.get(name, DrafterShare())
                for name in (*self.by_drafter, *(name for name in other.by_drafter if name not in self.by_drafter))
            },
            pacing=self.pacing + other.pacing if other.pacing.num_rounds else self.pacing,
        )


def fold_rounds(rounds: Iterable[RoundFinished]) -> SpeculationStats:
    """Return the numbers of a generation's rounds."""
    stats = SpeculationStats()
    for round_ in rounds:
        stats = stats.observe(round_)
    return stats


def sum_stats(parts: Iterable[SpeculationStats]) -> SpeculationStats:
    """Return the sum over several generations."""
    return sum(parts, SpeculationStats())


def _one_round(round_: RoundFinished) -> SpeculationStats:
    num_drafted = len(round_.drafted)
    num_accepted = round_.num_accepted
    has_drafts = num_drafted > 0
    # After a stop on the last accepted token the rest of the draft is ignored: it was neither accepted nor rejected.
    num_reached = num_accepted if round_.num_cut else min(num_accepted + 1, num_drafted)
    # Asked for drafts, several drafters may all have kept silent: their joint name would be one that never spoke.
    drafter = round_.drafter and (round_.drafter if has_drafts or round_.num_discarded else NOBODY)
    share = DrafterShare(int(has_drafts), num_drafted, num_accepted, round_.draft_s)
    return SpeculationStats(
        num_tokens=len(round_.emitted),
        num_target_passes=1,
        num_rounds=int(has_drafts),
        num_draft_tokens=num_drafted,
        num_accepted_tokens=num_accepted,
        num_cut=round_.num_cut,
        num_discarded=round_.num_discarded,
        draft_s=round_.draft_s,
        verify_s=round_.verify_s,
        sample_s=round_.sample_s,
        total_s=round_.total_s,
        drafting_s=round_.total_s if has_drafts else 0.0,
        drafted_at=(1,) * num_drafted,
        reached_at=(1,) * num_reached,
        accepted_at=(1,) * num_accepted,
        accepted_lengths=(0,) * num_accepted + (1,) if has_drafts else (),
        draft_stops={round_.draft_stop: 1},
        by_drafter={drafter: share} if drafter else {},
        pacing=pacing_of(round_),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _add_counts(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    if len(left) < len(right):
        left, right = right, left
    return tuple(count + right[index] for index, count in enumerate(left[: len(right)])) + left[len(right) :]
