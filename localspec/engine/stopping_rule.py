"""When a draft model should stop: the best rule for a given rate, by backward induction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from operator import mul

_RATIO = 0.85
_LEVELS = tuple(_RATIO**index for index in range(14))
_LOG_RATIO = log(_RATIO)


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Go on after j tokens while the product of their expected acceptances is at least `least[j]`."""

    least: tuple[float, ...]
    """By number of tokens drafted; index 0 is not used, and above 1 means stop."""
    tokens: float
    """Expected tokens of a round by this rule, the target's own included."""
    cost: float
    """Expected cost of it, drafting and verification."""
    longest: int
    """Most tokens that it drafts."""

    def goes_on(self, num_tokens: int, joint: float) -> bool:
        """Whether to draft another token."""
        return num_tokens < len(self.least) and joint >= self.least[num_tokens]


def best_rule(
    horizon: int,
    rate: float,
    verify: Sequence[float],
    step: float,
    first: Sequence[tuple[float, float]],
    later: Sequence[tuple[float, float]],
) -> StoppingRule:
    """Return the rule that maximises expected tokens - rate * cost.

    A token is drafted at the price of a step, its confidence is seen, and then either the draft goes on, or it ends
    and is verified, with the last token or without it. With `rate` at the rate that the rule itself reaches, that
    rule has the most tokens per time (renewal reward; Dinkelbach 1967). With one certain acceptance it is the best
    fixed length, stairs in `verify` included. Confidences of successive tokens are taken as independent.

    Args:
        horizon: longest draft, at least 1; `verify` reaches to horizon + 1.
        rate: tokens per unit of cost that time is worth.
        verify: cost of a target step by width.
        step: cost of one drafted token.
        first: (share, expected acceptance) of the first token's confidence cells; the shares sum to 1.
        later: the same for later tokens.
    """
    num = len(_LEVELS)
    price = rate * step
    falls = _falls(later)
    # After level l comes level l + s with weight falls[s], and what falls past the last one is "nearly none".
    ends = [sum(falls[num - level :]) for level in range(num)]
    values: list[float] = []
    costs: list[float] = []
    least = [2.0] * (horizon + 1)
    for length in range(horizon, 0, -1):
        dropped, kept = rate * verify[length], rate * verify[length + 1]
        new_values, new_costs = [], []
        before = 0.0
        is_open = bool(values)
        for level, joint in enumerate(_LEVELS):
            if joint - kept > -dropped:
                value, cost = joint - kept, verify[length + 1]
            else:
                value, cost = -dropped, verify[length]
            if is_open:
                going = joint - price + sum(map(mul, falls, values[level:num])) + ends[level] * values[num]
                advantage = going - value
                if advantage > 0.0:
                    value = going
                    cost = step + sum(map(mul, falls, costs[level:num])) + ends[level] * costs[num]
                    least[length] = joint
                else:
                    if level:
                        part = before / (before - advantage)
                        least[length] = _LEVELS[level - 1] + part * (joint - _LEVELS[level - 1])
                    # Going on is worth less the lower the joint acceptance is: from here on nothing.
                    is_open = False
                before = advantage
            new_values.append(value)
            new_costs.append(cost)
        new_values.append(-dropped)
        new_costs.append(verify[length])
        values, costs = new_values, new_costs
    starts = _falls(first)
    value = 1.0 - price + sum(map(mul, starts, values))
    cost = step + sum(map(mul, starts, costs))
    longest = next((length for length in range(1, horizon) if least[length] > 1.0), horizon)
    return StoppingRule(tuple(least), value + rate * cost, cost, longest)


def needed_acceptance(limit: int, verify: Sequence[float], step: float) -> float:
    """Return the acceptance, alike at all positions, from which some length up to `limit` beats plain steps.

    1 if none does even with all accepted. Solves 1 + a + ... + a^k = (k step + verify[k + 1]) / verify[1] for the
    least a over some lengths k.
    """
    needed = 1.0
    for length in (1, 2, 3, 5, 7, 11, 15, 23, 31):
        if length > limit:
            break
        ratio = (length * step + verify[length + 1]) / verify[1]
        if ratio > _geometric(needed, length):
            continue
        low, high = 0.0, needed
        for _ in range(8):
            middle = (low + high) / 2.0
            if _geometric(middle, length) < ratio:
                low = middle
            else:
                high = middle
        needed = high
    return needed


def _geometric(acceptance: float, length: int) -> float:
    if acceptance > 0.999:
        return length + 1.0
    return (1.0 - acceptance ** (length + 1)) / (1.0 - acceptance)


def _falls(cells: Sequence[tuple[float, float]]) -> list[float]:
    """Return the weight of each number of levels by which a token lets the joint acceptance fall; sums to 1.

    A fall between two levels is spread over both so that the mean is kept: values are nearly linear in the joint
    acceptance, not in its levels.
    """
    num = len(_LEVELS)
    weights = [0.0] * (num + 1)
    for share, acceptance in cells:
        if acceptance <= _LEVELS[-1]:
            weights[num] += share
            continue
        whole = int(log(acceptance) / _LOG_RATIO)
        upper = _LEVELS[whole]
        part = share * (upper - acceptance) / (upper * (1.0 - _RATIO))
        weights[whole] += share - part
        weights[whole + 1] += part
    return weights
