"""An app that opens with the chat, on an engine of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.values import SpeculationSettings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from tests.scripted_engine import EchoEngine


@pytest.fixture(autouse=True)
def only_the_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open with the chat, so that no other screen takes part."""
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "chat")


@pytest.fixture
def engine() -> EchoEngine:
    return EchoEngine()


@pytest.fixture
def app(engine: EchoEngine, services: AppServices, tmp_path: Path) -> LocalspecApp:
    app = LocalspecApp(replace(services, make_engine=lambda: engine))
    for name in ("target.gguf", "draft.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    app.workbench = Workbench(
        target=ChosenModel("target", tmp_path / "target.gguf"),
        draft=ChosenModel("draft", tmp_path / "draft.gguf"),
        speculation=SpeculationSettings("draft", n_max=3),
    )
    return app


@pytest.fixture
def kept(database_path: Path) -> Iterator[Callable[[], StoredChat]]:
    def read() -> StoredChat:
        with Database(database_path) as database:
            chats = Chats(database)
            return chats.get(chats.summaries()[0].id)

    yield read
