"""From paired rates to a speedup and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from localspec.metrics.statistics import Estimate, estimate_ratio

Verdict = Literal["faster", "slower", "no_clear_difference"]

DRIFT_NOTE_SHARE = 0.10
"""A baseline that changes by more than this between its first and last run is worth a note."""

UNUSABLE_DRIFT_FACTOR = 2.0
"""A baseline that changes by more than this factor leaves nothing to rely on, paired or not."""


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
    if speedup.low is not None and speedup.low > 1.0:
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


def drift_share(baseline_tps: Sequence[float]) -> float | None:
    """Return by which share the last baseline run differed from the first; negative is slower. None for one run."""
    if len(baseline_tps) < 2 or baseline_tps[0] <= 0.0:
        return None
    return baseline_tps[-1] / baseline_tps[0] - 1.0


def is_unusable(baseline_tps: Sequence[float]) -> bool:
    """Whether the baseline changed so much between its first and last run that no figure can be relied on."""
    share = drift_share(baseline_tps)
    return share is not None and not 1.0 / UNUSABLE_DRIFT_FACTOR <= 1.0 + share <= UNUSABLE_DRIFT_FACTOR


def drift_note(baseline_tps: Sequence[float]) -> str:
    """Return a sentence if the baseline changed much while the comparison ran; empty otherwise."""
    share = drift_share(baseline_tps)
    if share is None or abs(share) <= DRIFT_NOTE_SHARE:
        return ""
    if is_unusable(baseline_tps):
        change = f"{-share:.0%} slower" if share < 0.0 else f"{share:.0%} faster"
        return (
            f"The last baseline run was {change} than the first: this measurement is unusable. Something else used "
            "the machine, or it slowed itself down; measure again when it is quiet."
        )
    if share < 0.0:
        return (
            f"The last baseline run was {-share:.0%} slower than the first: the machine may be heating up or busy. "
            "Paired runs cancel a steady change, but figures of one arm alone are uncertain."
        )
    return (
        f"The last baseline run was {share:.0%} faster than the first: something else may have used the machine at "
        "the beginning. Paired runs cancel a steady change, but figures of one arm alone are uncertain."
    )
