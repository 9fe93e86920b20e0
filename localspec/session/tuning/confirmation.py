"""The confirmation: an ordinary comparison of the best settings on prompts that the search has not used.

The best of many noisy figures is too good (the winner's curse), so the search's own figures decide nothing: only
these do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from localspec.catalog.workloads import Workload
from localspec.metrics.comparison import PairedRate, Verdict, judge
from localspec.metrics.statistics import Estimate, estimate_ratio
from localspec.session.arms import BASELINE_NAME, Arm, arms_from_settings
from localspec.session.condition_marks import marks_of
from localspec.session.measurement import Measurement
from localspec.session.outcome import ArmResult, ComparisonResult, paired_rates
from localspec.session.tuning.space import complexity
from localspec.session.tuning.values import Confirmed, TuningResult, WarmSetting
from localspec.session.verdict import is_reliable

LEAST_GAIN: Final = 0.02
"""A gain below this share is a tie with the baseline, which is simpler."""

SEED_STEP: Final = 1000
"""Added to the seed where the confirmation has to use the search's prompts."""

UNRELIABLE: Final = "the baseline changed too much for any figure to be relied on"
UNFINISHED: Final = "the time was over before it had run on all texts"
"""Reasons that say nothing of a setting itself."""


def split_prompts(workload: Workload) -> tuple[Workload, Workload]:
    """Return a workload with every other prompt, for the search, and one with the rest, for the confirmation.

    One of a single prompt is both.
    """
    if len(workload.prompts) < 2:
        return workload, workload
    return replace(workload, prompts=workload.prompts[::2]), replace(workload, prompts=workload.prompts[1::2])


def arms_of(settings: Sequence[WarmSetting]) -> tuple[Arm, ...]:
    """Return the baseline and an arm for each setting."""
    return arms_from_settings([setting.speculation for setting in settings])


def evaluate(measurement: Measurement, settings: Sequence[WarmSetting]) -> tuple[Confirmed, ...]:
    """Return what a confirmation says of each setting that was an arm of it."""
    names = {arm.speculation: arm.name for arm in measurement.plan.arms if arm.name != BASELINE_NAME}
    return tuple(_evaluate(measurement, setting, names[setting.speculation]) for setting in settings)


def choose_winner(confirmed: Sequence[Confirmed]) -> Confirmed | None:
    """Return the setting to use; None if drafts are best left off.

    It must be clearly faster, by LEAST_GAIN at least. Of several whose intervals overlap the simplest is taken.
    """
    able = [
        one
        for one in confirmed
        if not one.reason
        and one.verdict == "faster"
        and one.speedup is not None
        and one.speedup.median >= 1.0 + LEAST_GAIN
    ]
    if not able:
        return None
    best = max(able, key=lambda one: one.speedup.median if one.speedup else 0.0)
    tied = [one for one in able if _reaches(one, best)]
    return min(tied, key=lambda one: complexity(one.setting))


def _reaches(one: Confirmed, best: Confirmed) -> bool:
    """Whether two gains cannot be told apart: each one's median lies within the other's interval."""
    if one is best:
        return True
    if one.speedup is None or best.speedup is None or best.speedup.low is None or one.speedup.high is None:
        return False
    return one.speedup.median >= best.speedup.low and best.speedup.median <= one.speedup.high


def _evaluate(measurement: Measurement, setting: WarmSetting, name: str) -> Confirmed:
    found = [(result, _arm(result, name)) for result in measurement.results]
    speedup = _speedup([(result, arm) for result, arm in found if arm is not None])
    reason = next((reason for result, arm in found if (reason := _reason(result, arm))), "")
    if not reason and len(found) < len(measurement.plan.workloads):
        reason = UNFINISHED
    verdict = None if speedup is None else judge(speedup)
    return Confirmed(
        setting=setting,
        arm=name,
        speedup=speedup,
        verdict=verdict,
        by_workload=tuple((result.workload_name, None if arm is None else arm.speedup) for result, arm in found),
        reason=reason,
        is_unsettled=_is_unsettled(measurement, reason, verdict),
    )


def _is_unsettled(measurement: Measurement, reason: str, verdict: Verdict | None) -> bool:
    if reason:
        return reason in (UNRELIABLE, UNFINISHED)
    is_cut_short = any(result.is_interrupted for result in measurement.results)
    return verdict == "too_little_to_judge" or (is_cut_short and verdict == "no_clear_difference")


def _reason(result: ComparisonResult, arm: ArmResult | None) -> str:
    if arm is None or not arm.has_run:
        return UNFINISHED if result.is_interrupted else "it could not run" if arm is None else arm.reason
    if arm.same_text is not None and arm.same_text.kind == "error":
        return f"its text differs from the baseline's, and that is an error: {arm.same_text.reason}".rstrip(": ")
    return "" if is_reliable(result) else UNRELIABLE


def _arm(result: ComparisonResult, name: str) -> ArmResult | None:
    return next((arm for arm in result.speculative if arm.arm.name == name), None)


def _speedup(found: Sequence[tuple[ComparisonResult, ArmResult]]) -> Estimate | None:
    """Return the median over pairs of the geometric mean over workloads, with its interval."""
    if len(found) == 1:
        return found[0][1].speedup
    columns = [_ratios(result, arm) for result, arm in found]
    joint = [
        math.exp(statistics.fmean(map(math.log, ratios)))
        for row in zip(*columns, strict=False)
        if len(ratios := [ratio for ratio in row if ratio]) == len(columns)
    ]
    return estimate_ratio(joint, np.random.default_rng(1)) if joint else None


def _ratios(result: ComparisonResult, arm: ArmResult) -> list[float | None]:
    pairs: list[PairedRate] = paired_rates(arm.trials, result.baseline.trials, result.closing)
    return [pair.ratio for pair in pairs]


def confirmation_of(result: TuningResult) -> Measurement | None:
    """Return the confirmation that the winner was in; the last one without a winner."""
    winner = result.winner
    if winner is not None:
        for measurement in result.measurements:
            is_there = winner.setting.speculation in {arm.speculation for arm in measurement.plan.arms}
            if is_there and winner.setting.draft in (None, measurement.plan.draft):
                return measurement
    return result.measurements[-1] if result.measurements else None


def confirmation_marks(result: TuningResult) -> tuple[str, ...]:
    """Return what of the machine's state marks the confirmation's figures; empty without one."""
    measurement = confirmation_of(result)
    return () if measurement is None else marks_of(measurement)
