"""How much time drafting may have cost against plain decoding, in plain steps."""

from __future__ import annotations

START = 1.4
"""Plain steps that a cold start may lose at once."""
SHARE = 0.015
"""Plain steps that may be lost for each token on top."""
CAP = 14.0
"""Most plain steps that may be lost at any time, however much was won before."""


class LossBudget:
    """A token bucket: every token earns a little, a round that lost time pays it, one that won time puts it back.

    A round is only begun if what it could lose is there. So after N tokens the estimated loss against plain decoding
    is at most START + SHARE * N plain steps (at 128 tokens 2.6 %), whatever the drafter does. What choosing takes
    counts as lost too; where that alone is over SHARE of a step, it goes on top. Of a drafter that has been right,
    what is certain by now counts as not lost; it may disappoint by that much once.
    """

    def __init__(self, start: float = START) -> None:
        self.credit = start
        """Plain steps that may be lost now."""

    def covers(self, loss: float) -> bool:
        """Whether a round that could lose so much may be begun."""
        return loss <= self.credit

    def settle(self, num_tokens: int, cost: float) -> None:
        """Account for a round that emitted so many tokens and cost so many plain steps."""
        self.credit = min(self.credit + SHARE * num_tokens + num_tokens - cost, CAP)
