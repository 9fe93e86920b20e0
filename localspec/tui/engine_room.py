"""The two engines of the app: one that holds the models, and one that reads headers and measures memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

from localspec.engine.events import LoadProgress, ModelsLoaded
from localspec.engine.interface import Engine
from localspec.engine.requests import Unload
from localspec.engine.values import SpeculationState
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import load_models
from localspec.tui.state import EngineState, Workbench

OnLoad = Callable[[LoadProgress], None]


class EngineRoom:
    """Owns the engines. Whatever uses the one with the models does so inside `occupied`, one after the other."""

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        on_state: Callable[[EngineState], None],
        reserve_bytes: int = DEFAULT_RESERVE_BYTES,
    ) -> None:
        """Prepare the room; no process starts yet.

        Args:
            make_engine: called once for each of the two engines, when it is needed.
            on_state: told of every change, in the event loop.
            reserve_bytes: kept free on each device when models are placed.
        """
        self._reserve_bytes = reserve_bytes
        self._make_engine = make_engine
        self._on_state = on_state
        self._engine: Engine | None = None
        self._probe: Engine | None = None
        self._loaded_for: Workbench | None = None
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
                self._loaded_for = None
                self._change(loaded=None, speculation=None, failure=error.message)
                raise
            finally:
                self._change(busy="")

    async def load(self, bench: Workbench, on_progress: OnLoad) -> ModelsLoaded:
        """Have the bench's models loaded, and return what is loaded. Call it inside `occupied`.

        Nothing happens if they are loaded already with the same contexts. How tokens are drafted may differ: that
        is changed by `Configure`.

        Raises:
            UsageError: no target is chosen.
            ModelLoadError: they would not fit into memory, or llama.cpp could not load them.
        """
        if bench.target is None:
            raise UsageError("No target model is chosen.", "Choose one on the Models screen.")
        loaded = self.state.loaded
        if loaded is not None and self._loaded_for is not None and _same_load(self._loaded_for, bench):
            return loaded
        draft = None if bench.draft is None else bench.draft.path
        self._loaded_for = None
        self._change(loaded=None, speculation=None)
        try:
            plan = await plan_load(
                self.engine,
                bench.target.path,
                draft,
                bench.context,
                bench.draft_context,
                reserve_bytes=self._reserve_bytes,
                is_forced=bench.is_forced,
            )
            loaded = await load_models(
                self.engine,
                bench.target.path,
                draft,
                plan.context,
                bench.speculation,
                on_progress,
                plan.draft_context,
            )
        except LocalspecError as error:
            self._change(failure=error.message)
            raise
        self.load_plan = plan
        self._loaded_for = bench
        self._change(loaded=loaded, speculation=loaded.speculation)
        return loaded

    async def unload(self) -> None:
        """End the process that holds the models, if it does. The next load starts another.

        Raises:
            UsageError: something uses them.
        """
        async with self.occupied("unloading") as engine:
            self._loaded_for = self.load_plan = None
            async for _ in engine.stream(Unload(engine.next_id())):
                pass
            self._change(loaded=None, speculation=None)

    def note_speculation(self, state: SpeculationState) -> None:
        """Take over what the engine said of its drafter."""
        self._change(speculation=state)

    async def close(self) -> None:
        """End both engines, however often it is called."""
        engines = [engine for engine in (self._engine, self._probe) if engine is not None]
        self._engine = self._probe = None
        await asyncio.gather(*(engine.close() for engine in engines))

    def _change(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        self._on_state(self.state)


def _same_load(one: Workbench, other: Workbench) -> bool:
    parts = ("target", "draft", "context", "draft_context")
    return all(getattr(one, part) == getattr(other, part) for part in parts)
