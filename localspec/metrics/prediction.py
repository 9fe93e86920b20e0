"""What speculation can gain, from acceptance and costs.

The model is that of Leviathan et al. 2023, theorem 3.8, with a cost of verifying that need not be flat.

`acceptance` is the chance that a draft token is accepted given that those before it were. Costs are in units of the
target's single-token step: `draft_cost` of one draft step, `verify_cost` of one verification of n + 1 tokens.
"""

from __future__ import annotations

_BISECTIONS = 60


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
