"""The two engines of the app: one that holds the models, and one that reads headers and measures memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from localspec.errors import EngineDiedError, LocalspecError, ModelLoadError, UsageError
from localspec.session.figures import GIB
from localspec.session.loading import change_draft, load_models, require_files
from localspec.tui.keyed import keyed
from localspec.tui.state import EngineState, Workbench

if TYPE_CHECKING:
    from pathlib import Path

    from localspec.engine.events import Event, LoadProgress, ModelsLoaded
    from localspec.engine.interface import Engine
    from localspec.engine.requests import Request
    from localspec.engine.values import ContextSettings, SpeculationState
    from localspec.session.load_plan import LoadPlan
    from localspec.session.pacing_memory import PacingKeeper, PacingMemory

OnLoad = Callable[["LoadProgress"], None]

_OF_THE_DRAFT = ("draft", "draft_context")


class EngineRoom:
    """Owns the engines. Whatever uses the one with the models does so inside `occupied`, one after the other."""

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        on_state: Callable[[EngineState], None],
        reserve_bytes: int = GIB,
        open_learnt: Callable[[], PacingMemory] | None = None,
    ) -> None:
        """Prepare the room; no process starts yet.

        Args:
            make_engine: called once for each of the two engines, when it is needed.
            on_state: told of every change, in the event loop.
            reserve_bytes: kept free on each device when models are placed.
            open_learnt: gives what adaptive drafting has learnt earlier; None for nothing.
        """
        self._reserve_bytes = reserve_bytes
        self._make_engine = make_engine
        self._on_state = on_state
        self._open_learnt = open_learnt
        self._keeper: PacingKeeper | None = None
        self._engine: Engine | None = None
        self._probe: Engine | None = None
        self._lock = asyncio.Lock()
        self.state = EngineState()
        self.load_plan: LoadPlan | None = None
        """The plan behind what is loaded."""

    @property
    def engine(self) -> Engine:
        """The engine that holds the models. Use it inside `occupied` only."""
        if self._engine is None:
            self._engine = self._make_engine()
        return self._engine

    @property
    def probe(self) -> Engine:
        """The engine for headers, pairs and footprints; it takes one request at a time, in turn."""
        if self._probe is None:
            self._probe = self._make_engine()
        return self._probe

    @property
    def is_free(self) -> bool:
        """Whether nothing uses the models now."""
        return not self._lock.locked()

    @contextlib.asynccontextmanager
    async def occupied(self, what: str) -> AsyncIterator[Engine]:
        """Use the engine with the models; others have to wait until this is left.

        Args:
            what: what is going on, in a word or two, for the status line.

        Raises:
            UsageError: something else is using it.
            EngineDiedError: passed on; the state then says that the models are gone.
        """
        if self._lock.locked():
            raise UsageError(f"The engine is busy: {self.state.busy}.", "Stop that first, or wait.")
        async with self._lock:
            self._change(busy=what, failure="")
            try:
                yield self.engine
            except EngineDiedError as error:
                self._change(loaded=None, loaded_for=None, speculation=None, failure=error.message)
                raise
            finally:
                self._change(busy="")

    def look(self) -> None:
        """Notice that the engine has died while nothing was asked of it."""
        if self.is_free:
            self._note_death()

    def _note_death(self) -> None:
        if self.state.loaded is not None and (death := self.engine.death):
            self._change(loaded=None, loaded_for=None, speculation=None, failure=death)

    async def load(self, bench: Workbench, on_progress: OnLoad) -> ModelsLoaded:
        """Have the bench's models loaded, and return what is loaded. Call it inside `occupied`.

        Nothing happens if they are loaded already with the same contexts, and the engine lives. Where only the draft
        differs the target stays, with what it has read. How tokens are drafted may differ: that is changed by
        `Configure`.

        Raises:
            UsageError: no target is chosen.
            ModelLoadError: they would not fit into memory, and what was loaded is loaded still; or llama.cpp could not
                load them.
        """
        if bench.target is None:
            raise UsageError("No target model is chosen.", "Choose one on the Models screen.")
        self._note_death()
        loaded, before = self.state.loaded, self.state.loaded_for
        if loaded is not None and before is not None and _is_same(before, bench, "target", "context", *_OF_THE_DRAFT):
            return loaded
        try:
            if loaded is not None and before is not None and _is_same(before, bench, "target", "context"):
                plan = await self._plan_beside_target(bench, bench.target.path)
                if plan is not None:
                    return await self._change_draft(bench, plan, loaded, on_progress)
            plan = await self._plan(bench, bench.target.path, bench.context)
            return await self._load_anew(bench, bench.target.path, plan, on_progress)
        except LocalspecError as error:
            self._change(failure=error.message)
            raise

    async def _plan(self, bench: Workbench, target: Path, context: ContextSettings) -> LoadPlan:
        """Plan as if nothing were loaded, since what is will be gone.

        Raises:
            ModelLoadError: it would not fit.
        """
        from localspec.session.load_plan import plan_load

        loaded = self.state.loaded
        # A question about memory that kills its process is not to take loaded models along.
        engine = self.engine if loaded is None else self.probe
        try:
            return await plan_load(
                engine,
                target,
                None if bench.draft is None else bench.draft.path,
                context,
                bench.draft_context,
                reserve_bytes=self._reserve_bytes,
                is_forced=bench.is_forced,
                loaded=None if loaded is None else loaded.footprint,
            )
        except ModelLoadError as error:
            raise ModelLoadError(
                error.message, keyed("{mode.fit} shows what would fit, each way with one key.")
            ) from error

    async def _plan_beside_target(self, bench: Workbench, target: Path) -> LoadPlan | None:
        """Return the plan by which the bench's draft fits beside the target as it is loaded; None if there is none."""
        before = self.load_plan
        if before is None:
            return None
        # A context as large as fits stays as large as it is: to gain some by dropping a draft is not worth a reload.
        context = replace(bench.context, n_ctx=bench.context.n_ctx or before.context.n_ctx)
        try:
            plan = await self._plan(bench, target, context)
        except ModelLoadError:
            if bench.context.n_ctx:
                raise
            return None
        return plan if plan.context == before.context else None

    async def _change_draft(
        self, bench: Workbench, plan: LoadPlan, loaded: ModelsLoaded, on_progress: OnLoad
    ) -> ModelsLoaded:
        target_only = None if loaded.footprint is None else replace(loaded.footprint, draft=None)
        # Until the engine has answered, and if it is stopped before that, there is no draft.
        self._change(
            loaded_for=replace(bench, draft=None),
            loaded=replace(loaded, draft=None, draft_failure="", footprint=target_only),
            speculation=None,
        )
        draft = None if bench.draft is None else bench.draft.path
        answer = await change_draft(self.engine, draft, plan.draft_context, bench.speculation, on_progress)
        now = replace(
            loaded,
            draft=answer.draft,
            draft_failure=answer.draft_failure,
            speculation=answer.speculation,
            # None where this very draft was there already.
            footprint=answer.footprint or loaded.footprint,
        )
        return await self._take_loaded(bench, plan, now)

    async def _load_anew(self, bench: Workbench, target: Path, plan: LoadPlan, on_progress: OnLoad) -> ModelsLoaded:
        draft = None if bench.draft is None else bench.draft.path
        require_files(target, draft)
        self._change(loaded=None, loaded_for=None, speculation=None)
        loaded = await load_models(
            self.engine, target, draft, plan.context, bench.speculation, on_progress, plan.draft_context
        )
        return await self._take_loaded(bench, plan, loaded)

    async def _take_loaded(self, bench: Workbench, plan: LoadPlan, loaded: ModelsLoaded) -> ModelsLoaded:
        if (keeper := self.keeper) is not None:
            loaded = replace(loaded, speculation=await keeper.recall(self.engine, loaded))
        self.load_plan = plan
        self._change(loaded=loaded, loaded_for=bench, speculation=loaded.speculation, failure="")
        return loaded

    async def unload(self) -> None:
        """End the process that holds the models, if it does. The next load starts another.

        Raises:
            UsageError: something uses them.
        """
        async with self.occupied("unloading") as engine:
            await self._let_go(engine)

    async def _let_go(self, engine: Engine) -> None:
        from localspec.engine.requests import Unload

        self.load_plan = None
        self._change(loaded_for=None)
        async for _ in engine.stream(Unload(engine.next_id())):
            pass
        self._change(loaded=None, speculation=None)

    @contextlib.asynccontextmanager
    async def lent(self, what: str) -> AsyncIterator[Engine]:
        """Lend the engine, empty, to something that loads models by itself. What it has is followed meanwhile.

        Whatever is loaded in the end is no bench's, so the next `load` begins anew.

        Args:
            what: as for `occupied`.

        Raises:
            UsageError: something else is using it.
        """
        from localspec.tui.overheard_engine import OverheardEngine

        async with self.occupied(what) as engine:
            if self.state.loaded is not None:
                await self._let_go(engine)
            self.load_plan = None
            yield OverheardEngine(engine, self._overhear)

    def _overhear(self, request: Request, event: Event) -> None:
        loaded = self.state.loaded
        if event.type == "load_progress" and request.type == "load_models" and loaded is not None:
            self._change(loaded=None, speculation=None)
        elif event.type == "models_loaded":
            self._change(loaded=event, loaded_for=None, speculation=event.speculation)
        elif event.type == "configured":
            if request.type == "configure" and request.draft_path is not None and loaded is not None:
                loaded = replace(loaded, draft=event.draft, footprint=event.footprint or loaded.footprint)
            self._change(loaded=loaded, speculation=event.speculation)
        elif event.type == "generation_started" and event.speculation != self.state.speculation:
            self._change(speculation=event.speculation)

    @property
    def keeper(self) -> PacingKeeper | None:
        """Keeps what adaptive drafting learns; None where nothing is kept."""
        if self._keeper is None and self._open_learnt is not None:
            from localspec.session.pacing_memory import PacingKeeper

            self._keeper = PacingKeeper(self._open_learnt())
        return self._keeper

    def hear(self, event: Event) -> None:
        """Take over what the engine said of its drafter, and keep what that has learnt."""
        if event.type in ("generation_started", "generation_finished", "configured"):
            self.note_speculation(event.speculation)
        elif event.type == "pacing_reported" and (keeper := self.keeper) is not None:
            keeper.observe(event)

    def note_speculation(self, state: SpeculationState, kind: str | None = None) -> None:
        """Take over what the engine said of its drafter.

        Args:
            state: as it said.
            kind: of text, that it drafts so for; empty for all, None as it was.
        """
        self._change(speculation=state, **({} if kind is None else {"kind": kind}))

    async def close(self) -> None:
        """End both engines, however often it is called."""
        engines = [engine for engine in (self._engine, self._probe) if engine is not None]
        self._engine = self._probe = None
        await asyncio.gather(*(engine.close() for engine in engines))

    def _change(self, **changes: object) -> None:
        before, self.state = self.state.speculation, replace(self.state, **changes)  # type: ignore[arg-type]
        if self.state.kind and "kind" not in changes and not _drafts_alike(before, self.state.speculation):
            self.state = replace(self.state, kind="")
        self._on_state(self.state)


def _is_same(one: Workbench, other: Workbench, *parts: str) -> bool:
    return all(getattr(one, part) == getattr(other, part) for part in parts)


def _drafts_alike(one: SpeculationState | None, other: SpeculationState | None) -> bool:
    return one is not None and other is not None and one.settings == other.settings
