"""What goes wrong amid a chat: engines that die, models that do not load, a store that fails."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

from localspec.engine.events import EngineFailed
from localspec.errors import StoreError
from localspec.paths import log_dir
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat_list import ChatList
from localspec.tui.services import AppServices
from tests.scripted_engine import EchoEngine
from tests.tui.chat_kit import (
    answer_with,
    ask,
    figures,
    is_question,
    opened,
    says,
    screen_of,
)
from tests.tui.looking import notices
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


async def test_a_dead_engine_leaves_the_chat_and_one_key(
    app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    died = EngineFailed(9, "EngineDiedError", "The engine ran out of memory.", "", is_fatal=True)
    async with opened(app) as pilot:
        await ask(pilot, app, "before")
        engine.answer = lambda request: (
            [*(answer_with(request, "half a ") or ())[:2], died] if is_question(request) else None
        )
        await ask(pilot, app, "dies")
        assert "The engine ran out of memory." in says(app)
        assert "ctrl+k" in says(app)
        assert [turn.text.strip() for turn in screen_of(app).turns] == ["before", "half a"]
        assert figures(app).endswith("broken off")
        engine.answer = lambda request: None
        await pilot.press("ctrl+k")
        await until(pilot, lambda: not screen_of(app).is_working)
        assert app.engine_state.loaded is not None
        await ask(pilot, app, "after")
        assert len(screen_of(app).turns) == 3
    assert [message.finish_reason for message in kept().messages if message.role == "assistant"] == [
        "stop",
        "incomplete",
        "stop",
    ]


async def test_models_that_cannot_be_loaded(app: LocalspecApp, engine: EchoEngine) -> None:
    engine.failures["load_models"] = EngineFailed(1, "ModelLoadError", "It is [/] broken.", "Take another.")
    async with opened(app) as pilot:
        await ask(pilot, app, "hello")
        assert "It is [/] broken." in notices(app)
        assert "It is [/] broken." in says(app)
        assert screen_of(app).prompt.text == "hello"
        await pilot.press("enter")
        await until(pilot, lambda: len(screen_of(app).turns) == 1)


async def test_a_failing_store_stops_no_chat(services: AppServices, app: LocalspecApp, engine: EchoEngine) -> None:
    def fails() -> Database:
        raise StoreError("The disk is full.", "Make room.")

    broken = LocalspecApp(replace(services, make_engine=lambda: engine, open_database=fails))
    broken.workbench = app.workbench
    async with opened(broken) as pilot:
        await ask(pilot, broken, "one")
        await ask(pilot, broken, "two")
        assert len(screen_of(broken).turns) == 2
        assert notices(broken).count("not kept") == 1


async def test_a_chat_that_could_not_be_kept_does_not_stop_the_next_one(
    services: AppServices, app: LocalspecApp, engine: EchoEngine, kept: Callable[[], StoredChat]
) -> None:
    is_full = True

    def opens() -> Database:
        if is_full:
            raise StoreError("The disk is full.", "Make room.")
        return services.open_database()

    broken = LocalspecApp(replace(services, make_engine=lambda: engine, open_database=opens))
    broken.workbench = app.workbench
    async with opened(broken) as pilot:
        await ask(pilot, broken, "one")
        is_full = False
        await pilot.press("ctrl+n")
        await ask(pilot, broken, "two")
        # Somebody else deletes it.
        await screen_of(broken).archive.current()
        with Database(services.open_database().path) as database:
            Chats(database).delete(kept().summary.id)
        await ask(pilot, broken, "three")
        assert notices(broken).count("not kept") == 1
        assert "deleted elsewhere" in notices(broken)
        await pilot.press("ctrl+n")
        await ask(pilot, broken, "four")
    assert [message.content.strip() for message in kept().messages] == ["four", "four"]


async def test_a_chat_that_could_not_be_kept_is_said_at_the_end(app: LocalspecApp, database_path: Path) -> None:
    Database(database_path).close()
    with contextlib.closing(sqlite3.connect(database_path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        async with opened(app) as pilot:
            await ask(pilot, app, "one")
            await pilot.press("ctrl+o")
            await until(pilot, lambda: isinstance(app.screen, ChatList))
            assert str(app.screen.query_one("#nothing", Static).content) == "reading …"
            app.exit()
        assert app.is_chat_unkept()


async def test_a_long_failure_is_cut_and_written_to_the_log(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        app.show_failure(StoreError("long [/] " * 1000, "\n".join("abcdefghijkl")))
        await until(pilot, lambda: len(app._notifications) == 1)
        (notice,) = app._notifications
        assert len(notice.message.splitlines()) <= 6 and len(notice.message.splitlines()[0]) <= 502
        assert "localspec.log" in notice.message
    assert "long [/] " * 1000 in (log_dir() / "localspec.log").read_text("utf-8")
