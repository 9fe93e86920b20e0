"""What adaptive drafting chose and expected, against what came of it, as a fold over rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.engine.events import RoundFinished
    from localspec.engine.values import Beliefs


@dataclass(frozen=True, slots=True)
class PacingStats:
    """Counts and sums of one generation, or of several. Only rounds that carry beliefs are in them."""

    num_rounds: int = 0
    num_resting: int = 0
    """Rounds in which drafting was left alone since it did not pay."""
    num_exploring: int = 0
    """Rounds that were chosen in order to learn."""
    lengths: tuple[int, ...] = ()
    """Item k: rounds whose draft had k tokens; 0 for those without."""
    expected_tokens: float = 0.0
    num_tokens: int = 0
    """What those rounds really gave."""
    expected_s: float = 0.0
    total_s: float = 0.0
    """What they really took."""
    last: Beliefs | None = None
    """The newest ones that name a drafter."""

    @property
    def resting_share(self) -> float | None:
        """Rounds that rested / all rounds with beliefs."""
        return self.num_resting / self.num_rounds if self.num_rounds else None

    @property
    def token_ratio(self) -> float | None:
        """Tokens that came / tokens that were expected."""
        return self.num_tokens / self.expected_tokens if self.expected_tokens > 0.0 else None

    @property
    def time_ratio(self) -> float | None:
        """Time that the rounds took / time that was expected."""
        return self.total_s / self.expected_s if self.expected_s > 0.0 else None

    @property
    def is_resting(self) -> bool:
        """Whether drafting did not pay at the end."""
        return self.last is not None and self.last.is_resting

    def __add__(self, other: PacingStats) -> PacingStats:
        size = max(len(self.lengths), len(other.lengths))
        padded = [lengths + (0,) * (size - len(lengths)) for lengths in (self.lengths, other.lengths)]
        return PacingStats(
            self.num_rounds + other.num_rounds,
            self.num_resting + other.num_resting,
            self.num_exploring + other.num_exploring,
            tuple(map(sum, zip(*padded, strict=True))),
            self.expected_tokens + other.expected_tokens,
            self.num_tokens + other.num_tokens,
            self.expected_s + other.expected_s,
            self.total_s + other.total_s,
            other.last or self.last,
        )


NO_PACING = PacingStats()


def pacing_of(round_: RoundFinished) -> PacingStats:
    """Return the numbers of one round; none of round 0, which the prefill pays for."""
    beliefs = round_.beliefs
    if beliefs is None or round_.index == 0:
        return NO_PACING
    return PacingStats(
        num_rounds=1,
        num_resting=int(beliefs.is_resting),
        num_exploring=int(beliefs.is_exploring),
        lengths=(0,) * len(round_.drafted) + (1,),
        expected_tokens=beliefs.expected_tokens,
        num_tokens=len(round_.emitted),
        expected_s=beliefs.expected_s,
        total_s=round_.total_s,
        last=beliefs if beliefs.drafter else None,
    )
