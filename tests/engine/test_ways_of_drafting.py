"""Every way of drafting from the command line down to the real engine, on tiny models."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.client import EngineClient
from localspec.methods import METHODS
from localspec.session.pacing_memory import PacingMemory

pytestmark = pytest.mark.usefixtures("quick_engines")

EXTENT = ("--n-ctx", "1024", "--threads", "1", "--no-keep")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCALSPEC_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.txt"
    path.write_text("one two three four five six seven eight nine ten " * 4)
    return path


def services() -> Services:
    return Services(make_engine=lambda: EngineClient(has_log=False))


def bench(target: Path, *words: object) -> int:
    return run(["bench", str(target), *map(str, words), *EXTENT], services())


def document_of(out: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(out)
    return document


def test_all_methods_give_the_same_text(
    tiny_files: dict[str, Path], data: Path, prompt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    methods = [word for method in METHODS[1:] for word in ("--method", method)]
    words = ("--draft", tiny_files["draft"], *methods, "--prompt", prompt, "--pairs", "1", "--max-tokens", "40")
    assert bench(tiny_files["target"], *words, "--json") == 0
    document = document_of(capsys.readouterr().out)
    (workload,) = document["workloads"]
    arms = {arm["name"]: arm for arm in workload["arms"]}
    assert set(arms) == set(METHODS) and document["settings"]["pacing_start"] == "cold"
    for name, arm in arms.items():
        assert arm["has_run"] and arm["num_tokens"] == 40, arm["reason"]
        if name != "off":
            assert arm["same_text"]["kind"] in ("identical", "rounding")
            assert arm["num_tokens"] == arm["num_target_passes"] + arm["num_accepted_tokens"] - arm["num_cut"]
        assert (arm["pacing_stats"] is not None) == (name == "auto")
    pacing = arms["auto"]["pacing_stats"]
    assert sum(pacing["lengths"]) == pacing["num_rounds"] == arms["auto"]["num_target_passes"] - 1
    spoke = {name for name, share in arms["cascade"]["by_drafter"].items() if share["num_rounds"]}
    assert spoke and spoke <= {"suffix", "draft draft"}


def test_what_is_learnt_lasts_and_a_tuned_bench_begins_with_it(
    tiny_files: dict[str, Path],
    data: Path,
    prompt: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Tell me more.\nAnd more.\n"))
    target = tiny_files["target"]
    assert run(["chat", str(target), "--max-tokens", "24", *EXTENT], services()) == 0
    assert "speculation ON (auto: suffix, up to 16)" in capsys.readouterr().err
    assert len(PacingMemory().sizes()) == 1
    (kept,) = (data / "pacing").iterdir()
    before = kept.read_text()
    words = ("--method", "auto", "--prompt", prompt, "--pairs", "1", "--max-tokens", "16", "--json")
    assert bench(target, *words) == 0
    assert document_of(capsys.readouterr().out)["settings"]["pacing_start"] == "cold"
    assert kept.read_text() == before
    assert bench(target, *words, "--tuned") == 0
    assert document_of(capsys.readouterr().out)["settings"]["pacing_start"] == "tuned"
    assert kept.read_text() != before


@pytest.mark.slow
def test_the_suite_runs_on_the_real_engine(
    tiny_files: dict[str, Path], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--suite", "auto", "--workload", "quote", "--workload", "chat", "--pairs", "2", "--max-tokens", "8")
    assert bench(tiny_files["target"], *words, "--n-ctx", "2048", "--json") == 0
    captured = capsys.readouterr()
    document = document_of(captured.out)
    assert [row["workload"] for row in document["rows"]] == ["quote", "chat"]
    assert all(len(row["grid"]) == 12 and row["auto"]["median"] > 0 for row in document["rows"])
    assert document["switch"]["segments"] == ["quote", "chat", "quote"]
    assert all(goal["is_met"] is not None for goal in document["goals"])
    assert "auto / off, on the worst workload" in captured.err
