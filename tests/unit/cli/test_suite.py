"""`bench --suite auto` as a command: what it prints, keeps, and shows again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.store.database import Database
from localspec.store.runs import Runs
from tests.scripted_engine import ArmScript, ScriptedEngine

pytestmark = pytest.mark.usefixtures("folders")

SUITE = ("--suite", "auto", "--pairs", "3", "--max-tokens", "12", "--workload", "chat")


def suite(target: Path, *more: str) -> int:
    engine = ScriptedEngine(scripts={"auto": ArmScript((3,)), "ngram": ArmScript((1,)), "suffix": ArmScript((2,))})
    code = run(["bench", str(target), *SUITE, *more], Services(make_engine=lambda: engine))
    assert engine.is_closed
    return code


def test_a_suite_is_kept_and_shown_again(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite(target, "--json") == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["suite"] == "auto" and document["run_id"] == 1 and len(document["target"]["sha256"]) == 64
    assert "run 1 kept: the whole suite" in captured.err
    assert run(["runs", "list"]) == 0
    assert "suite" in capsys.readouterr().out
    assert run(["runs", "show", "1", "--json"]) == 0
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    for sentence in document["sentences"]:
        assert " ".join(sentence.split()) in " ".join(captured.err.split())
    assert shown["suite"]["rows"] == document["rows"]
    assert [entry["name"] for entry in shown["workloads"]] == ["chat"]


def test_a_report_of_a_suite_can_be_made(target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite(target) == 0
    page = tmp_path / "page.html"
    assert run(["report", "1", "-o", str(page)]) == 0
    assert "auto" in page.read_text(encoding="utf-8")


def test_a_suite_is_not_measured_again_from_its_run(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite(target) == 0
    capsys.readouterr()
    assert run(["runs", "rerun", "1"], Services(make_engine=ScriptedEngine)) == 2
    assert "Run 1 is a suite" in capsys.readouterr().err


def test_a_suite_whose_time_was_over_is_not_called_whole(
    target: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localspec.cli.suite.parse_budget", lambda text: 0.0)
    suite(target, "--budget", "10s")
    captured = capsys.readouterr()
    assert "The time was over before" in captured.out
    assert "kept: what the suite had measured by then" in captured.err and "whole suite" not in captured.err


def test_no_keep_keeps_no_suite(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite(target, "--no-keep", "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["run_id"] is None and "kept" not in captured.err
    with Database() as database:
        assert Runs(database).summaries() == ()
