"""The list of kept chats: nothing is deleted by accident, and what is open is not kept under a number that is gone."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from localspec.engine.values import SpeculationSettings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chat_list import ChatList
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from tests.scripted_engine import EchoEngine
from tests.tui.looking import notices
from tests.tui.waiting import until

pytestmark = pytest.mark.slow

TITLES = ("whales", "[/] [bold \x1b[31m", "bears")
"""The newest last."""


@pytest.fixture(autouse=True)
def only_the_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "chat")


@pytest.fixture
def app(services: AppServices, database_path: Path, tmp_path: Path) -> LocalspecApp:
    with Database(database_path) as database:
        chats = Chats(database)
        for title in TITLES:
            chat_id = chats.start(title, {"target": {"name": "tiny"}})
            chats.add_message(chat_id, "user", f"about {title}")
            chats.add_message(chat_id, "assistant", "yes")
    (tmp_path / "target.gguf").write_bytes(b"GGUF")
    app = LocalspecApp(replace(services, make_engine=EchoEngine))
    app.workbench = Workbench(
        target=ChosenModel("target", tmp_path / "target.gguf"), speculation=SpeculationSettings("off")
    )
    return app


@contextlib.asynccontextmanager
async def opened(app: LocalspecApp, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Pilot[int]]:
    """The list, with the cursor on the newest chat."""
    async with app.run_test(size=size) as pilot:
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and len(shown(app)) == len(TITLES))
        await pilot.press("down")
        yield pilot


def listing(app: LocalspecApp) -> OptionList:
    return app.screen.query_one("#found", OptionList)


def shown(app: LocalspecApp) -> list[str]:
    return [str(option.prompt) for option in listing(app).options]


def kept(path: Path) -> list[str]:
    with Database(path) as database:
        return [summary.title for summary in Chats(database).summaries()]


def chat_of(app: LocalspecApp) -> ChatScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, ChatScreen)
    return screen


async def test_x_asks_in_the_chats_own_place_and_y_deletes(app: LocalspecApp, database_path: Path) -> None:
    async with opened(app) as pilot:
        await pilot.press("down", "x")
        await pilot.pause()
        assert "delete its 2 messages?" in shown(app)[1] and "y deletes" in shown(app)[1]
        assert "[/] [bold [31m" in shown(app)[1]
        await pilot.press("y")
        await until(pilot, lambda: len(shown(app)) == 2)
        assert listing(app).highlighted == 1
    assert kept(database_path) == ["bears", "whales"]


@pytest.mark.parametrize("key", ["n", "escape", "up", "enter", "x", "shift+tab"])
async def test_no_other_key_deletes(app: LocalspecApp, database_path: Path, key: str) -> None:
    async with opened(app) as pilot:
        await pilot.press("down", "x", key)
        await pilot.pause()
        assert isinstance(app.screen, ChatList)
        if key not in ("enter", "x"):
            assert app.screen.change is None
            assert not [text for text in shown(app) if "! delete" in text]
            await pilot.press("y")
            await pilot.pause()
    assert len(kept(database_path)) == 3


async def test_while_words_are_written_no_letter_is_a_key(app: LocalspecApp, database_path: Path) -> None:
    async with opened(app) as pilot:
        await pilot.press("shift+tab", *"xey")
        await pilot.pause()
        assert app.screen.query_one("#words", Input).value == "xey"
        await until(pilot, lambda: shown(app) == [])
        await pilot.press("down", "x", "e", "y")
    assert len(kept(database_path)) == 3


async def test_a_chat_gets_another_title(app: LocalspecApp, database_path: Path) -> None:
    async with opened(app) as pilot:
        await pilot.press("e")
        await pilot.pause()
        title = app.screen.query_one("#title", Input)
        assert title.display and title.has_focus and title.value == "bears"
        title.value = "[/path] of bears"
        await pilot.press("enter")
        await until(pilot, lambda: "[/path] of bears" in shown(app)[0])
        assert not title.display and listing(app).has_focus
        await pilot.press("e")
        await pilot.press(*"gone", "escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatList) and not title.display
    assert kept(database_path)[0] == "[/path] of bears"


async def test_the_open_chat_deleted_leaves_a_new_one(app: LocalspecApp, database_path: Path) -> None:
    async with opened(app) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: len(chat_of(app).turns) == 1)
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and len(shown(app)) == 3)
        await pilot.press("down", "x", "y")
        await until(pilot, lambda: len(shown(app)) == 2)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is chat_of(app) and chat_of(app).turns == ())
        chat_of(app).prompt.put("about foxes")
        await pilot.press("enter")
        await until(pilot, lambda: len(chat_of(app).turns) == 1 and not chat_of(app).is_working)
    assert kept(database_path) == ["about foxes", TITLES[1], "whales"]


async def test_a_chat_that_went_meanwhile_is_said(app: LocalspecApp, database_path: Path) -> None:
    async with opened(app, (60, 20)) as pilot:
        with Database(database_path) as database:
            Chats(database).delete(3)
        await pilot.press("x", "y")
        await until(pilot, lambda: len(shown(app)) == 2)
        assert "There is no chat 3." in notices(app)
