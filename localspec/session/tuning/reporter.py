"""What is told of a search while it goes on."""

from __future__ import annotations

from collections.abc import Callable

from localspec.engine.events import Event
from localspec.session.measurement import MeasurementProgress
from localspec.session.tuning.search import Ledger
from localspec.session.tuning.space import heat_cells
from localspec.session.tuning.values import HeatCell, Stage, TuningPlan, TuningProgress, TuningTrial, WarmSetting

OnProgress = Callable[[TuningProgress], None]


class Reporter:
    """Knows the time and the stage, and tells them with all that is known.

    Args:
        plan: of the search.
        ledger: what it has found.
        clock: seconds.
        on_progress: hears it.
    """

    def __init__(self, plan: TuningPlan, ledger: Ledger, clock: Callable[[], float], on_progress: OnProgress) -> None:
        self._plan, self._ledger, self._clock, self._on_progress = plan, ledger, clock, on_progress
        self._started_s = clock()
        self._stage: Stage = "load"
        self._ends_s: dict[Stage, float] = {}
        self._num_tried = 0
        self._what = ""
        self._setting: WarmSetting | None = None
        # Folded when something is found, not with each event: these come while answers are timed.
        self._best: TuningTrial | None = None
        self._cells: tuple[HeatCell, ...] = ()
        self._trials: tuple[TuningTrial, ...] = ()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started_s

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self._plan.budget_s - self.elapsed_s

    def at(self, elapsed_s: float) -> float:
        """Return the clock's reading at so many seconds from the start."""
        return self._started_s + elapsed_s

    def plan_ends(self, **ends_s: float) -> None:
        """Take when stages should be over, in seconds from the start."""
        for stage in ("load", "screen", "search", "confirm"):
            if stage in ends_s:
                self._ends_s[stage] = ends_s[stage]

    def begin(self, stage: Stage) -> None:
        """Tell that a stage begins."""
        self._stage, self._num_tried, self._setting, self._what = stage, 0, None, ""
        self.tell()

    def trying(self, what: str) -> None:
        """Tell that a way of loading is tried."""
        self._num_tried += 1
        self._what = what
        self.tell()

    def running(self, setting: WarmSetting | None) -> None:
        """Tell that a way of drafting runs next; None is the baseline."""
        self._num_tried += setting is not None
        self._setting = setting
        self.tell()

    def changed(self) -> None:
        """Tell what has been found."""
        self._trials = self._ledger.trials()
        self._best, self._cells = self._ledger.best(), heat_cells(self._trials)
        self.tell()

    def hear(self, event: Event) -> None:
        """Pass an event of the engine on."""
        self.tell(event=event)

    def confirming(self, progress: MeasurementProgress) -> None:
        """Pass the confirmation's progress on."""
        self.tell(measurement=progress)

    def tell(self, event: Event | None = None, measurement: MeasurementProgress | None = None) -> None:
        """Tell where the search stands."""
        self._on_progress(
            TuningProgress(
                stage=self._stage,
                elapsed_s=self.elapsed_s,
                budget_s=self._plan.budget_s,
                stage_ends_s=tuple(self._ends_s.items()),
                trial=self._num_tried,
                what=self._what,
                setting=self._setting,
                ratio=None if self._setting is None else self._ledger.trial(self._setting).ratio,
                best=self._best,
                cells=self._cells,
                trials=self._trials,
                event=event,
                measurement=measurement,
            )
        )
