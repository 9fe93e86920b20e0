from __future__ import annotations

import json

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed
from tests.scripted_engine import EchoEngine


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    engine = EchoEngine()
    assert run(["doctor", "--json"], Services(make_engine=lambda: engine)) == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    document = json.loads(captured.out)
    assert set(document) >= {"host", "devices", "build", "offload", "notes"}
    assert document["host"]["physical_cores"] >= 1
    assert document["devices"][0]["name"] == "CPU"
    assert document["build"]["llama_cpp_python"] == "0.3.36"
    assert document["offload"] == {"supported": False, "devices": []}
    assert "no_gpu_offload" in {note["code"] for note in document["notes"]}
    [memory] = document["memory"]
    assert memory["name"] == "CPU"
    assert memory["budget_bytes"] == max(0, memory["free_bytes"] - memory["reserve_bytes"])
    assert engine.is_closed


def test_the_table_shows_foreign_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"], Services(make_engine=EchoEngine)) == 0
    out = capsys.readouterr().out
    assert "AVX2, [bold]FMA\n" in out
    assert "= 1" not in out
    assert any(line.startswith("for plans, CPU") and "kept free" in line for line in out.splitlines())
    assert "Processor [/] [31m" in out
    assert "\x1b" not in out
    assert "warning: This build of llama.cpp cannot use a GPU" in out


def test_an_engine_that_fails_is_reported_beside_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    failure = EngineFailed(1, "EngineDiedError", "The engine died.", "Look at the log.", is_fatal=True)
    engine = EchoEngine({"probe": failure})
    assert run(["doctor", "--json"], Services(make_engine=lambda: engine)) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["build"] is None and document["offload"] is None and document["devices"] == []
    assert document["notes"][0]["code"] == "engine_failed"
    assert document["host"]["os"]
    assert "error: The engine died." in captured.err
    assert engine.is_closed
