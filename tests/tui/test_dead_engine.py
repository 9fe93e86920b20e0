"""A real engine process that dies under the chat: the reason is said, one key loads again, and no text is lost."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.engine.client import EngineClient
from localspec.engine.values import SpeculationSettings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.widgets.chat_activity import ChatActivity
from tests.tui.looking import notices
from tests.tui.waiting import until

pytestmark = pytest.mark.slow
if sys.platform == "win32":
    pytest.skip("signals are of Unix", allow_module_level=True)

WORKER = """
import pathlib, sys
import tests.fake_worker as worker
real = worker.generate
def generate(id_, word, arguments):
    word, *arguments = pathlib.Path(sys.argv[1]).read_text().split()
    real(id_, word, arguments)
worker.generate = generate
worker.main()
"""
"""A stand-in for the engine that does with each question what a file says."""


class Kit:
    """The app on such an engine."""

    def __init__(self, app: LocalspecApp, script: Path, engines: list[EngineClient]) -> None:
        self.app = app
        self.script = script
        self.engines = engines

    @property
    def screen(self) -> ChatScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def pid(self) -> int | None:
        """Of the process that holds the models."""
        return self.engines[0].pid

    @property
    def says(self) -> str:
        return self.screen.query_one(ChatActivity).render().plain

    @property
    def notices(self) -> str:
        return notices(self.app)

    @property
    def texts(self) -> list[str]:
        return [turn.text.strip() for turn in self.screen.turns]

    async def ask(self, pilot: Pilot[int], question: str, what: str) -> None:
        self.script.write_text(what)
        self.screen.prompt.put(question)
        await pilot.press("enter")
        await until(pilot, lambda: not self.screen.is_working)


@pytest.fixture
def kit(services: AppServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "chat")
    script, engines = tmp_path / "script", list[EngineClient]()
    script.write_text("answer 3")

    def make() -> EngineClient:
        engines.append(EngineClient(has_log=False, command=(sys.executable, "-c", WORKER, str(script))))
        return engines[-1]

    (tmp_path / "target.gguf").write_bytes(b"GGUF")
    app = LocalspecApp(replace(services, make_engine=make))
    app.workbench = Workbench(
        target=ChosenModel("target", tmp_path / "target.gguf"), speculation=SpeculationSettings("off")
    )
    return Kit(app, script, engines)


@asynccontextmanager
async def opened(kit: Kit) -> AsyncIterator[Pilot[int]]:
    async with kit.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        yield pilot


async def test_killed_amid_an_answer(kit: Kit, database_path: Path) -> None:
    async with opened(kit) as pilot:
        await kit.ask(pilot, "first", "answer 3")
        await kit.ask(pilot, "second", "sigkill 4 0.02")
        assert kit.texts == ["w0 w1 w2", "w0 w1 w2 w3"]
        assert kit.pid is None and kit.app.engine_state.loaded is None
        assert "killed" in kit.app.engine_state.failure and kit.app.engine_state.busy == ""
        assert "killed" in kit.says and kit.says.rstrip().endswith("ctrl+k loads again")
        assert "killed" in kit.notices
        assert kit.app.engine_state.speculation is None
        await pilot.press("ctrl+k")
        await until(pilot, lambda: kit.app.engine_state.loaded is not None and not kit.screen.is_working)
        assert kit.app.engine_state.failure == "" and "killed" not in kit.says
        await kit.ask(pilot, "third", "answer 2")
        assert kit.texts == ["w0 w1 w2", "w0 w1 w2 w3", "w0 w1"]
    with Database(database_path) as database:
        chat = Chats(database).get(1)
    assert [(message.role, message.finish_reason) for message in chat.messages if message.role == "assistant"] == [
        ("assistant", "length"),
        ("assistant", "incomplete"),
        ("assistant", "length"),
    ]


async def test_killed_while_nothing_was_asked_the_next_question_is_not_lost(kit: Kit) -> None:
    async with opened(kit) as pilot:
        await kit.ask(pilot, "first", "answer 3")
        assert kit.pid is not None
        os.kill(kit.pid, signal.SIGKILL)
        await kit.ask(pilot, "second", "answer 2")
        assert kit.texts == ["w0 w1 w2", "w0 w1"] and kit.app.engine_state.failure == ""


async def test_killed_while_idle_the_status_tells_it_and_one_key_loads_again(kit: Kit) -> None:
    async with opened(kit) as pilot:
        await kit.ask(pilot, "first", "answer 3")
        assert kit.pid is not None
        os.kill(kit.pid, signal.SIGKILL)
        await until(pilot, lambda: kit.app.engine_state.loaded is None)
        await until(pilot, lambda: "killed" in kit.says and kit.says.rstrip().endswith("ctrl+k loads again"))
        await pilot.press("ctrl+k")
        await until(pilot, lambda: kit.app.engine_state.loaded is not None and not kit.screen.is_working)
        assert kit.pid is not None and kit.app.engine_state.failure == ""


async def test_a_question_loads_again_by_itself_as_well(kit: Kit) -> None:
    async with opened(kit) as pilot:
        await kit.ask(pilot, "first", "exit3 2")
        assert kit.app.engine_state.loaded is None and kit.texts == ["w0 w1"]
        await kit.ask(pilot, "second", "answer 3")
        assert kit.texts == ["w0 w1", "w0 w1 w2"] and kit.app.engine_state.failure == ""


async def test_f12_unloads_and_the_chat_stays(kit: Kit) -> None:
    async with opened(kit) as pilot:
        await kit.ask(pilot, "first", "answer 3")
        await pilot.press("f12")
        await until(pilot, lambda: kit.app.engine_state.loaded is None)
        await until(pilot, lambda: "The models are unloaded." in kit.notices)
        assert kit.pid is None and kit.texts == ["w0 w1 w2"]
        assert "ctrl+k loads now" in kit.says and kit.app.engine_state.failure == ""
        await kit.ask(pilot, "second", "answer 2")
        assert len(kit.texts) == 2


async def test_f12_amid_an_answer_is_refused_and_after_a_death_has_nothing_to_do(kit: Kit) -> None:
    async with opened(kit) as pilot:
        kit.script.write_text("answer 400 0.01")
        kit.screen.prompt.put("first")
        await pilot.press("enter")
        await until(pilot, lambda: "answering," in kit.says)
        await pilot.press("f12")
        await until(pilot, lambda: "The engine is busy: answering." in kit.notices)
        assert kit.screen.is_working and kit.pid is not None
        os.kill(kit.pid, signal.SIGKILL)
        await until(pilot, lambda: not kit.screen.is_working)
        assert "killed" in kit.says
        await pilot.press("f12")
        await until(pilot, lambda: "No models are loaded." in kit.notices)
        assert "killed" in kit.says and len(kit.texts) == 1
