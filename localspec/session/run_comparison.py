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
from localspec.store.run_facts import is_unusable_workload
from localspec.store.values import Record

BOOTSTRAP_SEED = 1


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of two runs. The ratio is after / before; None where one of them lacks the figure."""

    before: Estimate | None
    after: Estimate | None
    ratio: Estimate | None
    is_reliable: bool = True
    """False if the baseline of one of the runs changed too much while it was measured."""

    @property
    def verdict(self) -> Verdict | None:
        """What may be claimed of the ratio; None without one."""
        if self.ratio is None:
            return None
        return judge(self.ratio) if self.is_reliable else "no_clear_difference"


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
    is_unusable: tuple[bool, bool] = (False, False)
    """Whether the figures of the earlier run, and of the later one, are not to be relied on."""


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
        title = workload.get("title") or workload["name"]
        unusable = is_unusable_workload(workload), is_unusable_workload(other)
        arms = _arms(workload, other, unmatched, not any(unusable))
        workloads.append(WorkloadChange(workload["name"], title, arms, unusable))
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
                "is_unusable": list(workload.is_unusable),
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


def unusable_sentence(workload: WorkloadChange, before: str, after: str) -> str:
    """Return why nothing may be claimed of a workload; empty if something may.

    Args:
        before: what the earlier run is called, such as `run 12`; likewise the later one.
    """
    whom = " and ".join(name for name, is_so in zip((before, after), workload.is_unusable, strict=True) if is_so)
    if not whom:
        return ""
    verb = "were" if all(workload.is_unusable) else "was"
    return f"No clear difference: {whom} {verb} unusable, the baseline changed too much while it was measured."


def _arms(workload: Record, other: Record, unmatched: list[str], is_reliable: bool) -> tuple[ArmChange, ...]:
    found: list[ArmChange] = []
    taken: list[str] = []
    for arm in workload["arms"]:
        partner = find_arm(other, arm)
        if partner is None or partner["name"] in taken:
            unmatched.append(f"Only the first run has the arm {arm['name']} on {workload['name']}.")
            continue
        taken.append(partner["name"])
        rates = trial_rates(workload, arm["name"]), trial_rates(other, taken[-1])
        speedups = trial_speedups(workload, arm["name"]), trial_speedups(other, taken[-1])
        changes = (
            _change(arm, partner, key, *values, is_reliable)
            for key, values in (("decode_tps", rates), ("speedup", speedups))
        )
        found.append(ArmChange(arm["name"], *changes))
    unmatched += [
        f"Only the second run has the arm {arm['name']} on {workload['name']}."
        for arm in other["arms"]
        if arm["name"] not in taken
    ]
    return tuple(found)


def _change(before: Record, after: Record, key: str, old: list[float], new: list[float], is_reliable: bool) -> Change:
    first, second = estimate_of(before.get(key)), estimate_of(after.get(key))
    ratio = ratio_of(new, old) if first is not None and second is not None else None
    return Change(first, second, ratio, is_reliable)


def _change_record(change: Change) -> Record | None:
    if change.before is None and change.after is None:
        return None
    return {**asdict(change), "verdict": change.verdict}
