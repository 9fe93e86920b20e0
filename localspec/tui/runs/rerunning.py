"""Measuring a kept run again: on the app's engine, kept as a new run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError
from localspec.session.figures import speed_text
from localspec.session.plain_text import one_line
from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.metrics.meter import RateMeter
    from localspec.session.measurement import MeasurementPlan, MeasurementProgress
    from localspec.settings import Settings
    from localspec.store.database import Database
    from localspec.store.values import StoredRun
    from localspec.tui.engine_room import EngineRoom


@dataclass(frozen=True, slots=True)
class RerunStatus:
    """Where it stands."""

    text: str
    fraction: float | None = None
    """Of the stage; None where it is not known."""


@dataclass(frozen=True, slots=True)
class RerunEnd:
    """What it brought."""

    run_id: int | None
    """The new run's number; None if it could not be kept."""
    is_interrupted: bool
    failure: LocalspecError | None
    """Why it ended early, after something had been measured."""


async def rerun(
    room: EngineRoom,
    stored: StoredRun,
    settings: Settings,
    open_database: Callable[[], Database],
    on_status: Callable[[RerunStatus], None],
    on_notice: Callable[[str], None],
) -> RerunEnd:
    """Measure what a kept run measured, and keep it. Cancelling ends it early with what was measured until then.

    Args:
        room: its engine measures; what it had loaded is gone afterwards.
        stored: the run.
        settings: say where to look for files that were moved.
        open_database: for the new run.
        on_status: hears where it stands.
        on_notice: takes sentences: what differs now, what cannot be kept.

    Raises:
        LocalspecError: nothing could be measured.
    """
    from localspec.metrics.meter import RateMeter
    from localspec.session.draft_refusal import draft_refusal
    from localspec.session.examination import examine
    from localspec.session.library import local_models
    from localspec.session.measurement import measure_loaded
    from localspec.session.rerun import differences_now, make_rerun
    from localspec.session.run_keeping import RunKeeper

    on_status(RerunStatus(f"run {stored.summary.id} again: looking for its files"))
    models = await asyncio.to_thread(local_models, settings)
    again = make_rerun(stored, models, open_database=open_database)
    plan = again.plan
    meter = RateMeter(asyncio.get_running_loop().time)
    keeper = RunKeeper(stored.summary.kind, open_database, on_notice, stored.summary.profile)

    def hashed(num_done: int, num_total: int) -> None:
        on_status(RerunStatus("reading the files for their SHA-256", num_done / num_total if num_total else 1.0))

    def moved(progress: MeasurementProgress) -> None:
        event = None if progress.comparison is None else progress.comparison.event
        if event is not None and event.type == "generation_started":
            room.note_speculation(event.speculation)
        on_status(_status(progress, meter))

    async with room.occupied("comparing") as engine:
        try:
            found = await differences_now(engine, again, hashed)
            sentences = (*again.moved, *(one_line(str(difference)) for difference in found))
            if sentences:
                on_notice(f"Not as in run {again.run_id}:\n" + "\n".join(sentences))
            examination = await examine(engine)
            loaded = await room.load(
                _bench(plan), lambda event: on_status(RerunStatus(f"loading the {event.model}", event.fraction))
            )
            if plan.draft is not None and loaded.draft is None:
                raise draft_refusal(str(plan.target), loaded.draft_failure)
            assert room.load_plan is not None
            measurement = await measure_loaded(
                engine, plan, examination, loaded, room.load_plan, keeper.watching(moved)
            )
        except BaseException as error:
            keeper.fail(error.message if isinstance(error, LocalspecError) else "It was broken off.")
            raise
    run_id = keeper.finish(measurement)
    return RerunEnd(run_id, measurement.is_interrupted, measurement.failure)


def _bench(plan: MeasurementPlan) -> Workbench:
    draft = plan.draft
    return Workbench(
        target=ChosenModel(plan.target.stem, plan.target),
        draft=None if draft is None else ChosenModel(draft.stem, draft),
        speculation=plan.arms[0].speculation,
        context=plan.context,
        draft_context=plan.context if plan.draft_context is None else plan.draft_context,
        sampling=plan.sampling,
        is_forced=plan.is_forced,
    )


def _status(progress: MeasurementProgress, meter: RateMeter) -> RerunStatus:
    comparison = progress.comparison
    if comparison is None:
        return RerunStatus("reading the files for their SHA-256", progress.fraction)
    if comparison.event is None:
        meter.reset()
    elif comparison.event.type == "round_finished":
        meter.add(len(comparison.event.emitted))
    rate = meter.rate()
    figure = "" if rate is None else f", {speed_text(rate)}"
    where = one_line(comparison.workload_name)
    if comparison.phase == "warm_up":
        return RerunStatus(f"{where}: warming up, {one_line(comparison.arm.name)}{figure}", progress.fraction)
    pair = f"pair {comparison.pair + 1} of {comparison.num_pairs}"
    what = "why does its text differ? " if comparison.phase == "replay" else ""
    return RerunStatus(f"{where}: {pair}, {what}{one_line(comparison.arm.name)}{figure}", progress.fraction)
