"""A command line with a store of the test's own."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.store.database import Database
from tests.scripted_engine import EchoEngine
from tests.unit.cli.chats.kept_chats import Command, Keyboard


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "localspec.sqlite3"


@pytest.fixture
def command(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Carry out a command line with a store of the test's own; `said` comes from a pipe, `typed` from a person."""

    def command(
        *arguments: str, said: str = "", typed: str | None = None, engine: EchoEngine | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(said) if typed is None else Keyboard(typed))
        used = engine or EchoEngine()
        code = run(arguments, Services(make_engine=lambda: used, open_database=lambda: Database(store)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command
