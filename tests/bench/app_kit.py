"""The terminal app under a pilot, as benchmarks drive it: with the real worker, and a heartbeat that hears of halts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import cast

from textual.pilot import Pilot

from localspec.engine.client import EngineClient
from localspec.engine.values import SpeculationSettings
from localspec.errors import OfflineError
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.bench.setting import Setting

_BEAT_S = 0.002
_PATIENCE_S = 600.0


@dataclass
class Heartbeat:
    """How long the event loop did not come round, at the longest, since the last reading."""

    longest_s: float = 0.0
    _task: asyncio.Task[None] | None = field(default=None)

    def start(self) -> None:
        """Begin to beat, in the running loop."""
        self._task = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        """Beat no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def read(self) -> float:
        """Return the longest halt, in seconds, and begin anew."""
        longest_s, self.longest_s = self.longest_s, 0.0
        return longest_s

    async def _beat(self) -> None:
        before_s = perf_counter()
        while True:
            await asyncio.sleep(_BEAT_S)
            now_s = perf_counter()
            self.longest_s = max(self.longest_s, now_s - before_s - _BEAT_S)
            before_s = now_s


@dataclass
class OpenApp:
    """An app that runs."""

    app: LocalspecApp
    pilot: Pilot[int]
    engine: EngineClient
    """The one that holds the models."""
    heart: Heartbeat
    """It does not beat before it is started."""

    @property
    def chat(self) -> ChatScreen:
        """The chat, which must be the screen that is shown."""
        return cast(ChatScreen, self.app.screen)

    async def until(self, is_so: Callable[[], object], what: str, look_s: float = 0.05) -> float:
        """Wait for something, and return the seconds that it took.

        Args:
            is_so: whether it is there.
            what: in words.
            look_s: between two looks. Each wakes this process, which is what some benchmarks measure.

        Raises:
            RuntimeError: it does not come.
        """
        began_s = perf_counter()
        while not is_so():
            if perf_counter() - began_s > _PATIENCE_S:
                raise RuntimeError(f"{what}: it did not come; the engine is {self.app.engine_state.busy!r}")
            await asyncio.sleep(look_s)
        return perf_counter() - began_s

    async def ask(self, question: str) -> None:
        """Write a question, and send it."""
        await self.until(lambda: not self.chat.is_working, "the end of the answer before")
        self.chat.prompt.put(question)
        self.chat.prompt.action_send()
        await self.until(lambda: self.chat.is_working, "the answer")


def offline_hub() -> object:
    """Stand in for the Hub of a machine without network."""
    raise OfflineError("There is no network.", "Everything local works without it.")


@asynccontextmanager
async def open_app(
    setting: Setting,
    folder: Path,
    speculation: SpeculationSettings,
    screen: str = "chat",
    max_tokens: int = 512,
    size: tuple[int, int] = (140, 40),
) -> AsyncIterator[OpenApp]:
    """Open the app on the real worker with the demo's pair.

    Args:
        setting: models and threads.
        folder: for logs and what is kept.
        speculation: how to draft.
        screen: the first one.
        max_tokens: of an answer.
        size: columns and rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    engines: list[EngineClient] = []

    def make_engine() -> EngineClient:
        engines.append(EngineClient(folder / f"engine{len(engines)}.log"))
        return engines[-1]

    services = AppServices(
        Settings(),
        make_engine=make_engine,
        open_hub=offline_hub,  # type: ignore[arg-type]
        open_database=lambda: Database(folder / "app.sqlite3"),
    )
    models = setting.models
    bench = Workbench(
        target=ChosenModel("target", models.target),
        draft=ChosenModel("draft", models.draft),
        speculation=speculation,
        context=setting.context,
        draft_context=setting.context,
        max_tokens=max_tokens,
    )
    app = LocalspecApp(services, Launch(workbench=bench, screen=screen))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        heart = Heartbeat()
        try:
            engine = app.room.engine
            assert isinstance(engine, EngineClient)
            yield OpenApp(app, pilot, engine, heart)
        finally:
            await heart.stop()
