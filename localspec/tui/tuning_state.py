"""What is shown of a search for the best settings: a fold over its progress, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.session.tuning.values import HeatCell, Stage, TuningProgress, TuningResult, TuningTrial

StageState = Literal["done", "now", "to_come"]

NAMES: tuple[tuple[Stage, str], ...] = (
    ("load", "load"),
    ("screen", "threads"),
    ("search", "drafting"),
    ("confirm", "confirm"),
)
"""The stages in a word each."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of drafting that was tried."""

    name: str
    ratio: float | None
    """Speed / that without drafts; None if it could not run."""
    num_pairs: int = 0
    is_best: bool = False
    is_running: bool = False
    reason: str = ""
    """Why it could not run."""


@dataclass(frozen=True, slots=True)
class TuneSnapshot:
    """A search at one moment."""

    stage: Stage = "load"
    stages: tuple[tuple[str, StageState], ...] = tuple((name, "to_come") for _, name in NAMES)
    doing: str = ""
    """What is going on, in half a sentence."""
    elapsed_s: float = 0.0
    budget_s: float = 0.0
    stage_left_s: float | None = None
    cells: tuple[HeatCell, ...] = ()
    best_cell: tuple[int, float] | None = None
    running_cell: tuple[int, float] | None = None
    ways: tuple[Way, ...] = ()
    """The best first."""

    @property
    def share(self) -> float:
        """Of the budget that is gone."""
        return min(1.0, self.elapsed_s / self.budget_s) if self.budget_s > 0.0 else 0.0

    @property
    def left_s(self) -> float:
        """Of the budget."""
        return max(0.0, self.budget_s - self.elapsed_s)


@dataclass(frozen=True, slots=True)
class TuneOutcome:
    """How a search ended."""

    sentences: tuple[str, ...]
    """Texts in them may come from files."""
    notes: tuple[str, ...] = ()
    tone: Literal["won", "off", "open"] = "open"
    """open: it ended early, and nothing is known for sure."""
    run_id: int | None = None
    arm: str = ""
    """Of the kept run, that a profile may be made of; empty for none."""
    has_kinds: bool = False
    """The profile holds a setting for each kind of own text."""
    advice: Workbench | None = None
    """The bench with what was found best; None while nothing is known."""


def snapshot_of(progress: TuningProgress, drafts: tuple[Path, ...]) -> TuneSnapshot:
    """Return what is shown of a piece of progress.

    Args:
        progress: the newest.
        drafts: candidates, so that settings are named by theirs.
    """
    order = [stage for stage, _ in NAMES]
    place = order.index(progress.stage)
    stages: list[tuple[str, StageState]] = [
        (name, "done" if index < place else "now" if index == place else "to_come")
        for index, (_, name) in enumerate(NAMES)
    ]
    ends_s = dict(progress.stage_ends_s).get(progress.stage)
    running = None if progress.setting is None else progress.setting.speculation
    is_on_map = running is not None and running.method == "draft" and running.pacing == "fixed"
    return TuneSnapshot(
        stage=progress.stage,
        stages=tuple(stages),
        doing=_doing(progress, drafts),
        elapsed_s=progress.elapsed_s,
        budget_s=progress.budget_s,
        stage_left_s=None if ends_s is None else max(0.0, ends_s - progress.elapsed_s),
        cells=progress.cells,
        best_cell=best_cell(progress.cells),
        running_cell=(running.n_max, running.p_min) if running is not None and is_on_map else None,
        ways=ways_of(progress.trials, drafts, progress),
    )


def after(result: TuningResult, shown: TuneSnapshot) -> TuneSnapshot:
    """Return what is shown once a search has ended."""
    return replace(
        shown,
        doing="",
        elapsed_s=result.elapsed_s,
        stage_left_s=None,
        stages=tuple(
            (name, "done" if state == "done" or result.is_conclusive else "to_come") for name, state in shown.stages
        ),
        cells=result.cells,
        best_cell=best_cell(result.cells),
        running_cell=None,
        ways=ways_of(result.trials, result.plan.drafts),
    )


def best_cell(cells: tuple[HeatCell, ...]) -> tuple[int, float] | None:
    """Return the place of the fastest cell; None if none is faster than no drafts."""
    best = max(cells, key=lambda cell: cell.ratio, default=None)
    return None if best is None or best.ratio <= 1.0 else (best.n_max, best.p_min)


def ways_of(
    trials: tuple[TuningTrial, ...], drafts: tuple[Path, ...], progress: TuningProgress | None = None
) -> tuple[Way, ...]:
    """Return the ways that were tried, in the order of the trials."""
    from localspec.session.tuning.space import setting_name

    running = None if progress is None else progress.setting
    best = trials[0] if trials and (trials[0].ratio or 0.0) > 1.0 and not trials[0].reason else None
    return tuple(
        Way(
            setting_name(trial.setting, drafts),
            None if trial.reason else trial.ratio,
            trial.num_pairs,
            trial is best,
            trial.setting == running,
            trial.reason,
        )
        for trial in trials
    )


def advised(result: TuningResult, bench: Workbench, drafts: tuple[ChosenModel, ...]) -> Workbench | None:
    """Return the bench with what was found best, drafts off included; None where nothing was confirmed."""
    winner, cold = result.winner, result.cold
    if winner is None and not result.is_conclusive:
        return None
    loaded = replace(bench, context=cold.context, draft_context=cold.draft_context)
    if winner is None:
        return replace(loaded, speculation=replace(bench.speculation, method="off"))
    own = replace(winner.setting.speculation, remembers=bench.speculation.remembers)
    path = winner.setting.draft
    draft = bench.draft if path is None else next((one for one in drafts if one.path == path), None)
    return replace(loaded, draft=draft or bench.draft, speculation=own)


def _doing(progress: TuningProgress, drafts: tuple[Path, ...]) -> str:
    from localspec.session.tuning.space import setting_name

    measured = progress.measurement
    if measured is not None and measured.comparison is not None:
        told = measured.comparison
        return f"{told.workload_name}: pair {told.pair + 1} of {told.num_pairs}, {told.arm.name} runs"
    event = progress.event
    if event is not None and event.type == "load_progress":
        return f"loading the {event.model}"
    if progress.what:
        return f"trying {progress.what}"
    if progress.stage == "search":
        return "off runs" if progress.setting is None else f"{setting_name(progress.setting, drafts)} runs"
    return "seeing how fast answers are" if progress.stage == "load" else ""
