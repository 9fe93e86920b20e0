"""One comparison from loading the models to its card, kept as a run as it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.catalog.workloads import Workload, load_workloads
from localspec.engine.events import Configured, GenerationStarted, LoadProgress
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Configure
from localspec.errors import EngineDiedError, LocalspecError, ModelLoadError
from localspec.methods import takes_draft
from localspec.session.examination import examine
from localspec.session.load_plan import LoadPlan
from localspec.session.measurement import Measurement, MeasurementPlan, MeasurementProgress, measure_loaded
from localspec.session.run_keeping import RunKeeper
from localspec.tui.compare_card import make_card
from localspec.tui.compare_choice import CompareChoice, arm_words, make_plan
from localspec.tui.engine_room import EngineRoom
from localspec.tui.own_texts import read_own_texts
from localspec.tui.race import RaceFold, RaceSnapshot
from localspec.tui.result_card import ResultCard
from localspec.tui.services import AppServices
from localspec.tui.state import Workbench

if TYPE_CHECKING:
    from localspec.session.arms import Arm


class CompareRun:
    """Carried out once. What is to be shown of it meanwhile is in `shown`."""

    def __init__(
        self, room: EngineRoom, services: AppServices, clock: Callable[[], float], on_notice: Callable[[str], None]
    ) -> None:
        """Prepare; nothing happens yet.

        Args:
            room: has the engine.
            services: open the database; their settings are in force.
            clock: counts seconds evenly.
            on_notice: takes sentences for the user.
        """
        self._room = room
        self._services = services
        self._clock = clock
        self._on_notice = on_notice
        self._fold: RaceFold | None = None

    @property
    def shown(self) -> RaceSnapshot | None:
        """The race as it is now; None until there is a plan of it."""
        return None if self._fold is None else self._fold.snapshot()

    async def carry_out(
        self, choice: CompareChoice, bench: Workbench, title: str, on_card: Callable[[ResultCard], None]
    ) -> None:
        """Load, measure and keep. Cancelling it after the models are loaded ends it with what was measured.

        Args:
            choice: what to compare.
            bench: the models, and how they are loaded.
            title: of the card.
            on_card: takes the card, as soon as there is one.

        Raises:
            LocalspecError: it could not be carried out, or the engine died on the way; the card came before that.
        """
        workloads = await asyncio.to_thread(load_workloads)
        own: tuple[Workload, ...] = ()
        if choice.is_own and not choice.prompt.strip():
            own = await asyncio.to_thread(read_own_texts, self._services, bench.context, choice.max_tokens)
        plan, lanes = make_plan(choice, bench, self._services.settings, workloads, own)
        num_prompts = {workload.name: len(workload.prompts) for workload in plan.workloads}
        titles = (arm_words(lanes[0].speculation), arm_words(lanes[1].speculation))
        self._fold = RaceFold(lanes, titles, plan.max_tokens, num_prompts, self._clock)
        self._fold.note_stage("loading the models", 0.0)
        async with self._room.occupied("comparing") as engine:
            measurement, run_id = await self._measure(engine, plan, bench)
            self._fold.note_stage("", 1.0)
            on_card(make_card(measurement, run_id, title, _names(lanes)))
            if isinstance(measurement.failure, EngineDiedError):
                raise measurement.failure
            await self._restore(engine, bench)
        if measurement.failure is not None:
            raise measurement.failure

    async def _measure(self, engine: Engine, plan: MeasurementPlan, bench: Workbench) -> tuple[Measurement, int | None]:
        loaded = await self._room.load(bench, self._note_load)
        has_use = plan.draft is not None and takes_draft(arm.speculation.method for arm in plan.arms)
        if has_use and loaded.draft is None:
            why = loaded.draft_failure.rstrip(".") or "the engine does not say why"
            raise ModelLoadError(f"The draft cannot be used: {why}.", "Choose another draft on the Models screen.")
        examination = await examine(engine)
        if examination.failure is not None:
            raise examination.failure
        memory = self._room.load_plan or LoadPlan(bench.context, bench.draft_context, None)
        keeper = RunKeeper("bench", self._services.open_database, self._on_notice)
        watch = keeper.watching(self._watch)
        if (learning := self._room.keeper) is not None:
            watch = learning.watching(watch)
        try:
            measurement = await measure_loaded(engine, plan, examination, loaded, memory, watch)
        except BaseException as error:
            keeper.fail(error.message if isinstance(error, LocalspecError) else "It was broken off.")
            raise
        return measurement, keeper.finish(measurement)

    def _note_load(self, event: LoadProgress) -> None:
        if self._fold is not None:
            self._fold.note_stage(f"loading the {event.model}", event.fraction)

    def _watch(self, progress: MeasurementProgress) -> None:
        if self._fold is None:
            return
        comparison = progress.comparison
        if comparison is None:
            self._fold.note_stage("reading the model files for their SHA-256", progress.fraction)
            return
        if isinstance(comparison.event, GenerationStarted):
            self._room.note_speculation(comparison.event.speculation)
        self._fold.observe(comparison, progress.fraction)

    async def _restore(self, engine: Engine, bench: Workbench) -> None:
        """Have tokens drafted as the bench says again."""
        # Measured runs began cold: what was learnt before is in force again.
        loaded, learning = self._room.state.loaded, self._room.keeper
        state = "" if loaded is None or learning is None else learning.start(loaded)
        answer = await last_event(engine, Configure(engine.next_id(), bench.speculation, pacing_state=state))
        if isinstance(answer, Configured):
            self._room.note_speculation(answer.speculation)


def keep_profile(
    services: AppServices, run_id: int, name: str, arm: str, replaces: bool, with_kinds: bool = False
) -> None:
    """Make a profile of an arm of a kept run, and keep it; with the best for each kind of own text, if wished. Blocks.

    Raises:
        LocalspecError: the name cannot be one or is taken, or the run cannot be read.
    """
    from localspec.session.library import local_models
    from localspec.session.profiles import make_profile
    from localspec.store.profiles import Profiles
    from localspec.store.runs import Runs

    repos: dict[Path, str] = {}
    for model in local_models(services.settings):
        repos.update(dict.fromkeys(model.shards, model.repo))
    with services.open_database() as database:
        stored = Runs(database).get(run_id)
        made = make_profile(
            name,
            stored,
            datetime.now(UTC),
            arm=arm,
            with_kinds=with_kinds,
            repo_of=lambda path: repos.get(path, ""),
        )
        Profiles(database).save(made, replaces=replaces)


def _names(lanes: tuple[Arm, Arm]) -> tuple[str, str]:
    return lanes[0].name, lanes[1].name
