"""The ways to spend a round, and what each promises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.cost_model import StepCosts
from localspec.engine.drafter_belief import DrafterBelief
from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.loss_budget import LossBudget

_MARGIN = 0.01
"""Share by which a draft must be expected to beat a plain step."""
_EXPLORE_MARGIN = 0.04
_CATCH_UP_SPREAD = 8.0
_MOST_CATCH_UP = 2.0
"""Plain steps that reading what a draft has missed may take, where it is only to be tried."""
_SURE_SHARE = 0.5
"""Part of what is certain to be accepted that may be counted on where a width is only tried out."""


@dataclass(slots=True)
class Choice:
    """A way to spend the round."""

    member: Drafter | None
    belief: DrafterBelief | None
    limit: int
    tokens: float
    cost: float
    is_exploring: bool = False
    draft: Draft | None = None
    """What a free drafter has proposed."""
    is_unproven: bool = False
    """It would be better than a plain step, but what it could lose is not covered."""

    @property
    def rate(self) -> float:
        """Expected tokens per cost."""
        return self.tokens / self.cost

    def net(self, rate: float) -> float:
        """Expected tokens beyond what its time is worth."""
        return self.tokens - rate * self.cost


class RoundChoices:
    """Finds the best way to use one drafter in a round, within what the budget covers."""

    def __init__(self, costs: StepCosts, budget: LossBudget, n_min: int) -> None:
        """Share the costs and the budget with whoever updates them; drafts shorter than n_min are never chosen."""
        self.costs = costs
        self.budget = budget
        self.rounds_to_explore = 0
        """Rounds until a width that was never measured may be tried."""
        self._n_min = n_min

    def of_free(
        self, member: Drafter, belief: DrafterBelief, draft: Draft, cells: Sequence[int], mean_rate: float
    ) -> Choice:
        """Return the best cut of a free drafter's proposal that the budget covers."""
        costs, measured = self.costs, self.costs.measured
        expected, lowest, highest = costs.expected, costs.lowest, costs.highest
        plain, credit = expected[1], self.budget.credit
        joint, doubted = belief.joint(cells)
        possible: list[tuple[int, float]] = []
        sum_joint = sum_doubted = 1.0
        reached = explored = 1.0 / plain
        longer, may_explore, uncovered = 0, self.rounds_to_explore <= 0, 0.0
        for length, (likely, certain) in enumerate(zip(joint, doubted, strict=True), 1):
            sum_joint += likely
            sum_doubted += certain
            if length < self._n_min:
                continue
            if highest[length + 1] / plain - sum_doubted > credit:
                uncovered = max(uncovered, sum_joint / expected[length + 1])
                continue
            possible.append((length, sum_joint))
            reached = max(reached, sum_joint / expected[length + 1])
            is_bearable = highest[length + 1] / plain - 1.0 - _SURE_SHARE * (sum_doubted - 1.0) <= credit
            if may_explore and is_bearable and not measured[length + 1]:
                hoped = sum_joint / lowest[length + 1]
                if hoped > explored:
                    explored, longer = hoped, len(possible) - 1
        is_unproven = uncovered * plain >= 1.0 + _MARGIN
        if not possible:
            return Choice(member, belief, 0, 1.0 + joint[0], expected[2], False, draft, is_unproven)
        if explored > reached * (1.0 + _EXPLORE_MARGIN):
            length, tokens = possible[longer]
            return Choice(member, belief, length, tokens, expected[length + 1], True, draft)
        if reached * plain < 1.0 + _MARGIN:
            return Choice(member, belief, 0, possible[0][1], expected[possible[0][0] + 1], False, draft, is_unproven)
        rate = min(max(1.0 / plain, mean_rate), reached)
        length, tokens = max(possible, key=lambda cut: cut[1] - rate * expected[cut[0] + 1])
        return Choice(member, belief, length, tokens, expected[length + 1], False, draft)

    def of_model(self, member: Drafter, belief: DrafterBelief, limit: int, num_rounds: int = 1) -> Choice:
        """Return what the draft model is worth: its rule, a probe, or nothing now.

        `num_rounds` have passed since it was last looked at.
        """
        costs, unseen = self.costs, member.num_unseen
        expected = costs.expected
        plain = expected[1]
        rule = belief.rule_for(limit, expected, costs.version)
        belief.costs.guess_catch_up(expected[2] / plain - 1.0)
        behind = max(unseen - 1, 0) * belief.costs.catch_up
        cost = rule.cost + behind / _CATCH_UP_SPREAD
        affordable = self._affordable(belief, limit, unseen)
        value = rule.tokens / cost * plain
        resting = Choice(member, belief, 0, rule.tokens, cost, is_unproven=value > 1.0 + _MARGIN)
        # A draft that lags behind is read up to date because it is good, never in order to learn whether it is.
        is_near = behind <= _MOST_CATCH_UP * plain
        bearable = self._affordable(belief, limit, unseen, _SURE_SHARE) if self.rounds_to_explore <= 0 else 0
        if bearable and is_near:
            length = belief.worth_exploring(bearable, costs, (max(value, 1.0) + _EXPLORE_MARGIN) / plain)
            if length:
                return Choice(member, belief, length, rule.tokens, cost, True)
        is_paying = affordable > 0 and value > 1.0 + _MARGIN
        if is_paying and (rule.longest <= affordable or belief.pays_within(affordable, expected)):
            return Choice(member, belief, affordable, rule.tokens, cost)
        if belief.is_hopeless(limit, costs.lowest, costs.version):
            return resting
        belief.tokens_to_probe -= num_rounds
        needs_step = belief.is_drawn or not costs.measured[2]
        price = belief.costs.of(1, unseen) / plain + (costs.highest[2] / plain - 1.0 if needs_step else 0.0)
        # After a miss only while something is left to follow up a hit.
        reserve = 1.0 if belief.was_right else 1.3
        if belief.tokens_to_probe <= 0 and is_near and self.budget.covers(price * reserve):
            return Choice(member, belief, 1, rule.tokens, cost, True)
        return resting

    def _affordable(self, belief: DrafterBelief, limit: int, unseen: int, share: float = 1.0) -> int:
        """Return the longest draft whose loss the budget covers, if only what is certain were accepted.

        Args:
            belief: of the draft model.
            limit: longest draft.
            unseen: tokens that it has not read.
            share: part of those tokens that counts.
        """
        highest, plain, step = self.costs.highest, self.costs.expected[1], belief.costs.step
        certain = belief.acceptance.level_doubted
        most = self.budget.credit * plain - belief.costs.of(0, unseen)
        longest, tokens, joint = 0, plain, share * plain
        for length in range(1, limit + 1):
            joint *= certain
            tokens += joint
            if length * step + highest[length + 1] - tokens <= most:
                longest = length
            elif joint <= step:
                # No longer one can make up for it.
                break
        return longest
