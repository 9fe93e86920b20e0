"""Chats that are kept: found again, gone on with, written to files, deleted by others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from localspec.engine.events import EngineFailed
from localspec.session.conversation import Answer
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat_list import ChatList
from localspec.tui.screens.chat_save import ChatSave
from localspec.tui.widgets.chat_answer import ChatAnswer
from tests.scripted_engine import EchoEngine
from tests.tui.chat_kit import (
    ask,
    num_listed,
    opened,
    screen_of,
)
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


async def test_an_earlier_chat_is_found_and_goes_on(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "about whales [/]")
        await pilot.press("ctrl+n")
        await pilot.pause()
        assert screen_of(app).turns == ()
        await ask(pilot, app, "about bears")
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and num_listed(app) == 2)
        await pilot.press(*"whal")
        await until(pilot, lambda: num_listed(app) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: [turn.question for turn in screen_of(app).turns] == ["about whales [/]"])
        assert len(screen_of(app).query(ChatAnswer)) == 1
        await ask(pilot, app, "more")
    assert [message.content.strip() for message in engine.generated[-1][1].messages] == [
        "about whales [/]",
        "about whales [/]",
        "more",
    ]


async def test_a_question_that_failed_takes_nothing_from_another_chat(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "about whales")
        await pilot.press("ctrl+n")
        engine.failures["generate"] = EngineFailed(0, "DecodeError", "It failed.", "")
        await ask(pilot, app, "about bears")
        assert screen_of(app).turns == ()
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ChatList) and num_listed(app) == 2)
        await pilot.press(*"whal")
        await until(pilot, lambda: num_listed(app) == 1)
        await pilot.press("enter")
        await until(pilot, lambda: bool(screen_of(app).turns))
        await ask(pilot, app, "more")
    assert [message.content.strip() for message in kept().messages] == ["about whales", "about whales", "more", "more"]


async def test_a_chat_is_written_as_markdown(app: LocalspecApp, tmp_path: Path) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one two")
        await pilot.press("f7")
        await until(pilot, lambda: isinstance(app.screen, ChatSave))
        app.screen.query_one(Input).value = str(tmp_path / "target.gguf")
        await pilot.press("enter")
        assert "already" in str(app.screen.query_one("#note", Static).content)
        app.screen.query_one(Input).value = str(tmp_path / "out.md")
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen_of(app))
    assert "one two" in (tmp_path / "out.md").read_text(encoding="utf-8")


async def test_a_chat_that_another_app_deleted_is_kept_again(
    app: LocalspecApp, database_path: Path, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await until(pilot, lambda: kept().messages[-1].finish_reason == "stop")
        with Database(database_path) as database:
            Chats(database).delete(kept().summary.id)
        await ask(pilot, app, "two")
    chat = kept()
    assert [message.content.strip() for message in chat.messages] == ["one", "one", "two", "two"]
    assert [message.finish_reason for message in chat.messages if message.role == "assistant"] == ["stop", "stop"]
    assert not app.is_chat_unkept()


async def test_a_chat_deleted_amid_an_answer_is_kept_again(
    app: LocalspecApp, database_path: Path, kept: Callable[[], StoredChat]
) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        archive, finish = screen_of(app).archive, screen_of(app).archive.finish

        def delete_before(answer: Answer) -> None:
            with Database(database_path) as database:
                Chats(database).delete(kept().summary.id)
            finish(answer)

        archive.finish = delete_before  # type: ignore[method-assign]
        await ask(pilot, app, "two")
    assert [message.content.strip() for message in kept().messages] == ["one", "one", "two", "two"]
