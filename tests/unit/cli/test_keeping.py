"""bench and demo keep their runs, and go on where nothing can be kept."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed, Event
from localspec.engine.requests import Generate, Request
from localspec.session import demo
from localspec.store.database import Database
from localspec.store.runs import Runs
from tests.scripted_engine import EchoEngine


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("LOCALSPEC_DATA", str(folder))
    return folder


def bench(model: Path, *arguments: str, engine: EchoEngine | None = None) -> int:
    extent = ["--workload", "chat", "--pairs", "1", "--max-tokens", "6"]
    words = ["bench", str(model), "--method", "ngram", *extent, *arguments]
    return run(words, Services(make_engine=lambda: engine or EchoEngine()))


def states(data: Path) -> list[tuple[int, str, str]]:
    with Database(data / "localspec.sqlite3") as database:
        return [(found.id, found.kind, found.state) for found in Runs(database).summaries()]


def test_a_run_is_kept_under_the_number_that_is_said(
    data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(model) == 0
    captured = capsys.readouterr()
    assert "run 1 kept" in captured.err.splitlines() and "run 1" not in captured.out
    assert bench(model, "--json") == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["run_id"] == 2 and "run 2 kept" in captured.err
    assert states(data) == [(2, "bench", "done"), (1, "bench", "done")]
    with Database(data / "localspec.sqlite3") as database:
        stored = Runs(database).get(2)
    assert stored.document is not None
    assert stored.document == {name: document[name] for name in stored.document}
    assert len(stored.request["target"]["sha256"]) == 64


def test_no_keep_leaves_it_out(data: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(model, "--no-keep", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["run_id"] is None
    assert "kept" not in captured.err
    assert not data.exists()


def test_the_demo_is_kept_too(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCALSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo, "find_smollm2", lambda: tmp_path / "smollm2.gguf")
    arguments = ["demo", "--pairs", "1", "--max-tokens", "4"]
    assert run(arguments, Services(make_engine=EchoEngine)) == 0
    assert "run 1 kept" in capsys.readouterr().err
    assert run([*arguments, "--no-keep"], Services(make_engine=EchoEngine)) == 0
    assert states(data) == [(1, "demo", "done")]


def test_a_folder_that_cannot_be_written_costs_a_notice_only(
    data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text("a file in the way")
    assert bench(model, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["run_id"] is None
    assert captured.err.count("not kept") == 1
    assert "LOCALSPEC_DATA" in captured.err


def test_a_newer_store_costs_a_notice_and_stays_as_it_is(
    data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Database(data / "localspec.sqlite3").close()
    with closing(sqlite3.connect(data / "localspec.sqlite3")) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (data / "localspec.sqlite3").read_bytes()
    assert bench(model) == 0
    err = capsys.readouterr().err
    assert err.count("This run is not kept:") == 1 and "newer localspec" in err
    assert (data / "localspec.sqlite3").read_bytes() == before


def test_a_damaged_store_is_put_aside_and_the_run_kept(
    data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.mkdir()
    (data / "localspec.sqlite3").write_bytes(b"\x00damaged" * 2000)
    assert bench(model) == 0
    err = capsys.readouterr().err
    assert err.count("a new one is begun") == 1 and "run 1 kept" in err
    (aside,) = data.glob("*.aside-*")
    assert aside.read_bytes() == b"\x00damaged" * 2000


class InterruptedEngine(EchoEngine):
    """Gets the user's Ctrl-C, or dies, while it generates for the fourth time."""

    def __init__(self, dies: bool) -> None:
        super().__init__(pause_s=0.001)
        self._dies = dies

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if isinstance(request, Generate) and len(self.generated) == 3:
            if self._dies:
                yield EngineFailed(request.id, "EngineDiedError", "Killed (signal 9).", "", is_fatal=True)
                return
            os.kill(os.getpid(), signal.SIGINT)
        async for event in super().stream(request):
            yield event


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
@pytest.mark.parametrize(("dies", "code", "state"), [(False, 130, "interrupted"), (True, 1, "failed")])
def test_an_early_end_is_kept_as_what_it_is(
    dies: bool, code: int, state: str, data: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(model, engine=InterruptedEngine(dies)) == code
    assert "run 1 kept" in capsys.readouterr().err
    assert states(data) == [(1, "bench", state)]


def test_a_model_that_does_not_load_leaves_no_run(data: Path, tmp_path: Path) -> None:
    assert bench(tmp_path / "none.gguf") == 1
    assert not (data / "localspec.sqlite3").exists()


@pytest.mark.parametrize("words", [["--help"], ["bench", "--help"], ["demo", "--help"]])
def test_help_loads_no_database(words: list[str]) -> None:
    code = (
        f"import sys; from localspec.cli.main import run; run({words!r});"
        "heavy = {'sqlite3', 'matplotlib', 'pydantic', 'asyncio'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
