"""From paired rates to a speedup and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from localspec.metrics.statistics import Estimate, estimate_ratio

Verdict = Literal["faster", "slower", "no_clear_difference", "too_little_to_judge"]
"""`too_little_to_judge`: with so few pairs there is no interval."""


@dataclass(frozen=True, slots=True)
class PairedRate:
    """decode_tps of both arms in one pair; None where a run was too short to have one."""

    baseline_tps: float | None
    speculative_tps: float | None

    @property
    def ratio(self) -> float | None:
        """Speculative / baseline; above 1 is faster."""
        if not self.baseline_tps or not self.speculative_tps:
            return None
        return self.speculative_tps / self.baseline_tps


def compare_rates(pairs: Sequence[PairedRate], rng: np.random.Generator) -> Estimate | None:
    """Return the speedup: the median of the paired ratios and its 95 % interval; None without a complete pair."""
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    return estimate_ratio(ratios, rng) if ratios else None


def judge(speedup: Estimate) -> Verdict:
    """Return what may be claimed: nothing if the interval includes 1 or is not known."""
    if speedup.low is None:
        return "too_little_to_judge"
    if speedup.low > 1.0:
        return "faster"
    if speedup.high is not None and speedup.high < 1.0:
        return "slower"
    return "no_clear_difference"


def interpolate_rate(before: tuple[int, float], after: tuple[int, float], position: int) -> float:
    """Return the rate at a place between two runs, geometric in between.

    Removes a drift that multiplies the speed by the same factor with every run, as heating up does.

    Args:
        before, after: (place in the order of runs, decode_tps).
        position: the place asked for.
    """
    share = (position - before[0]) / (after[0] - before[0])
    return float(before[1] * (after[1] / before[1]) ** share)
