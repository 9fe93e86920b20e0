"""Two runs beside each other: what differs between them, and what became of every arm's speed."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from localspec.metrics.comparison import Verdict, judge
from localspec.metrics.statistics import Estimate, estimate_unpaired_ratio
from localspec.session.run_differences import Difference, differences
from localspec.session.run_figures import (
    estimate_of,
    find_arm,
    find_workload_record,
    trial_rates,
    trial_speedups,
)
from localspec.store.values import Record

BOOTSTRAP_SEED = 1


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of two runs. The ratio is after / before; None where one of them lacks the figure."""

    before: Estimate | None
    after: Estimate | None
    ratio: Estimate | None

    @property
    def verdict(self) -> Verdict | None:
        """What may be claimed of the ratio; None without one."""
        return None if self.ratio is None else judge(self.ratio)


@dataclass(frozen=True, slots=True)
class ArmChange:
    """One arm on one workload, in both runs."""

    name: str
    """In the earlier run."""
    decode_tps: Change
    speedup: Change
    """Of the baseline there is none."""


@dataclass(frozen=True, slots=True)
class WorkloadChange:
    """One workload, in both runs."""

    name: str
    title: str
    arms: tuple[ArmChange, ...]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs beside each other."""

    differences: tuple[Difference, ...]
    workloads: tuple[WorkloadChange, ...]
    unmatched: tuple[str, ...]
    """Sentences on workloads and arms that only one of them has."""


def compare_runs(before: Record, after: Record) -> RunComparison:
    """Compare the documents of two runs. Trials of different runs are no pairs, so both sides are resampled."""
    workloads: list[WorkloadChange] = []
    unmatched: list[str] = []
    for workload in before["workloads"]:
        other = find_workload_record(after, workload["name"])
        if other is None:
            unmatched.append(f"Only the first run has the workload {workload['name']}.")
            continue
        arms = _arms(workload, other, unmatched)
        workloads.append(WorkloadChange(workload["name"], workload.get("title") or workload["name"], arms))
    unmatched += [
        f"Only the second run has the workload {workload['name']}."
        for workload in after["workloads"]
        if find_workload_record(before, workload["name"]) is None
    ]
    return RunComparison(differences(before, after), tuple(workloads), tuple(unmatched))


def comparison_record(comparison: RunComparison) -> Record:
    """Return a comparison as JSON has it."""
    return {
        "differences": [asdict(difference) for difference in comparison.differences],
        "workloads": [
            {
                "name": workload.name,
                "arms": [
                    {
                        "name": arm.name,
                        "decode_tps": _change_record(arm.decode_tps),
                        "speedup": _change_record(arm.speedup),
                    }
                    for arm in workload.arms
                ],
            }
            for workload in comparison.workloads
        ],
        "unmatched": list(comparison.unmatched),
    }


def ratio_of(after: list[float], before: list[float]) -> Estimate | None:
    """Return the ratio of two runs' medians with its interval; None if one has no values."""
    if not before or not after:
        return None
    return estimate_unpaired_ratio(after, before, np.random.default_rng(BOOTSTRAP_SEED))


def _arms(workload: Record, other: Record, unmatched: list[str]) -> tuple[ArmChange, ...]:
    found: list[ArmChange] = []
    taken: list[str] = []
    for arm in workload["arms"]:
        partner = find_arm(other, arm)
        if partner is None or partner["name"] in taken:
            unmatched.append(f"Only the first run has the arm {arm['name']} on {workload['name']}.")
            continue
        taken.append(partner["name"])
        rates = _change(arm, partner, "decode_tps", trial_rates(workload, arm["name"]), trial_rates(other, taken[-1]))
        speedups = trial_speedups(workload, arm["name"]), trial_speedups(other, taken[-1])
        found.append(ArmChange(arm["name"], rates, _change(arm, partner, "speedup", *speedups)))
    unmatched += [
        f"Only the second run has the arm {arm['name']} on {workload['name']}."
        for arm in other["arms"]
        if arm["name"] not in taken
    ]
    return tuple(found)


def _change(before: Record, after: Record, key: str, old: list[float], new: list[float]) -> Change:
    first, second = estimate_of(before.get(key)), estimate_of(after.get(key))
    return Change(first, second, ratio_of(new, old) if first is not None and second is not None else None)


def _change_record(change: Change) -> Record | None:
    if change.before is None and change.after is None:
        return None
    return {**asdict(change), "verdict": change.verdict}
