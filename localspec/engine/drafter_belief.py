"""What adaptive pacing believes of one drafter."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.engine.acceptance_model import (
    CONFIDENCE_EDGES,
    FREE_PRIORS,
    MODEL_PRIORS,
    AcceptanceModel,
    cells_of,
)
from localspec.engine.cost_model import DraftCosts, StepCosts
from localspec.engine.drafting.drafter import Draft
from localspec.engine.pacing_state import DrafterState
from localspec.engine.stopping_rule import StoppingRule, best_rule, needed_acceptance

_FIRST_HORIZON = 6
_JUDGED_FOR_RULE = 32
_FIRST_JUDGED_FOR_RULE = 3
_FIRST_JUDGED = 14.0
_MOVED_FOR_RULE = 0.04
_ROUNDS_OF_RULE = 8
_FIRST_ROUNDS_OF_RULE = 4
_ROUNDS_OF_NEEDED = 8
_AGED_FOR_RULE = 64
_KEEPS = 0.94
_TOKENS_OF_A_BREAK = 64
_FIRST_GAP = 2.0
_GAP_GROWS = 1.5
_LAST_GAP = 16.0
_HOPELESS = 0.9
_NUM_CONFIDENCES = len(CONFIDENCE_EDGES) + 1
_SHARE_KEEPS = 0.94
_SHARE_STRENGTH = 4.0
_FIRST_SHARES = (0.1, 0.12, 0.12, 0.12, 0.12, 0.12, 0.13, 0.17)


class Shares:
    """How often each confidence comes up, old tokens counting less."""

    def __init__(self) -> None:
        self._counts = [_SHARE_STRENGTH * share for share in _FIRST_SHARES]
        self._total = _SHARE_STRENGTH

    def add(self, cell: int) -> None:
        """Count a token."""
        counts = self._counts
        for index in range(_NUM_CONFIDENCES):
            counts[index] *= _SHARE_KEEPS
        counts[cell] += 1.0
        self._total = self._total * _SHARE_KEEPS + 1.0

    def with_acceptance(self, acceptance: AcceptanceModel) -> list[tuple[float, float]]:
        """Return (share, expected acceptance) by confidence."""
        return [
            (count / self._total, acceptance.expected(cell))
            for cell, count in enumerate(self._counts)
            if count > 0.01 * self._total
        ]

    def mean(self, acceptance: AcceptanceModel) -> float:
        """Return the expected acceptance over the confidences that come up."""
        total = sum(count * acceptance.expected(cell) for cell, count in enumerate(self._counts))
        return total / sum(self._counts)


class DrafterBelief:
    """Acceptance by cell, and for a draft model its costs, the confidences that come up and its best stopping rule."""

    def __init__(self, is_free: bool, guessed_step: float, state: DrafterState | None = None) -> None:
        """Start from nothing but a guess of a draft step's cost, or from what was learnt earlier."""
        self.is_free = is_free
        priors = FREE_PRIORS if is_free else MODEL_PRIORS
        self.acceptance = AcceptanceModel(priors, state.cells if state is not None else ())
        is_known = state is not None and state.step > 0.0
        self.costs = DraftCosts(state.step, state.catch_up) if state and is_known else DraftCosts(guessed_step)
        self.is_drawn = False
        """Its last draft was drawn at random, so that equality with the target's token says nothing."""
        self.tokens_to_probe = 0.0
        """Rounds until it may be tried again while it rests."""
        self.mean = 0.5
        """Expected acceptance rate of its tokens now."""
        self.first = Shares()
        self.later = Shares()
        self.rule = StoppingRule((), 1.0, 1.0, 1)
        self._horizon = _FIRST_HORIZON
        self._rule_version = -1
        self._rounds_of_rule = 0
        self._mean_of_rule = 0.5
        self._is_costed = is_known
        self._num_judged = self._num_aged = 0
        self._gap = _FIRST_GAP
        self._kept = self._judged = 0.0
        self._first_mean = self._later_mean = 0.5
        self._hopeless: tuple[int, bool] = (-1, False)
        self._needed, self._needed_version, self._rounds_of_needed = 1.0, -1, 0
        self._update_means()

    def _update_means(self) -> None:
        if self.is_free:
            self.mean = (self._kept + 1.0) / (self._judged + 2.0)
            return
        self._first_mean = self.first.mean(self.acceptance)
        self._later_mean = self.later.mean(self.acceptance)
        self.mean = self._first_mean

    @property
    def was_right(self) -> bool:
        """Whether the first token of its last draft was."""
        return self._gap == _FIRST_GAP

    def begin(self) -> None:
        """Begin another text."""
        self.age(_TOKENS_OF_A_BREAK)
        self._gap, self.tokens_to_probe = max(self._gap / 3.0, _FIRST_GAP), 0.0

    def age(self, num_tokens: int) -> None:
        """Let what is known of the text at hand fade."""
        self.acceptance.age(num_tokens)
        self._num_aged += num_tokens

    def cells(self, draft: Draft) -> list[int]:
        """Return the acceptance model's cell of each token."""
        return cells_of(draft, self.is_free)

    def joint(self, cells: Sequence[int]) -> tuple[list[float], list[float]]:
        """Return by token the probability that it and all before it are kept: as expected, and what is certain."""
        expected, doubted = self.acceptance.expected, self.acceptance.doubted
        product = certain = 1.0
        joint, doubted_joint = [], []
        for cell in cells:
            product *= expected(cell)
            certain *= doubted(cell)
            joint.append(product)
            doubted_joint.append(certain)
        return joint, doubted_joint

    def judge(self, tokens: Sequence[int], cells: Sequence[int], emitted: Sequence[int]) -> None:
        """Compare the whole of what it had proposed, verified or not, with what was emitted in its place.

        A token counts only if it was reached: all before it were right, and something was emitted there.

        Args:
            tokens: as the drafter gave them, but for those of which equality says nothing.
            cells: of each of them.
            emitted: tokens of the round.
        """
        for index, (proposal, token) in enumerate(zip(tokens, emitted, strict=False)):
            is_kept = proposal == token
            if self.is_free:
                self._kept = self._kept * _KEEPS + float(is_kept)
                self._judged = self._judged * _KEEPS + 1.0
            else:
                (self.later if index else self.first).add(cells[index])
            self.acceptance.judge(cells[index], is_kept)
            self._num_judged += 1
            if index == 0:
                self._gap = _FIRST_GAP if is_kept else min(self._gap * _GAP_GROWS, _LAST_GAP)
                self.tokens_to_probe = self._gap
            if not is_kept:
                break
        self._update_means()

    def learn_cost(self, cost: float, num_tokens: int, unseen: int) -> None:
        """Hear what a draft cost, in units of the target's steps."""
        self.costs.learn(cost, num_tokens, unseen)
        self._is_costed = True

    def rule_for(self, limit: int, verify: Sequence[float], version: int) -> StoppingRule:
        """Return the best stopping rule, worked out anew where beliefs or costs have moved: that takes 0.1 ms."""
        self._rounds_of_rule += 1
        is_first = self.acceptance.num_judged < _FIRST_JUDGED or abs(self.mean - self._mean_of_rule) > _MOVED_FOR_RULE
        wanted = _FIRST_JUDGED_FOR_RULE if is_first else _JUDGED_FOR_RULE
        is_moved = version != self._rule_version and self._rounds_of_rule >= (
            _FIRST_ROUNDS_OF_RULE if is_first else _ROUNDS_OF_RULE
        )
        if is_moved or self._num_judged >= wanted or self._num_aged >= _AGED_FOR_RULE or self._rule_version < 0:
            self._mean_of_rule = self.mean
            longest = self.rule.longest
            self._rounds_of_rule = 0
            self._num_judged = self._num_aged = 0
            self._rule_version = version
            if longest >= self._horizon or 2 * longest < self._horizon:
                self._horizon = max(2 * longest, _FIRST_HORIZON)
            horizon = min(limit, self._horizon)
            rate = max(1.0 / verify[1], self.rule.tokens / self.rule.cost)
            self.rule = best_rule(
                horizon,
                rate,
                verify,
                self.costs.step,
                self.first.with_acceptance(self.acceptance),
                self.later.with_acceptance(self.acceptance),
            )
        return self.rule

    def pays_within(self, limit: int, verify: Sequence[float]) -> bool:
        """Whether some fixed length up to `limit` is expected to beat plain steps."""
        tokens, joint = 1.0, self._first_mean
        for length in range(1, limit + 1):
            tokens += joint
            joint *= self._later_mean
            if tokens * verify[1] > verify[length + 1] + length * self.costs.step:
                return True
        return False

    def worth_exploring(self, limit: int, costs: StepCosts, rate: float) -> int:
        """Return the length whose width was never measured and which, at best, would beat `rate` most; 0 for none."""
        found, best = 0, rate
        measured, lowest, step = costs.measured, costs.lowest, self.costs.step
        tokens, joint = 1.0, self._first_mean
        for length in range(1, limit + 1):
            tokens += joint
            joint *= self._later_mean
            if not measured[length + 1]:
                possible = tokens / (lowest[length + 1] + length * step)
                if possible > best:
                    found, best = length, possible
        return found

    def is_hopeless(self, limit: int, lowest: Sequence[float], version: int) -> bool:
        """Whether even an acceptance of 0.9 would not pay, so that there is nothing to try."""
        if self._is_costed and self._hopeless[0] != version:
            needed = needed_acceptance(limit, lowest, self.costs.step)
            self._hopeless = (version, needed > _HOPELESS)
        return self._hopeless[1]

    def needed(self, limit: int, verify: Sequence[float], version: int) -> float:
        """Return the acceptance rate from which its best length would pay; it lags behind the costs a little."""
        self._rounds_of_needed += 1
        if self._needed_version < 0 or (
            version != self._needed_version and self._rounds_of_needed >= _ROUNDS_OF_NEEDED
        ):
            self._needed_version, self._rounds_of_needed = version, 0
            self._needed = needed_acceptance(limit, verify, 0.0 if self.is_free else self.costs.step)
        return self._needed

    def state(self, plain: float) -> DrafterState:
        """Return what is worth keeping; costs in plain steps."""
        is_known = self._is_costed and not self.is_free
        step, catch_up = (self.costs.step / plain, self.costs.catch_up / plain) if is_known else (0.0, 0.0)
        return DrafterState(self.is_free, self.acceptance.cells, step, catch_up)
