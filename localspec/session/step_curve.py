"""What steps of several widths cost on a target, and the acceptance that drafts need to pay there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localspec.engine.cost_model import monotone
from localspec.engine.events import StepCost
from localspec.metrics.prediction import break_even_acceptance


@dataclass(frozen=True, slots=True)
class LengthNeed:
    """The acceptance from which drafts of one length pay: chance that a token is accepted if all before it were."""

    n: int
    """Tokens drafted in a round."""
    acceptance: float | None
    """None if even a draft that is always right loses; likewise at both ends."""
    low: float | None
    """Were the steps as fast as the fastest quarter of them."""
    high: float | None
    """Were they as slow as the slowest quarter."""


@dataclass(frozen=True, slots=True)
class NeededAcceptance:
    """The acceptance from which drafts of one cost pay."""

    draft_cost: float
    """Time of a drafted token / of a single step of the target."""
    is_measured: bool
    """Of a draft model that was measured, not of one that might be."""
    lengths: tuple[LengthNeed, ...]
    """One for each length whose verification was timed, short drafts first."""

    @property
    def best(self) -> LengthNeed | None:
        """The length that pays from the least acceptance on, the shortest of several; None if none ever pays."""
        paying = [need for need in self.lengths if need.acceptance is not None]
        return min(paying, key=lambda need: (need.acceptance, need.n), default=None)

    def at(self, n: int) -> LengthNeed | None:
        """Return what drafts of n tokens need; None if that was not measured."""
        return next((need for need in self.lengths if need.n == n), None)


@dataclass(frozen=True, slots=True)
class StepCurve:
    """What steps cost with so many positions in the cache."""

    depth: int
    steps: tuple[StepCost, ...]
    """The target's, by width; the first has one token. At least that one."""
    prefill_tps: float | None = None
    """The target's; None if it is not known."""
    draft: StepCost | None = None
    """A single step of the draft model."""
    draft_prefill_tps: float | None = None
    is_complete: bool = True
    """Whether the measuring came to its end."""

    @property
    def single_s(self) -> float:
        """Time of a step of one token, to which all costs relate."""
        return self.steps[0].median_s

    @property
    def costs(self) -> Mapping[int, float]:
        """Time of a step of each width / of one token, as measured."""
        return {step.width: step.median_s / self.single_s for step in self.steps}

    @property
    def fitted_costs(self) -> Mapping[int, float]:
        """The same without noise: never falling with the width, and never under 1.

        Of the widths from 2 on the non-decreasing sequence nearest to the medians in squares.
        """
        wide = self.steps[1:]
        fitted = monotone([step.median_s / self.single_s for step in wide], [step.num_steps for step in wide])
        return {1: 1.0, **{step.width: max(1.0, cost) for step, cost in zip(wide, fitted, strict=True)}}

    @property
    def rises(self) -> Mapping[int, float]:
        """By width, how much more a step costs than the measured one before it, in single steps.

        Only differences beyond the spread: the middle halves of the times of the two do not overlap.
        """
        pairs = zip(self.steps, self.steps[1:], strict=False)
        return {
            wide.width: (wide.median_s - narrow.median_s) / self.single_s
            for narrow, wide in pairs
            if wide.low_s > narrow.high_s or wide.high_s < narrow.low_s
        }

    @property
    def spread(self) -> float:
        """Middle half of the times of a single step / their median."""
        return (self.steps[0].high_s - self.steps[0].low_s) / self.single_s

    @property
    def draft_cost(self) -> float | None:
        """Time of the draft model's step / of the target's; None without a draft model."""
        return None if self.draft is None else self.draft.median_s / self.single_s

    def needed(self, draft_cost: float) -> NeededAcceptance:
        """Return the acceptance from which drafts of a cost pay, by predicted_speedup's model.

        Raises:
            ValueError: the cost is negative or no number.
        """
        return self._needed(draft_cost, draft_cost, draft_cost, False)

    def needed_by_draft(self) -> NeededAcceptance | None:
        """Return the acceptance from which the measured draft model pays; None without one."""
        if self.draft is None:
            return None
        low, middle, high = (
            time / self.single_s for time in (self.draft.low_s, self.draft.median_s, self.draft.high_s)
        )
        return self._needed(middle, low, high, True)

    def _needed(self, draft_cost: float, low: float, high: float, is_measured: bool) -> NeededAcceptance:
        if not 0.0 <= draft_cost < float("inf"):
            raise ValueError(f"a draft cost of {draft_cost}")
        fitted = self.fitted_costs
        needs = []
        for step in self.steps[1:]:
            n, cost = step.width - 1, fitted[step.width]
            fast, slow = cost * step.low_s / step.median_s, cost * step.high_s / step.median_s
            needs.append(
                LengthNeed(
                    n,
                    break_even_acceptance(n, draft_cost, cost),
                    break_even_acceptance(n, low, fast),
                    break_even_acceptance(n, high, slow),
                )
            )
        return NeededAcceptance(draft_cost, is_measured, tuple(needs))
