"""What the suite of `auto` found, and whether that is what `auto` promises."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from localspec.errors import LocalspecError
from localspec.metrics.statistics import Estimate
from localspec.session.outcome import ComparisonResult
from localspec.session.verdict import factor_text
from localspec.store.values import Record

LEAST_OF_OFF = 0.97
"""Of the speed without drafts, on every workload."""

LEAST_OF_BEST = 0.95
"""Of the best fixed setting of each workload."""

LEAST_OF_SEGMENTS = 0.9
"""On a text that changes: of the best fixed setting of each part."""


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """One workload. Speedups are against drafting nothing."""

    workload: str
    off_tps: float | None
    grid: Mapping[str, float]
    """Speedup of every fixed setting, from the first, exhaustive pass."""
    auto: Estimate | None = None
    """From the second pass, as is all that follows."""
    best: str = ""
    """The fastest fixed setting of the finalists; `off` where none is faster than that."""
    best_speedup: Estimate | None = None
    """None where that is `off`."""
    auto_of_best: Estimate | None = None
    """Speed of auto / that of the best fixed setting, in each pair the one that was best in the others; None with
    fewer than two pairs."""
    single_speedup: float | None = None
    """Of the setting that is best over all workloads."""


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """Several kinds of text one after the other, with what was learnt in one carried into the next."""

    segments: tuple[str, ...]
    """Workloads."""
    best: tuple[str, ...]
    """The fastest setting of each, `off` included."""
    auto: Estimate | None
    """Speed of auto / that without drafts, over the whole."""
    auto_of_best: Estimate | None
    """Speed of auto / that of the best setting for each segment."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One promise."""

    words: str
    least: float
    value: float | None
    """None where it was not measured."""
    where: str = ""
    """The workload that decides."""
    num_known: int = 0
    """Workloads that the value stands on, where it is one over workloads."""
    num_workloads: int = 0
    """Those that it should stand on."""

    @property
    def is_partial(self) -> bool:
        """Whether workloads are missing in the value."""
        return self.value is not None and self.num_known < self.num_workloads

    @property
    def is_met(self) -> bool | None:
        """Whether the value reaches the least; None where that was not measured.

        The worst of a part says nothing good of the whole, but a promise that is missed in a part is missed.
        """
        if self.value is None:
            return None
        if self.value < self.least:
            return False
        return None if self.is_partial else True


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """All that was measured."""

    rows: tuple[SuiteRow, ...] = ()
    single: str = ""
    """The fixed setting that is fastest over all workloads; empty unless all have their grid."""
    switch: SwitchRow | None = None
    is_interrupted: bool = False
    notes: tuple[str, ...] = field(default=())
    num_workloads: int = 0
    """Of the suite; 0 stands for as many as there are rows."""
    failure: LocalspecError | None = None
    """Why it ended early after something had been measured."""
    comparisons: tuple[ComparisonResult, ...] = field(default=(), repr=False)
    """Of each workload that was begun: auto beside the finalists, or before that every fixed setting."""

    @property
    def auto_mean(self) -> float | None:
        """Geometric mean of auto's speedups over the workloads."""
        return _mean([None if row.auto is None else row.auto.median for row in self.rows])

    @property
    def single_mean(self) -> float | None:
        """Geometric mean of the speedups of the best single setting."""
        return _mean([row.single_speedup for row in self.rows])

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What auto promises, with what was measured."""
        of_off, where_off, num_off = _least((row.workload, row.auto) for row in self.rows)
        of_best, where_best, num_best = _least((row.workload, row.auto_of_best) for row in self.rows)
        num_all = max(self.num_workloads, len(self.rows))
        is_whole = len(self.rows) == num_all
        auto, single = self.auto_mean, self.single_mean
        segments = None if self.switch is None else self.switch.auto_of_best
        return (
            Goal("auto / off, on the worst workload", LEAST_OF_OFF, of_off, where_off, num_off, num_all),
            Goal(
                "auto / best fixed setting, on the worst workload",
                *(LEAST_OF_BEST, of_best, where_best, num_best, num_all),
            ),
            Goal(
                f"auto / best single setting over all workloads{f' ({self.single})' if self.single else ''}",
                1.0,
                None if auto is None or single is None or not is_whole else auto / single,
            ),
            Goal(
                "auto / best setting of each part, on a text that changes",
                LEAST_OF_SEGMENTS,
                None if segments is None else segments.median,
            ),
        )


def goal_line(goal: Goal) -> str:
    """Return a promise with what was found, such as `met: auto / off: 0.99 (chat), promised are 0.97 or more`."""
    if goal.value is None:
        return f"not measured: {goal.words}"
    where = f" ({goal.where})" if goal.where else ""
    if goal.is_partial:
        where += f", of {goal.num_known} of {goal.num_workloads} workloads"
    word = {True: "met", False: "missed", None: "not known of all"}[goal.is_met]
    return f"{word}: {goal.words}: {factor_text(goal.value)}{where}, promised are {goal.least:g} or more"


def suite_record(result: SuiteResult) -> Record:
    """Return the JSON of a suite: rows, switch, goals. The comparisons are the run's own document."""
    return {
        "rows": [asdict(row) for row in result.rows],
        "single": result.single,
        "auto_mean": result.auto_mean,
        "single_mean": result.single_mean,
        "switch": None if result.switch is None else asdict(result.switch),
        "goals": [{**asdict(goal), "is_met": goal.is_met} for goal in result.goals],
        "sentences": [goal_line(goal) for goal in result.goals],
        "num_workloads": max(result.num_workloads, len(result.rows)),
        "interrupted": result.is_interrupted,
        "notes": list(result.notes),
    }


def best_single(grids: Sequence[Mapping[str, float]]) -> str:
    """Return the setting with the greatest geometric mean of speedups over all workloads; empty without one."""
    names = set.intersection(*(set(grid) for grid in grids)) if grids else set()
    return max(sorted(names), key=lambda name: _mean([grid[name] for grid in grids]) or 0.0, default="")


def _least(found: Iterable[tuple[str, Estimate | None]]) -> tuple[float | None, str, int]:
    """Return the least value, whose it is, and of how many it is the least."""
    known = [(estimate.median, name) for name, estimate in found if estimate is not None]
    return (*min(known), len(known)) if known else (None, "", 0)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and value > 0.0]
    return statistics.geometric_mean(known) if known and len(known) == len(values) else None


def suite_sentences(document: Record) -> tuple[str, ...]:
    """Return what a kept run's suite says of each promise; empty for a run that was none."""
    suite = document.get("suite")
    sentences = suite.get("sentences") if isinstance(suite, dict) else None
    return tuple(map(str, sentences)) if isinstance(sentences, list) else ()
