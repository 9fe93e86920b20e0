"""What speculation can gain, from acceptance and costs.

The model is that of Leviathan et al. 2023, theorem 3.8, with a cost of verifying that need not be flat.

`acceptance` is the chance that a draft token is accepted given that those before it were. Costs are in units of the
target's single-token step: `draft_cost` of one draft step, `verify_cost` of one verification of n + 1 tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class LengthPrediction:
    """What rounds of one draft length give and cost."""

    n: int
    """Tokens drafted in a round; 0 is plain decoding."""
    tokens: float
    """Mean number of tokens that a round emits."""
    steps: float
    """Cost of a round in plain steps of the target."""
    break_even: float | None
    """Acceptance, the same at each position, at which nothing is gained; None if even a perfect draft loses, and
    for plain decoding."""

    @property
    def speedup(self) -> float:
        """Tokens per plain step; plain decoding has 1."""
        return self.tokens / self.steps


def expected_tokens_per_round(acceptance: float, n: int) -> float:
    """Return (1 - a^(n+1)) / (1 - a), the mean number of tokens that a round with n drafted ones emits.

    Raises:
        ValueError: the acceptance is not a probability, or n is negative.
    """
    if not 0.0 <= acceptance <= 1.0:
        raise ValueError(f"acceptance {acceptance} is not within 0 to 1")
    if n < 0:
        raise ValueError(f"{n} drafted tokens")
    # The sum of powers is the same value, and does not lose digits where the closed form divides by almost 0.
    total = power = 1.0
    for _ in range(n):
        power *= acceptance
        total += power
    return total


def predicted_speedup(acceptance: float, n: int, draft_cost: float, verify_cost: float = 1.0) -> float:
    """Return tokens per round / cost of a round, both relative to plain decoding.

    Raises:
        ValueError: the acceptance is not a probability, n or a cost is negative, or the verify cost is 0.
    """
    if draft_cost < 0.0 or verify_cost <= 0.0:
        raise ValueError("costs must be positive")
    return expected_tokens_per_round(acceptance, n) / (verify_cost + n * draft_cost)


def break_even_acceptance(n: int, draft_cost: float, verify_cost: float = 1.0) -> float | None:
    """Return the acceptance at which n drafted tokens neither gain nor lose; None if even a perfect draft loses.

    Raises:
        ValueError: as predicted_speedup.
    """
    if predicted_speedup(1.0, n, draft_cost, verify_cost) < 1.0:
        return None
    if predicted_speedup(0.0, n, draft_cost, verify_cost) >= 1.0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if predicted_speedup(middle, n, draft_cost, verify_cost) < 1.0:
            low = middle
        else:
            high = middle
    return high


def break_even_acceptance_rate(round_cost: float, mean_drafted_length: float) -> float:
    """Return the accepted / drafted share at which rounds of a measured cost pay: 1 + rate * drafted = cost.

    Unlike break_even_acceptance this is exact for measured rounds of any lengths, as it assumes nothing about how
    acceptance falls with position. Above 1: such rounds cannot pay.

    Args:
        round_cost: mean time of a round with drafts / time of a plain step.
        mean_drafted_length: mean number of draft tokens that such a round checked.

    Raises:
        ValueError: nothing was drafted.
    """
    if mean_drafted_length <= 0.0:
        raise ValueError("nothing was drafted")
    return (round_cost - 1.0) / mean_drafted_length


def expected_tokens(acceptance: Sequence[float]) -> float:
    """Return 1 + a1 + a1 a2 + ..., the mean number of tokens of a round, for acceptances that change with position.

    With one value at all positions this is expected_tokens_per_round: position i adds a token exactly if all up to i
    were accepted (Leviathan et al. 2023, equation 1, before they let the acceptances be alike).

    Args:
        acceptance: item i is the chance that draft token i, from 0, is accepted given that those before it were.

    Raises:
        ValueError: one of them is not a probability.
    """
    total = power = 1.0
    for value in acceptance:
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"acceptance {value} is not within 0 to 1")
        power *= value
        total += power
    return total


def predict_lengths(
    acceptance: Sequence[float], draft_cost: float, verify_costs: Sequence[float] = ()
) -> tuple[LengthPrediction, ...]:
    """Return what each draft length from 0 on gives and costs.

    Args:
        acceptance: as for expected_tokens; one item for each draft token of the longest draft.
        draft_cost: of one draft step, in plain steps of the target.
        verify_costs: item i is the cost of verifying i + 2 tokens, that is of a draft of i + 1, in plain steps; none
            for a flat cost of 1.

    Raises:
        ValueError: an acceptance is not a probability, a cost is negative or not a number, a verification costs
            nothing, or there are fewer verify costs than lengths.
    """
    costs = verify_costs or (1.0,) * len(acceptance)
    if len(costs) < len(acceptance):
        raise ValueError(f"{len(costs)} verify costs for {len(acceptance)} lengths")
    if not all(math.isfinite(cost) for cost in (draft_cost, *costs)):
        raise ValueError("costs must be finite")
    if draft_cost < 0.0 or min(costs, default=1.0) <= 0.0:
        raise ValueError("costs must be positive")
    return (
        LengthPrediction(0, 1.0, 1.0, None),
        *(
            LengthPrediction(
                n,
                expected_tokens(acceptance[:n]),
                costs[n - 1] + n * draft_cost,
                break_even_acceptance(n, draft_cost, costs[n - 1]),
            )
            for n in range(1, len(acceptance) + 1)
        ),
    )


def best_length(predictions: Sequence[LengthPrediction]) -> LengthPrediction:
    """Return the length with the largest speedup, and of several with the same the shortest.

    Raises:
        ValueError: there are none.
    """
    return max(predictions, key=lambda prediction: (prediction.speedup, -prediction.n))


def predict_mix(predictions: Sequence[LengthPrediction], num_rounds: Sequence[int]) -> float | None:
    """Return the speedup of rounds of several lengths: all their tokens / all their steps. None without a round.

    Args:
        predictions: item n is that of length n.
        num_rounds: item n counts the rounds that drafted n tokens; no more items than predictions.
    """
    pairs = list(zip(predictions, num_rounds, strict=False))
    steps = sum(count * prediction.steps for prediction, count in pairs)
    return sum(count * prediction.tokens for prediction, count in pairs) / steps if steps else None
