"""Esc stops at once: counted in turns of the event loop and in requests, since no machine's speed can be relied on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from textual.app import App
from textual.pilot import Pilot

from localspec.catalog.hub.values import Offer, RepoFile, RepoListing
from localspec.engine.events import Event, PrefillProgress
from localspec.engine.requests import Generate, LoadModels, Request
from localspec.engine.values import SpeculationSettings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.scripted_engine import EchoEngine, ScriptedEngine
from tests.tui.looking import notices
from tests.tui.waiting import quiet, until

pytestmark = pytest.mark.slow

MOST_TURNS = 80
"""Of the event loop, from the key to the end: each takes far less than a millisecond where nothing holds it up."""


class WaitingEngine(ScriptedEngine):
    """Stops in the middle of something and goes on only if it is told to stop. It never goes on by itself."""

    def __init__(self, waits_in: str) -> None:
        super().__init__()
        self.waits_in = waits_in
        self.is_waiting = asyncio.Event()
        self._told = asyncio.Event()

    async def cancel(self, request_id: int) -> None:
        await super().cancel(request_id)
        self._told.set()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        num_rounds = 0
        async for event in super().stream(request):
            yield event
            num_rounds += event.type == "round_finished"
            is_there = {
                "load": event.type == "load_progress",
                "prefill": isinstance(event, PrefillProgress),
                "answer": isinstance(request, Generate) and num_rounds == 5,
            }
            if is_there[self.waits_in] and isinstance(request, Generate | LoadModels):
                self.is_waiting.set()
                await self._told.wait()


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[ScriptedEngine, str], LocalspecApp]:
    def open_with(engine: ScriptedEngine, screen: str) -> LocalspecApp:
        for name in ("big", "small"):
            (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
        bench = Workbench(
            ChosenModel("big", tmp_path / "big.gguf"),
            ChosenModel("small", tmp_path / "small.gguf"),
            SpeculationSettings("draft", n_max=4),
            max_tokens=200,
        )
        services = AppServices(make_engine=EchoEngine, open_database=lambda: Database(tmp_path / "kept.sqlite3"))
        app = LocalspecApp(services, Launch(workbench=bench, screen=screen))
        app.room._engine = engine
        return app

    return open_with


async def turns_until(is_so: Callable[[], object]) -> int:
    """Wait for something; return how often the event loop came round meanwhile."""
    for turn in range(100_000):
        if is_so():
            return turn
        # Threads and timers need real time, which is not counted in turns.
        await asyncio.sleep(0 if turn < 2000 else 0.001)
    raise AssertionError("it did not come to that")


def press_escape(app: App[int]) -> None:
    app.simulate_key("escape")


@pytest.mark.parametrize("waits_in", ["prefill", "answer"])
async def test_the_chat_stops_at_once(waits_in: str, opened: Callable[[ScriptedEngine, str], LocalspecApp]) -> None:
    engine = WaitingEngine(waits_in)
    app = opened(engine, "chat")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        screen = cast(ChatScreen, app.screen)
        screen.prompt.put("Say much.")
        await pilot.press("enter")
        await asyncio.wait_for(engine.is_waiting.wait(), 20)
        await drawn(pilot)
        press_escape(app)
        assert await turns_until(lambda: not screen.is_working and not app.engine_state.busy) < MOST_TURNS
        await pilot.pause()
        if waits_in == "answer":
            assert screen.turns[-1].figures.finish_reason == "cancelled"
            assert screen.turns[-1].text
        else:
            assert screen.prompt.text == "Say much."


async def test_a_comparison_stops_at_once(opened: Callable[[ScriptedEngine, str], LocalspecApp]) -> None:
    engine = WaitingEngine("answer")
    app = opened(engine, "compare")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        screen = cast(CompareScreen, app.screen)
        await pilot.press("r")
        await asyncio.wait_for(engine.is_waiting.wait(), 20)
        await drawn(pilot)
        press_escape(app)
        # Its texts are compared with numpy, and its run is kept: that may take some turns more.
        assert await turns_until(lambda: not screen.is_at_work and not app.engine_state.busy) < 2 * MOST_TURNS
        num_generated = len(engine.generated)
        await pilot.pause()
        assert len(engine.generated) == num_generated


async def test_downloads_stop_at_once_and_can_go_on(
    opened: Callable[[ScriptedEngine, str], LocalspecApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    ended: list[str] = []

    class Endless:
        def __init__(self, *_: object) -> None:
            """Take a Hub that is never asked."""

        async def fetch(self, wanted: list[tuple[RepoListing, Offer]], on_progress: object) -> None:
            begun.append(wanted[0][1].quantisation)
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(wanted[0][1].quantisation)

    class NoHub:
        async def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr("localspec.catalog.hub.queue.Downloads", Endless)
    app = opened(ScriptedEngine(), "models")
    app.downloads._open_hub = NoHub  # type: ignore[assignment]
    listing = RepoListing("a/b", "main", "c" * 40, (), (), "", False, 1)
    async with app.run_test(size=(80, 24)) as pilot:
        await quiet(pilot)
        for name in ("Q4_0", "Q8_0"):
            app.downloads.add(listing, Offer(name, "model", (RepoFile(f"{name}.gguf", 1 << 30, ""),)))
        await until(pilot, lambda: begun == ["Q4_0"])
        press_escape(app)
        assert await turns_until(lambda: ended == ["Q4_0"]) < MOST_TURNS
        await pilot.pause()
        assert begun == ["Q4_0"]
        assert [item.status for item in app.transfers] == ["paused", "paused"]
        assert "paused" in notices(app)
        app.downloads.resume(app.transfers[1].key)
        await until(pilot, lambda: begun == ["Q4_0", "Q8_0"])
        assert not app.downloads.pause_all() or app.transfers[1].status == "paused"


async def drawn(pilot: Pilot[int]) -> None:
    """Wait until what there is to draw is drawn."""
    with suppress(TimeoutError):
        await asyncio.wait_for(pilot.pause(), 2)
