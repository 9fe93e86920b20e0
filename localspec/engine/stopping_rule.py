"""When a draft model should stop: the best rule for a given rate, by backward induction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

_RATIO = 0.75
_LEVELS = tuple(_RATIO**index for index in range(9))
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

    @property
    def longest(self) -> int:
        """Most tokens that it drafts."""
        length = 1
        while length < len(self.least) and self.least[length] <= 1.0:
            length += 1
        return length

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
    moves = [_moves(first), _moves(later)]
    # Values and costs after j tokens by level of their joint acceptance; one more entry for "nearly none".
    values: list[float] = []
    costs: list[float] = []
    least = [2.0] * (horizon + 1)
    for length in range(horizon, 0, -1):
        dropped, kept = rate * verify[length], rate * verify[length + 1]
        new_values, new_costs = [], []
        advantage_before = 0.0
        is_open = True
        for level, joint in enumerate(_LEVELS):
            value, cost = joint - kept, verify[length + 1]
            if -dropped > value:
                value, cost = -dropped, verify[length]
            if values and is_open:
                go_value, go_cost = joint - rate * step, step
                for share, shift, part in moves[1]:
                    index = level + shift
                    if index >= num:
                        index, part = num - 1, 1.0
                    go_value += share * (values[index] + part * (values[index + 1] - values[index]))
                    go_cost += share * (costs[index] + part * (costs[index + 1] - costs[index]))
                advantage = go_value - value
                if advantage > 0.0:
                    value, cost = go_value, go_cost
                    least[length] = joint
                else:
                    if level and advantage_before > 0.0:
                        part = advantage_before / (advantage_before - advantage)
                        least[length] = _LEVELS[level - 1] + part * (joint - _LEVELS[level - 1])
                    # Going on is worth less the lower the joint acceptance is, so it is worth nothing from here on.
                    is_open = False
                advantage_before = advantage
            new_values.append(value)
            new_costs.append(cost)
        new_values.append(-dropped)
        new_costs.append(verify[length])
        values, costs = new_values, new_costs
    value, cost = 1.0 - rate * step, step
    for share, shift, part in moves[0]:
        index = shift
        if index >= num:
            index, part = num - 1, 1.0
        value += share * (values[index] + part * (values[index + 1] - values[index]))
        cost += share * (costs[index] + part * (costs[index + 1] - costs[index]))
    return StoppingRule(tuple(least), value + rate * cost, cost)


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


def _moves(cells: Sequence[tuple[float, float]]) -> list[tuple[float, int, float]]:
    """Return (share, whole levels down, part of a level) by cell."""
    moves = []
    for share, acceptance in cells:
        down = log(max(acceptance, 1e-3)) / _LOG_RATIO
        shift = int(down)
        moves.append((share, shift, down - shift))
    return moves
