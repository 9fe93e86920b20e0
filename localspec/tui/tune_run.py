"""One search for the best settings, from loading the models to what is kept of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.catalog.workloads import Workload, load_workloads
from localspec.session.arms import BASELINE_NAME
from localspec.session.kind_outcome import outcome_line, outcomes_of
from localspec.session.measurement import Measurement, measurement_record
from localspec.session.run_keeping import RunKeeper
from localspec.session.tuning.confirmation import confirmation_of
from localspec.session.tuning.tuner import tune
from localspec.session.tuning.values import TuningResult
from localspec.session.tuning.words import result_sentences
from localspec.tui.engine_room import EngineRoom
from localspec.tui.own_texts import read_own_texts
from localspec.tui.services import AppServices
from localspec.tui.state import Workbench
from localspec.tui.tune_choice import TuneChoice, drafts_of, make_plan
from localspec.tui.tuning_state import TuneOutcome, TuneSnapshot, advised, after, snapshot_of

if TYPE_CHECKING:
    from localspec.session.tuning.values import TuningProgress


class TuneRun:
    """Carried out once. What is to be shown of it meanwhile is in `shown`."""

    def __init__(self, room: EngineRoom, services: AppServices) -> None:
        """Prepare; nothing happens yet.

        Args:
            room: has the engine.
            services: open the database; their settings are in force.
        """
        self._room = room
        self._services = services
        self._drafts: tuple[Path, ...] = ()
        self._newest: TuningProgress | None = None
        self._last = TuneSnapshot()

    @property
    def shown(self) -> TuneSnapshot:
        """The search as it is now. It is made when it is asked for: progress comes while answers are timed."""
        if self._newest is not None:
            self._last, self._newest = snapshot_of(self._newest, self._drafts), None
        return self._last

    async def carry_out(self, choice: TuneChoice, bench: Workbench) -> TuneOutcome:
        """Search, confirm and keep. Cancelling it after the models are loaded ends it with what is known.

        Raises:
            LocalspecError: nothing was found out.
        """
        workloads = await asyncio.to_thread(load_workloads)
        own: tuple[Workload, ...] = ()
        if choice.is_own:
            max_tokens = self._services.settings.bench.max_tokens
            own = await asyncio.to_thread(read_own_texts, self._services, bench.context, max_tokens)
        plan = make_plan(choice, bench, self._services.settings, workloads, own)
        self._drafts = plan.drafts
        self._last = TuneSnapshot(budget_s=plan.budget_s, doing="starting")
        async with self._room.lent("tuning") as engine:
            result = await tune(engine, plan, self._take)
        self._last, self._newest = after(result, self.shown), None
        return await self._outcome(result, choice, bench)

    def _take(self, progress: TuningProgress) -> None:
        self._newest = progress

    async def _outcome(self, result: TuningResult, choice: TuneChoice, bench: Workbench) -> TuneOutcome:
        notices: list[str] = []
        measurement = confirmation_of(result)
        run_id, kinds = None, ""
        pays = False
        if measurement is not None:
            run_id = await asyncio.to_thread(self._keep, measurement, notices)
            if choice.is_own and (outcomes := outcomes_of(measurement_record(measurement))):
                kinds = outcome_line(outcomes)
                # A setting that was passed over for all texts must not come back for one of them.
                is_sound = result.is_conclusive and not any(one.reason for one in result.confirmed)
                pays = is_sound and any(outcome.pays for outcome in outcomes)
        arm = "" if result.winner is None else result.winner.arm
        failure = () if result.failure is None else (f"It broke off: {result.failure.message}",)
        return TuneOutcome(
            sentences=(*result_sentences(result), *((kinds,) if kinds else ())),
            notes=(*failure, *result.notes, *notices),
            tone="won" if result.winner is not None else "off" if result.is_conclusive else "open",
            run_id=run_id,
            arm=arm or (BASELINE_NAME if pays else ""),
            has_kinds=pays,
            advice=advised(result, bench, drafts_of(choice, bench)),
        )

    def _keep(self, measurement: Measurement, notices: list[str]) -> int | None:
        return RunKeeper("tune", self._services.open_database, notices.append).finish(measurement)
