"""Keeping a measurement while it goes on. What the store cannot do is said once, and disturbs nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import asdict

from localspec.engine.events import RoundFinished
from localspec.errors import LocalspecError, UsageError
from localspec.session.comparison import ComparisonProgress
from localspec.session.kept_document import rebuilt_document
from localspec.session.measurement import Measurement, MeasurementProgress, OnProgress, measurement_record
from localspec.session.records import Record, encode_record
from localspec.session.run_request import plan_of, request_of
from localspec.session.trial import Trial
from localspec.session.trial_record import round_record, trial_record
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.store.values import RunState

__all__ = ("RunKeeper", "plan_of", "request_of", "state_of")


class RunKeeper:
    """Keeps one measurement as a run: its rounds and trials as they come, and its document in the end.

    The run begins with the first comparison, so that a measurement that could not load its models leaves none.

    Args:
        kind: `bench`, `demo`, `tune` or `suite`.
        open_database: opens the store; it is closed by `finish` or `fail`.
        on_notice: takes sentences for the user.
        profile: name of the profile that is measured.
    """

    def __init__(
        self,
        kind: str,
        open_database: Callable[[], Database],
        on_notice: Callable[[str], None],
        profile: str = "",
    ) -> None:
        self._kind = kind
        self._open_database = open_database
        self._on_notice = on_notice
        self._profile = profile
        self._database: Database | None = None
        self._runs: Runs | None = None
        self._run_id: int | None = None
        self._has_failed = False
        self._seen: set[tuple[str, str, str, int]] = set()
        self._place = 0
        self._num_said = 0

    @property
    def run_id(self) -> int | None:
        """The run's number; None if it is not kept."""
        return self._run_id

    def watching(self, on_progress: OnProgress) -> OnProgress:
        """Return what passes a measurement's progress on, and keeps what it tells."""

        def watch(progress: MeasurementProgress) -> None:
            on_progress(progress)
            self.observe(progress)

        return watch

    def observe(self, progress: MeasurementProgress) -> None:
        """Keep what is new. Nothing is raised."""
        comparison, opening = progress.comparison, progress.opening
        if comparison is None or opening is None or self._has_failed:
            return
        if self._run_id is None:
            self._attempt(lambda: self._begin(opening))
        if comparison.phase != "trial":
            self._place = 0
        elif comparison.trial is not None:
            trial = comparison.trial
            self._attempt(lambda: self._keep_trial(comparison, trial, progress.part))
        elif isinstance(comparison.event, RoundFinished):
            event = comparison.event
            self._attempt(lambda: self._keep_round(comparison, event))

    def finish(self, measurement: Measurement, more: Record | None = None) -> int | None:
        """Keep the document, with what more it says, and return the run's number; None if it could not be kept."""
        document = {**measurement_record(measurement), **(more or {})}
        state = state_of(measurement)
        kept = self._attempt(lambda: self._keep_document(measurement, document, state), True)
        if kept and self._database is not None and not self._database.is_in_place:
            kept = self._attempt(lambda: self._keep_again(measurement, document, state), True)
        self._close()
        return self._run_id if kept else None

    def fail(self, reason: str) -> None:
        """Keep that the measurement broke off, with what it had brought."""
        if self._run_id is not None:
            self._attempt(lambda: self._keep_failure(reason), True)
        self._close()

    def _begin(self, opening: Measurement) -> None:
        if self._runs is None:
            self._database = self._open_database()
            self._runs = Runs(self._database)
        frame = measurement_record(opening)
        frame["device"]["throttling"] = None
        request = {**request_of(opening.plan, opening.hashes), "frame": _plain(frame)}
        self._run_id = self._runs.start(self._kind, request, self._profile)
        self._say_notices()

    def _keep_round(self, comparison: ComparisonProgress, event: RoundFinished) -> None:
        if self._runs is not None and self._run_id is not None:
            where = {"workload": comparison.workload_name, "arm": comparison.arm.name, "pair": comparison.pair}
            self._runs.add_round(self._run_id, self._place, {**where, **round_record(event)})

    def _keep_trial(self, comparison: ComparisonProgress, trial: Trial, part: str) -> None:
        key = (part, comparison.workload_name, trial.arm, trial.pair)
        record = {
            **trial_record(trial),
            "workload": comparison.workload_name,
            **({"part": part} if part else {}),
            # A second run of one arm in one pair is the baseline's last.
            "is_closing": key in self._seen,
            "speculation": asdict(trial.speculation),
            "device_used_bytes": trial.device_used_bytes,
        }
        self._seen.add(key)
        self._place += 1
        if self._runs is not None and self._run_id is not None:
            self._runs.add_trial(self._run_id, _plain(record))

    def _keep_document(self, measurement: Measurement, document: Record, state: RunState) -> None:
        # What was in the way at the beginning may be gone.
        if self._runs is None or self._run_id is None:
            self._begin(measurement)
        try:
            self._finish(document, state)
        except UsageError:
            # Its database was set aside meanwhile, or somebody deleted it; here it is whole.
            self._begin(measurement)
            self._finish(document, state)

    def _keep_again(self, measurement: Measurement, document: Record, state: RunState) -> None:
        """Keep the whole run anew, since what it was written to has gone."""
        assert self._database is not None
        path = self._database.path
        self._close()
        self._num_said, self._run_id = 0, None
        self._begin(measurement)
        self._finish(document, state)
        self._on_notice(
            f"note: {path} was removed or replaced while this was measured. The run is kept in what lies there now."
        )

    def _finish(self, document: Record, state: RunState) -> None:
        if self._runs is not None and self._run_id is not None:
            self._runs.finish(self._run_id, _plain(document), state)

    def _keep_failure(self, reason: str) -> None:
        if self._runs is not None and self._run_id is not None:
            document = rebuilt_document(self._runs.get(self._run_id))
            self._finish({**document, "interrupted": False, "failure": reason}, "failed")

    def _attempt(self, work: Callable[[], None], is_end: bool = False) -> bool:
        """Do something with the store and return whether it worked. Only the first failure is said."""
        try:
            work()
        except (LocalspecError, sqlite3.Error, OSError, ValueError) as error:
            self._say_notices()
            if not self._has_failed:
                self._has_failed = True
                said = f"{error.message} {error.hint}".strip() if isinstance(error, LocalspecError) else str(error)
                # The document still gets its chance in the end.
                is_partial = self._run_id is not None and not is_end
                what = "The rounds of this run are not kept as they come" if is_partial else "This run is not kept"
                self._on_notice(f"{what}: {said}")
            return False
        return True

    def _say_notices(self) -> None:
        if self._database is not None:
            for notice in self._database.notices[self._num_said :]:
                self._on_notice(notice)
            self._num_said = len(self._database.notices)

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = self._runs = None


def state_of(measurement: Measurement) -> RunState:
    """Return how a measurement ended."""
    if measurement.is_interrupted:
        return "interrupted"
    return "failed" if measurement.failure is not None or measurement.refusals else "done"


def _plain(record: Record) -> Record:
    plain: Record = json.loads(encode_record(record))
    return plain
