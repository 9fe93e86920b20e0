"""Medians, percentiles and intervals of few measurements.

A percentile-bootstrap interval of the median of n values lies between the smallest and the largest, and those enclose
the true median with probability 1 - 2 / 2^n only: 75 % for three pairs. Taken alone it would call one in four
comparisons of two equal things a difference (simulated: 27 % at 3, 12 % at 4, 7 to 12 % at 5 to 9, 6 % from 10 on).
So below MIN_BOOTSTRAP_PAIRS a ratio's interval also covers Student's interval of the mean log ratio. Simulated with
normal, uniform and heavy-tailed noise, 2 to 6 % of the calls are then false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Imported where intervals are made: a front end that shows a speed needs none of it, and it takes long to load.
    import numpy as np

MIN_PAIRS = 3
"""With fewer paired ratios there is no interval: Student's for two spans many orders of magnitude."""

MIN_BOOTSTRAP_PAIRS = 10
"""From this many values on the bootstrap interval stands alone."""

NUM_RESAMPLES = 10_000

_STUDENT_975 = (
    *(4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201),
    *(2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""97.5 % quantiles of Student's t for 2 to 20 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and its 95 % interval. Too few values have no interval."""

    median: float
    low: float | None
    high: float | None
    pairs: int
    """Values that it rests on."""

    @property
    def half_width(self) -> float | None:
        """Half the interval / the median; None without an interval."""
        if self.low is None or self.high is None or self.median <= 0.0:
            return None
        return (self.high - self.low) / 2.0 / self.median


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the mean of the two middle ones.

    Raises:
        ValueError: there are no values.
    """
    return percentile(values, 50.0)


def percentile(values: Sequence[float], rank: float) -> float:
    """Return the percentile `rank` (0 to 100), interpolated linearly between neighbours.

    Raises:
        ValueError: there are no values, or the rank is not a percentage.
    """
    if not values:
        raise ValueError("no values")
    if not 0.0 <= rank <= 100.0:
        raise ValueError(f"rank {rank} is not within 0 to 100")
    ordered = sorted(values)
    place = (len(ordered) - 1) * (rank / 100.0)
    below = int(place)
    share = place - below
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    # From the nearer end, so that rounding never passes it.
    return float(low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share))


def bootstrap_median(values: Sequence[float], rng: np.random.Generator) -> Estimate:
    """Return the median with its 95 % percentile-bootstrap interval (Efron 1979), from NUM_RESAMPLES resamples.

    Raises:
        ValueError: there are no values.
    """
    import numpy as np

    middle = median(values)
    if len(values) == 1:
        return Estimate(middle, None, None, 1)
    data = np.asarray(values, dtype=np.float64)
    resamples = data[rng.integers(0, len(data), size=(NUM_RESAMPLES, len(data)))]
    low, high = np.percentile(np.median(resamples, axis=1), (2.5, 97.5))
    # Interpolation may move a bound by the last bit past a median that all resamples share.
    return Estimate(middle, min(float(low), middle), max(float(high), middle), len(values))


def estimate_ratio(ratios: Sequence[float], rng: np.random.Generator) -> Estimate:
    """Return the median of paired ratios with a 95 % interval that is honest for few pairs too (see above).

    Raises:
        ValueError: there are no ratios, or one is not positive and finite.
    """
    import numpy as np

    if any(not (math.isfinite(ratio) and ratio > 0.0) for ratio in ratios):
        raise ValueError("ratios must be positive and finite")
    estimate = bootstrap_median(ratios, rng)
    if len(ratios) < MIN_PAIRS:
        return Estimate(estimate.median, None, None, len(ratios))
    if estimate.low is None or estimate.high is None or len(ratios) >= MIN_BOOTSTRAP_PAIRS:
        return estimate
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    reach = _STUDENT_975[len(ratios) - MIN_PAIRS] * float(logs.std(ddof=1)) / math.sqrt(len(ratios))
    centre = float(logs.mean())
    return Estimate(
        estimate.median,
        min(estimate.low, math.exp(centre - reach)),
        max(estimate.high, math.exp(centre + reach)),
        estimate.pairs,
    )


def estimate_unpaired_ratio(
    numerators: Sequence[float], denominators: Sequence[float], rng: np.random.Generator
) -> Estimate:
    """Return the ratio of two medians of values that were not measured in pairs, with its 95 % interval.

    Both sides are resampled independently (Efron 1979). With fewer than MIN_BOOTSTRAP_PAIRS values on a side the
    interval also covers Welch's (1947) of the difference of the mean logs, for the reason given above. `pairs` is the
    smaller number of values; below MIN_PAIRS there is no interval.

    Raises:
        ValueError: there are no values on a side, or one is not positive and finite.
    """
    import numpy as np

    if any(not (math.isfinite(value) and value > 0.0) for value in (*numerators, *denominators)):
        raise ValueError("values must be positive and finite")
    ratio = median(numerators) / median(denominators)
    num_values = min(len(numerators), len(denominators))
    if num_values < MIN_PAIRS:
        return Estimate(ratio, None, None, num_values)
    above, below = (_resampled_medians(values, rng) for values in (numerators, denominators))
    bounds = np.percentile(above / below, (2.5, 97.5))
    low, high = min(float(bounds[0]), ratio), max(float(bounds[1]), ratio)
    if num_values < MIN_BOOTSTRAP_PAIRS:
        centre, reach = _welch(np.log(numerators), np.log(denominators))
        low, high = min(low, math.exp(centre - reach)), max(high, math.exp(centre + reach))
    return Estimate(ratio, low, high, num_values)


def _resampled_medians(values: Sequence[float], rng: np.random.Generator) -> np.ndarray:
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    return np.asarray(np.median(data[rng.integers(0, len(data), size=(NUM_RESAMPLES, len(data)))], axis=1))


def _welch(left: np.ndarray, right: np.ndarray) -> tuple[float, float]:
    """Return the difference of two means and the reach of its 95 % interval to either side."""
    parts = [float(side.var(ddof=1)) / len(side) for side in (left, right)]
    centre, variance = float(left.mean() - right.mean()), sum(parts)
    if variance <= 0.0:
        return centre, 0.0
    shares = [(part / variance) ** 2 / (len(side) - 1) for part, side in zip(parts, (left, right), strict=True)]
    freedom = 1.0 / sum(shares)
    # Rounded down, and never over the table's end: both make the interval wider.
    index = min(max(int(freedom) - 2, 0), len(_STUDENT_975) - 1)
    return centre, _STUDENT_975[index] * math.sqrt(variance)
