"""`localspec probe`: what it prints, asks for and refuses."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.probe import event_printer
from localspec.cli.probe_drawing import draw_needed
from localspec.cli.services import Services
from localspec.engine.events import ModelsLoaded, StepsProgress
from localspec.engine.requests import LoadModels
from localspec.engine.values import ContextSettings, SpeculationSettings, SpeculationState
from localspec.session.probing import ProbePlan
from tests.made_up_machine import model_info
from tests.probe_kit import COSTS, STEEP, ProbeEngine, curve_of


def probe(engine: ProbeEngine, *arguments: str | Path) -> int:
    code = run(["probe", *map(str, arguments)], Services(make_engine=lambda: engine))
    assert engine.is_closed or not engine.requests
    return code


def row_of(out: str, first: str) -> list[str]:
    """Return the cells of the last table row that begins so."""
    return [line.split() for line in out.splitlines() if line.split()[:1] == [first]][-1]


def test_tables_drawing_and_verdict(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe(ProbeEngine(), model) == 0
    out = capsys.readouterr().out
    assert "Steps of the target behind 256 positions; the prompt is read with 500 tokens/s" in out
    assert row_of(out, "9") == ["9", "32.0", "31.7", "to", "32.3", "3.20", "+0.90", "281", "20"]
    # 1 + a = 1.6 steps and what the draft costs.
    assert row_of(out, "0.05")[-4] == "0.65" and row_of(out, "0.5")[-4] == "never"
    assert "acceptance needed" in out and "X" not in out.partition("acceptance needed")[2].partition("note:")[0]
    assert "With this target here a draft of 10 % of its cost pays from" in out
    assert out.endswith(f"localspec pair {model}\n")
    assert "\x1b" not in out and max(map(len, out.partition("acceptance needed")[2].splitlines()[:14])) <= 80


def test_a_draft_has_a_row_a_mark_and_a_bench(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ProbeEngine(draft_cost=0.2)
    assert probe(engine, model, "--draft", model) == 0
    out = capsys.readouterr().out
    assert "A step of the draft takes 2.00 ms (1.98 to 2.02), 0.20 of a step of the target." in out
    assert row_of(out, "0.20")[1] == "X"
    assert "X: this draft" in out and "this draft, of 20 % of its cost, pays from" in out
    assert f"localspec bench {model} --draft {model}" in out
    load = next(request for request in engine.requests if isinstance(request, LoadModels))
    assert load.draft_path == str(model)


def test_the_bench_that_is_advised_has_the_same_options(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--threads", "3", "--n-ctx", "3000", "--draft-n-ctx", "2048")
    assert probe(ProbeEngine(draft_cost=0.2), model, "--draft", model, *options) == 0
    assert f"--draft {model} --draft-n-ctx 2048 --n-ctx 3000 --threads 3\n" in capsys.readouterr().out


def test_the_depth_that_is_told_is_the_one_that_is_measured() -> None:
    told: list[str] = []
    plan = ProbePlan(Path("m"), None, ContextSettings(), "", "", depths=(100_000,), widths=(1, 9))
    hear = event_printer(lambda what, share, figure: told.append(what), plan)
    off = SpeculationState(False, "off", "", "", SpeculationSettings())
    hear(ModelsLoaded(1, replace(model_info("m"), n_ctx=256), None, "", off, 0.1))
    hear(StepsProgress(2, "target", 0.5, ()))
    assert told == ["timing steps of the target behind 246 positions"]


def test_the_tables_fit_into_80_columns(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert probe(ProbeEngine(costs={1: 100.0, **{width: 100 * cost for width, cost in STEEP.items()}}), model) == 0
    out = capsys.readouterr().out
    header = next(line for line in out.splitlines() if line.startswith("Tokens"))
    assert " ".join(header.split()) == "Tokens Time, ms Middle half Of one Rise tokens/s at best Timed"
    assert row_of(out, "16")[0] == "16" and len(row_of(out, "16")) == 9


def test_options_reach_the_engine(model: Path, tmp_path: Path) -> None:
    engine = ProbeEngine()
    text = tmp_path / "text.txt"
    text.write_text("words of my own", encoding="utf-8")
    options = "--seconds 3 --depth 64 --deep --n-ctx 3000 --threads 3 --n-gpu-layers 0 --type-k q8_0"
    assert probe(engine, model, "--text", text, *options.split()) == 0
    assert [request.depth for request in engine.measured] == [64, 2048]
    assert {(request.text, request.seconds) for request in engine.measured} == {("words of my own", 3.0)}
    context = next(request for request in engine.requests if isinstance(request, LoadModels)).context
    assert (context.n_ctx, context.n_threads, context.n_gpu_layers, context.type_k) == (3000, 3, 0, "q8_0")


def test_a_workload_is_read(model: Path) -> None:
    engine = ProbeEngine()
    assert probe(engine, model, "--workload", "chat") == 0
    assert "high tides" in engine.measured[0].text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workload", "sumary"), "summary"),
        (("--workload", "chat", "--text", "x.txt"), "either --workload or --text"),
        (("--text", "no-such-file.txt"), "no-such-file.txt"),
        (("--plot", "curve.pdf"), ".svg or .png"),
        (("--plot", "no-such-folder/curve.svg"), "no-such-folder"),
        (("--seconds", "0"), "--seconds"),
        (("--seconds", "nan"), "--seconds"),
        (("--depth", "0"), "--depth"),
    ],
)
def test_wrong_usage_starts_nothing(
    options: tuple[str, ...], said: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ProbeEngine()
    assert probe(engine, model, *options) == 2
    assert said in capsys.readouterr().err
    assert engine.requests == []


def test_the_document_is_the_last_line_and_all_of_stdout(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe(ProbeEngine(), model, "--json") == 0
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    document = json.loads(captured.out)
    assert document["depths"][0]["steps"][1]["cost"] == pytest.approx(1.6)
    assert "acceptance needed" in captured.err and document["interrupted"] is False


@pytest.mark.parametrize("name", ["curve.svg", "curve.PNG"])
def test_a_picture_is_drawn_and_drawn_again(name: str, model: Path, tmp_path: Path) -> None:
    picture = tmp_path / name
    for _ in range(2):
        assert probe(ProbeEngine(), model, "--draft", model, "--plot", picture) == 0
    content = picture.read_bytes()
    if name.endswith("svg"):
        assert content.startswith(b"<?xml") and content.count(b"<svg") == 1 and content.endswith(b"</svg>\n")
        assert b"acceptance from which drafts pay" in content and b"this draft" in content
    else:
        assert content.startswith(b"\x89PNG") and b"localspec" in content[:512]


def test_a_foreign_picture_is_not_written_over(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "curve.svg"
    picture.write_text("<svg/>", encoding="utf-8")
    assert probe(ProbeEngine(), model, "--plot", picture) == 2
    assert picture.read_text(encoding="utf-8") == "<svg/>" and "--force" in capsys.readouterr().err
    assert probe(ProbeEngine(), model, "--plot", picture, "--force") == 0
    assert b"Drawn by localspec" in picture.read_bytes()[:200]


def test_a_target_that_cannot_roll_back_is_refused_in_the_engines_words(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = ProbeEngine(failure=("UsageError", "mamba [/] cannot take back tokens."), num_reports=0)
    assert probe(engine, model, "--json") == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "error: mamba [/] cannot take back tokens.\nhint: Do something else." in captured.err


def test_a_death_later_prints_what_is_known(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = ProbeEngine(failure=("EngineDiedError", "Killed (signal 9)."))
    assert probe(engine, model, "--json") == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["failure"] == "Killed (signal 9)."
    assert "It ended early, after 20 steps of each width." in captured.err


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
@pytest.mark.parametrize("num_reports", [0, 1])
def test_an_interruption_prints_what_is_known(
    num_reports: int, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert probe(ProbeEngine(interrupts=True, num_reports=num_reports), model, "--deep") == 130
    captured = capsys.readouterr()
    assert captured.err.count("Interrupted.") == 1 and "Traceback" not in captured.err
    assert ("ended early" in captured.out) == (num_reports > 0)


def test_the_drawing_has_its_marks_in_their_places() -> None:
    lines = draw_needed(curve_of({1: 1.0, 2: 1.6}, draft_cost=0.2))
    plot = {line[:5].strip(): line[7:] for line in lines[1:12] if line[:5].strip()}
    # 0.6 where a draft costs nothing, 0.8 at a fifth of a step, and none from 0.4 on.
    assert plot["0.6"][0] == "*" and plot["0.8"][20] == "X"
    assert plot["1.0"][40] == "*" and all("*" not in line[41:] for line in plot.values())
    assert max(map(len, lines)) <= 80
    never = draw_needed(curve_of(COSTS, draft_cost=1.5))
    assert "never pays" in never[-1] and "X" in never[1] and "2.4" in never[13]
