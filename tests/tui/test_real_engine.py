"""The app with real engine processes and tiny models: answers, stops, comparisons, and engines that die."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest
from textual.pilot import Pilot

from localspec.engine.client import EngineClient
from localspec.engine.values import ContextSettings, Method, SpeculationSettings
from localspec.settings import Settings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Launch, Workbench
from localspec.tui.widgets.chat_activity import ChatActivity
from localspec.tui.widgets.speculation_badge import SpeculationBadge
from tests.terminal_kit import have_ended
from tests.tiny_gguf import CHATML, write_llama

pytestmark = pytest.mark.slow

LONG = 30_000
"""Tokens of an answer that no test waits for."""


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A target that never ends by itself, and a draft that often agrees."""
    folder = tmp_path_factory.mktemp("models")
    target = write_llama(folder / "target.gguf", template=CHATML, can_end=False, n_ctx_train=32768)
    return target, write_llama(folder / "draft.gguf", noise=0.02, can_end=False, n_ctx_train=32768)


@dataclass
class Stage:
    """The app, its pilot, and the engines that it has started."""

    app: LocalspecApp
    pilot: Pilot[int]
    engines: list[EngineClient]

    @property
    def chat(self) -> ChatScreen:
        screen = self.app.screen
        assert isinstance(screen, ChatScreen)
        return screen

    @property
    def engine(self) -> psutil.Process:
        """The process that holds the models."""
        engine = self.app.room._engine
        assert isinstance(engine, EngineClient)
        assert engine.pid is not None
        return psutil.Process(engine.pid)

    @property
    def says(self) -> str:
        """What stands between transcript and prompt."""
        return self.chat.query_one(ChatActivity).render().plain

    @property
    def notices(self) -> str:
        return "\n".join(notice.message for notice in self.app._notifications)

    async def until(self, is_so: Callable[[], object], patience_s: float = 60.0) -> None:
        async with asyncio.timeout(patience_s):
            while not is_so():
                await self.pilot.pause(0.02)

    async def ask(self, question: str) -> None:
        self.chat.prompt.put(question)
        await self.pilot.press("enter")
        await self.until(lambda: self.chat.is_working or not self.chat.prompt.text or self.notices)

    async def ask_and_wait(self, question: str) -> None:
        await self.ask(question)
        await self.until(lambda: not self.chat.is_working)


@dataclass
class Setting:
    """How a test's app is to be; `opened` opens it."""

    models: tuple[Path, Path]
    database: Path
    bench: Workbench = field(default_factory=Workbench)

    @asynccontextmanager
    async def opened(self, method: Method = "off", max_tokens: int = LONG, n_max: int = 4) -> AsyncIterator[Stage]:
        engines: list[EngineClient] = []

        def make() -> EngineClient:
            engines.append(EngineClient())
            return engines[-1]

        target, draft = (ChosenModel(path.stem, path) for path in self.models)
        bench = Workbench(
            target,
            draft,
            SpeculationSettings(method, n_max=n_max),
            context=ContextSettings(n_ctx=32768, n_threads=1),
            draft_context=ContextSettings(n_ctx=32768, n_threads=1),
            max_tokens=max_tokens,
        )
        services = AppServices(Settings(), make, open_database=lambda: Database(self.database))
        app = LocalspecApp(services, Launch(workbench=bench, screen="chat"))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            yield Stage(app, pilot, engines)
            left = [psutil.Process(engine.pid) for engine in engines if engine.pid is not None]
        assert have_ended(left, patience_s=0.5)


@pytest.fixture
def setting(models: tuple[Path, Path], database_path: Path) -> Setting:
    return Setting(models, database_path)


# Answers.


async def test_answers_are_the_same_however_they_are_drafted(setting: Setting) -> None:
    texts = {}
    async with setting.opened(max_tokens=80) as stage:
        for method in ("off", "draft", "ngram"):
            speculation = SpeculationSettings(method, n_max=4)
            stage.app.workbench = replace(stage.app.workbench, speculation=speculation)
            await stage.pilot.press("ctrl+n")
            await stage.ask_and_wait("abc abc abc abc")
            turn = stage.chat.turns[-1]
            assert turn.figures is not None
            assert turn.figures.num_tokens == 80
            texts[method] = turn.text
            state = stage.app.engine_state.speculation
            assert state is not None
            assert state.is_on is (method != "off")
            badge = stage.chat.query_one(SpeculationBadge).render().plain
            assert ("ON" in badge) is (method != "off")
        assert len({*texts.values()}) == 1
        # One load for all three: how to draft is changed without.
        assert stage.app.engine_state.loaded is not None
        assert stage.app.engine_state.loaded.draft is not None


async def test_a_chat_goes_on_and_is_kept(setting: Setting) -> None:
    async with setting.opened("draft", max_tokens=20) as stage:
        await stage.ask_and_wait("one")
        await stage.ask_and_wait("two")
        assert [turn.question for turn in stage.chat.turns] == ["one", "two"]
    with Database(setting.database) as database:
        (summary,) = Chats(database).summaries(5)
        roles = [message.role for message in Chats(database).get(summary.id).messages]
    assert roles == ["user", "assistant"] * 2


# Stopping.


async def test_escape_stops_an_answer_and_keeps_what_came(setting: Setting) -> None:
    async with setting.opened("draft") as stage:
        await stage.ask("go on for ever")
        await stage.until(lambda: "answering" in stage.says)
        engine = stage.engine
        await stage.pilot.press("escape")
        await stage.until(lambda: not stage.chat.is_working, patience_s=5)
        turn = stage.chat.turns[-1]
        assert turn.figures is not None
        assert turn.figures.finish_reason == "cancelled"
        assert 0 < (turn.figures.num_tokens or 0) < LONG
        # The models are still there, and answer.
        assert engine.is_running()
        await stage.ask("and again")
        await stage.until(lambda: "answering" in stage.says)
        assert stage.engine == engine
        await stage.pilot.press("escape")
        await stage.until(lambda: not stage.chat.is_working, patience_s=5)


async def test_escape_stops_the_reading_of_a_prompt(setting: Setting) -> None:
    async with setting.opened(max_tokens=5) as stage:
        await stage.ask_and_wait("short")
        question = "abcdefghij " * 2500
        await stage.ask(question)
        await stage.until(lambda: "reading the prompt" in stage.says or not stage.chat.is_working)
        assert "reading the prompt" in stage.says
        await stage.pilot.press("escape")
        await stage.until(lambda: not stage.chat.is_working, patience_s=5)
        assert [turn.question for turn in stage.chat.turns] == ["short"]
        # The question is not lost.
        assert stage.chat.prompt.text == question
        stage.chat.prompt.put("")
        await stage.ask_and_wait("short again")
        assert len(stage.chat.turns) == 2


async def test_escape_stops_loading(setting: Setting) -> None:
    async with setting.opened() as stage:
        await stage.pilot.press("ctrl+k")
        await stage.pilot.press("escape")
        await stage.until(lambda: not stage.chat.is_working, patience_s=5)
        await stage.ask("go on")
        await stage.until(lambda: "answering" in stage.says)


# Engines that die.


async def reload_and_go_on(stage: Stage, num_turns: int) -> None:
    """Check that one key brings the models back, and that the chat goes on."""
    assert "ctrl+k" in stage.says
    assert stage.app.engine_state.loaded is None
    await stage.pilot.press("ctrl+k")
    await stage.until(lambda: not stage.chat.is_working)
    assert stage.app.engine_state.loaded is not None
    assert stage.app.engine_state.failure == ""
    stage.app.workbench = replace(stage.app.workbench, max_tokens=10)
    await stage.ask_and_wait("still there?")
    assert len(stage.chat.turns) == num_turns + 1
    assert stage.chat.turns[-1].text


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
async def test_an_engine_killed_in_the_midst_of_an_answer(setting: Setting) -> None:
    async with setting.opened("draft") as stage:
        stage.app.workbench = replace(stage.app.workbench, max_tokens=20)
        await stage.ask_and_wait("before")
        stage.app.workbench = replace(stage.app.workbench, max_tokens=LONG)
        await stage.ask("go on for ever")
        await stage.until(lambda: "answering" in stage.says)
        stage.engine.kill()
        await stage.until(lambda: not stage.chat.is_working, patience_s=10)
        # The reason is said, and all that had come is there.
        assert "kill" in stage.says
        assert "kill" in stage.notices
        assert [turn.question for turn in stage.chat.turns] == ["before", "go on for ever"]
        assert stage.chat.turns[-1].text
        await reload_and_go_on(stage, 2)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
async def test_an_engine_killed_while_nothing_goes_on(setting: Setting) -> None:
    async with setting.opened(max_tokens=20) as stage:
        await stage.ask_and_wait("before")
        engine = stage.engine
        engine.kill()
        assert have_ended([engine])
        await stage.ask_and_wait("after")
        # Its death is noticed before the question is asked, and the models are loaded again for it.
        assert [turn.question for turn in stage.chat.turns] == ["before", "after"]
        assert stage.chat.turns[-1].text
        assert not stage.app.engine_state.failure
        assert stage.engine.pid != engine.pid


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
async def test_an_engine_that_hangs_is_ended_when_it_does_not_stop(setting: Setting) -> None:
    async with setting.opened() as stage:
        await stage.ask("go on for ever")
        await stage.until(lambda: "answering" in stage.says)
        engine = stage.engine
        engine.suspend()
        await stage.pilot.press("escape")
        assert "stopping" in stage.says
        await stage.until(lambda: not stage.chat.is_working, patience_s=10)
        assert have_ended([engine])
        assert stage.chat.turns[-1].text
        await reload_and_go_on(stage, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
async def test_quitting_ends_an_engine_that_hangs(setting: Setting) -> None:
    async with setting.opened() as stage:
        await stage.ask("go on for ever")
        await stage.until(lambda: "answering" in stage.says)
        engine = stage.engine
        engine.suspend()
        await stage.pilot.press("ctrl+q")
        await stage.until(lambda: have_ended([engine], patience_s=0.0), patience_s=20)
    assert stage.app.return_value == 0


async def test_a_model_that_is_none_is_refused_in_words(setting: Setting, tmp_path: Path) -> None:
    junk = tmp_path / "[bold]junk[x=1].gguf"
    junk.write_bytes(b"GGUF" + os.urandom(200))
    async with setting.opened(max_tokens=10) as stage:
        good = stage.app.workbench
        stage.app.workbench = replace(good, target=ChosenModel("[/]junk[x=1]", junk), draft=None)
        await stage.ask_and_wait("hello")
        assert stage.notices
        assert stage.app.engine_state.failure
        assert stage.chat.prompt.text == "hello"
        stage.app.workbench = good
        stage.chat.prompt.put("")
        await stage.ask_and_wait("hello again")
        assert len(stage.chat.turns) == 1


# Comparing.


async def test_a_pair_is_compared_and_kept(setting: Setting) -> None:
    async with setting.opened("draft") as stage:
        await stage.pilot.press("f5")
        await stage.pilot.pause()
        screen = stage.app.screen
        assert isinstance(screen, CompareScreen)
        screen.choice = replace(screen.choice, prompt="abc abc abc", max_tokens=24, num_pairs=1, percent=0.0)
        await stage.pilot.press("r")
        await stage.until(lambda: screen.card is not None and not screen.is_at_work)
        assert screen.card is not None
        (text,) = screen.card.texts
        # One pair is too little for an interval; the speeds are there.
        assert text.headline
        assert text.arms == ("off", "draft")
    with Database(setting.database) as database:
        (run,) = Runs(database).summaries(5)
        assert run.state == "done"


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
async def test_an_engine_killed_in_the_midst_of_a_comparison(setting: Setting) -> None:
    async with setting.opened("draft") as stage:
        await stage.pilot.press("f5")
        await stage.pilot.pause()
        screen = stage.app.screen
        assert isinstance(screen, CompareScreen)
        screen.choice = replace(screen.choice, prompt="abc abc abc", max_tokens=2000, num_pairs=9, percent=0.0)
        await stage.pilot.press("r")
        await stage.until(lambda: screen.left.num_tokens or screen.right.num_tokens)
        stage.engine.kill()
        await stage.until(lambda: not screen.is_at_work, patience_s=10)
        assert "kill" in stage.notices
        # The same key begins again.
        screen.choice = replace(screen.choice, max_tokens=24, num_pairs=1)
        await stage.pilot.press("r")
        await stage.until(lambda: not screen.is_at_work and screen.card is not None)
        assert stage.app.engine_state.loaded is not None
