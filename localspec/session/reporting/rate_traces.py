"""Tokens per second over the time of an answer, as a rolling mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np

from localspec.metrics.statistics import median
from localspec.session.records import Record
from localspec.session.reporting.reading import name, number, objects, text
from localspec.session.reporting.series import columns, trials_of

NUM_POINTS: Final = 80
"""Of the longest answer's trace."""

WINDOW_SHARE: Final = 0.15
"""Width of the rolling mean as a share of the median answer's time."""

MIN_ARRIVALS: Final = 8
"""An answer in fewer rounds has no course worth drawing."""


@dataclass(frozen=True, slots=True)
class RateTrace:
    """One arm's speed in the course of its answers."""

    arm: str
    at_s: tuple[float, ...]
    """Seconds since the first token."""
    tps: tuple[float, ...]
    """Median over the answers that were still being written, of tokens per second within the window."""
    median_tps: float | None
    """The arm's decode_tps."""
    num_trials: int


@dataclass(frozen=True, slots=True)
class RateTraces:
    """All arms of a workload, over one window."""

    window_s: float
    traces: tuple[RateTrace, ...]


def rate_traces(workload: Record) -> RateTraces | None:
    """Return the arms' traces; None if no answer was long enough.

    Tokens of a round count as spread evenly over it: they appear together, but a drawing of that would show
    nothing but the rounds. Records without arrival times are drawn by the sum of their rounds' times.
    """
    arrivals = {
        text(arm, "name"): [found for trial in trials_of(workload, text(arm, "name")) if (found := _arrivals(trial))]
        for arm in objects(workload, "arms")
    }
    durations = [float(at_s[-1]) for trials in arrivals.values() for at_s, _ in trials]
    if not durations:
        return None
    window_s = WINDOW_SHARE * median(durations)
    step_s = max(durations) / NUM_POINTS
    traces = []
    for arm in objects(workload, "arms"):
        trials = arrivals[text(arm, "name")]
        at_s, tps = _rolling(trials, window_s, step_s)
        if len(at_s) > 1:
            rate = number(arm, "decode_tps", "median")
            traces.append(RateTrace(name(arm, "name"), at_s, tps, rate, len(trials)))
    return RateTraces(window_s, tuple(traces)) if traces else None


def _arrivals(trial: Record) -> tuple[np.ndarray, np.ndarray] | None:
    """Return seconds since the first round, and how many tokens had come since it."""
    found = columns(trial, "at_s", "emitted")
    if found is None:
        found = columns(trial, "total_s", "emitted")
        if found is None:
            return None
        found = [list(accumulate(found[0])), found[1]]
    times, emitted = found
    if len(times) < MIN_ARRIVALS:
        return None
    at_s = np.asarray(times) - times[0]
    # The first round's tokens belong to the prefill.
    counts = np.cumsum([0.0, *emitted[1:]])
    if not bool(np.all(np.diff(at_s) >= 0.0)) or at_s[-1] <= 0.0:
        return None
    return at_s, counts


def _rolling(
    trials: Sequence[tuple[np.ndarray, np.ndarray]], window_s: float, step_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    half = window_s / 2.0
    places: list[float] = []
    rates: list[float] = []
    place = half
    while True:
        # Whole windows only, and only while at least half of the answers go on: else the end would be one of them.
        there = [(at_s, counts) for at_s, counts in trials if place + half <= at_s[-1] + 1e-9]
        if not there or 2 * len(there) < len(trials):
            return tuple(places), tuple(rates)
        ends = (place - half, place + half)
        found = [float(np.diff(np.interp(ends, at_s, counts))[0]) / window_s for at_s, counts in there]
        places.append(place)
        rates.append(median(found))
        place += step_s
