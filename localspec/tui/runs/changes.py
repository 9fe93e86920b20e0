"""Two kept runs beside each other, as tables. Making them blocks: do it in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.session.figures import DASH, rate_span, speed_unit
from localspec.session.plain_text import one_line
from localspec.tui.runs.details import Figures

if TYPE_CHECKING:
    from localspec.metrics.statistics import Estimate
    from localspec.session.run_comparison import Change, WorkloadChange
    from localspec.store.values import Record, RunSummary, StoredRun

WORDS = {
    "faster": "\N{BLACK UP-POINTING TRIANGLE} faster",
    "slower": "\N{BLACK DOWN-POINTING TRIANGLE} slower",
    "no_clear_difference": "\N{ALMOST EQUAL TO} no clear difference",
    "too_little_to_judge": "\N{ALMOST EQUAL TO} too little to judge",
}


@dataclass(frozen=True, slots=True)
class WorkloadChanges:
    """One workload that both runs have."""

    title: str
    figures: Figures
    note: str
    """Why nothing may be claimed; empty if something may."""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """What became of a run's figures in another one."""

    before: RunSummary
    after: RunSummary
    differences: tuple[str, ...]
    """Settings, build, device, files; empty if all that is known is the same."""
    workloads: tuple[WorkloadChanges, ...]
    unmatched: tuple[str, ...]


def run_changes(before: StoredRun, after: StoredRun) -> RunChanges:
    """Return two runs beside each other.

    Raises:
        StoreError: one of them cannot be read.
    """
    from localspec.errors import StoreError
    from localspec.session.records import document_of
    from localspec.session.run_comparison import compare_runs

    documents: tuple[Record, Record] = document_of(before), document_of(after)
    try:
        found = compare_runs(*documents)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(
            f"Runs {before.summary.id} and {after.summary.id} cannot be compared: what is kept of one is damaged.",
            "Measure again.",
        ) from error
    names = f"run {before.summary.id}", f"run {after.summary.id}"
    return RunChanges(
        before=before.summary,
        after=after.summary,
        differences=tuple(one_line(str(difference)) for difference in found.differences),
        workloads=tuple(_workload(workload, *names) for workload in found.workloads),
        unmatched=tuple(map(one_line, found.unmatched)),
    )


def _workload(workload: WorkloadChange, before: str, after: str) -> WorkloadChanges:
    from localspec.session.run_comparison import unusable_sentence

    own, title = one_line(workload.name), one_line(workload.title)
    arms = workload.arms
    rows = [
        (f"{speed_unit()}, {before}", *(_rates(arm.decode_tps.before) for arm in arms)),
        (f"{speed_unit()}, {after}", *(_rates(arm.decode_tps.after) for arm in arms)),
        ("ratio", *(_times(arm.decode_tps.ratio) for arm in arms)),
        ("so it is", *(_verdict(arm.decode_tps) for arm in arms)),
    ]
    if any(arm.speedup.before is not None or arm.speedup.after is not None for arm in arms):
        rows += [
            ("", *("" for _ in arms)),
            (f"speedup, {before}", *(_times(arm.speedup.before) for arm in arms)),
            (f"speedup, {after}", *(_times(arm.speedup.after) for arm in arms)),
            ("ratio of speedups", *(_times(arm.speedup.ratio) for arm in arms)),
            ("so the gain is", *(_gain(arm.speedup) for arm in arms)),
        ]
    figures = Figures(tuple(one_line(arm.name) for arm in arms), tuple(rows))
    note = one_line(unusable_sentence(workload, before, after))
    return WorkloadChanges(own if title == own else f"{title} ({own})", figures, note)


def _rates(found: Estimate | None) -> str:
    return DASH if found is None else rate_span(found.median, found.low, found.high)


def _times(found: Estimate | None) -> str:
    if found is None:
        return DASH
    span = "" if found.low is None or found.high is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.median:.2f}x{span}"


def _verdict(change: Change) -> str:
    return DASH if change.verdict is None else WORDS[change.verdict]


def _gain(change: Change) -> str:
    return _verdict(change).replace("faster", "larger").replace("slower", "smaller")
