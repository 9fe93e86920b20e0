from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.comparison import progress_printer
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed, Event, ModelsLoaded, PrefillProgress
from localspec.engine.requests import Configure, Generate, LoadModels, Request
from localspec.engine.values import SpeculationSettings
from localspec.session.arms import Arm
from localspec.session.comparison import ComparisonProgress
from localspec.session.measurement import MeasurementProgress
from tests.scripted_engine import ArmScript, EchoEngine, FakeClock


@pytest.fixture
def prompt(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.txt"
    path.write_text("one two three four five six seven eight nine ten eleven twelve", encoding="utf-8")
    return path


NGRAM = ("--method", "ngram")


def bench(engine: EchoEngine, *arguments: str | Path) -> int:
    made: list[EchoEngine] = []

    def make() -> EchoEngine:
        made.append(engine)
        return engine

    code = run(["bench", *map(str, arguments)], Services(make_engine=make))
    assert not made or engine.is_closed
    return code


def document_of(out: str) -> dict[str, Any]:
    assert out.endswith("\n") and out.count("\n") == 1
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


def test_the_document_has_every_promised_key(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (model, "--draft", model, "--prompt", prompt, "--max-tokens", "12", "--seed", "7", "--n-max", "3")
    assert bench(EchoEngine(), *arguments, "--json") == 0
    captured = capsys.readouterr()
    document = document_of(captured.out)
    assert set(document) >= {"schema", "build", "device", "target", "draft", "settings", "workloads"}
    for side in ("target", "draft"):
        assert set(document[side]) >= {"path", "sha256", "architecture", "quantisation"}
        assert len(document[side]["sha256"]) == 64
    promised = "n_ctx n_threads n_threads_batch flash_attn type_k type_v temperature seed max_tokens"
    assert set(document["settings"]) >= set(promised.split())
    assert document["settings"]["seed"] == 7
    (workload,) = document["workloads"]
    assert workload["name"] == "prompt"
    assert workload["temperature"] == 0
    assert [arm["method"] for arm in workload["arms"]] == ["off", "draft", "ngram", "auto"]
    promised = (
        "name method n_max p_min speculation reason decode_tps ttft_s tpot_s num_tokens num_rounds num_target_passes "
        "num_draft_tokens num_accepted_tokens acceptance_rate mean_accepted_length acceptance_by_position draft_s "
        "verify_s sample_s own_s peak_rss_bytes finish_reason"
    )
    for arm in workload["arms"]:
        assert set(arm) >= set(promised.split())
    assert workload["arms"][0]["acceptance_rate"] is None
    assert workload["arms"][1]["n_max"] == 3
    assert workload["arms"][1]["speculation"] == "on"
    assert set(workload["speedup"]) >= {"median", "low", "high", "pairs"}
    assert workload["verdict"] == "faster"
    assert set(workload["same_text"]) >= {"identical", "first_difference", "top2_gap", "noise", "kind"}
    assert workload["same_text"]["identical"] is True
    assert "speedup" in captured.err


def test_the_table_says_what_follows(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(EchoEngine(), model, "--prompt", prompt, "--max-tokens", "12") == 0
    captured = capsys.readouterr()
    assert "Faster here:" in captured.out
    assert "identical" in captured.out
    assert "\x1b" not in captured.out + captured.err
    assert "pair 3 of 3" in captured.err and "pair 3 of 3" not in captured.out


def test_default_arms_and_workloads(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(EchoEngine(), model, "--max-tokens", "4", "--pairs", "1", "--json") == 0
    document = document_of(capsys.readouterr().out)
    assert [workload["name"] for workload in document["workloads"]] == ["edit", "chat"]
    assert [arm["name"] for arm in document["workloads"][0]["arms"]] == ["off", "ngram", "auto"]
    assert document["draft"] is None


@pytest.mark.parametrize(("options", "temperature"), [((), 0.8), (("--temp", "0.3"), 0.3)])
def test_a_workloads_temperature_gives_way_to_the_flag(
    options: tuple[str, ...], temperature: float, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = EchoEngine()
    assert bench(engine, model, "--workload", "story", "--max-tokens", "4", "--pairs", "1", *options) == 0
    used = {request.sampling.temperature for request in engine.requests if isinstance(request, Generate)}
    assert used == {temperature}
    assert f"temperature {temperature}" in capsys.readouterr().out


def test_options_reach_the_engine(model: Path, prompt: Path) -> None:
    engine = EchoEngine()
    options = "--threads 3 --n-gpu-layers 0 --type-k q8_0 --no-flash-attn --ngram-max 6 --top-k 5 --ignore-eos"
    assert bench(engine, model, "--prompt", prompt, *options.split()) == 0
    load = next(request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.context.n_threads, load.context.n_gpu_layers) == (3, 0)
    assert (load.context.type_k, load.context.flash_attn) == ("q8_0", False)
    assert load.draft_path == ""
    configure = [request for request in engine.requests if isinstance(request, Configure)]
    assert {request.speculation.ngram_max for request in configure} == {6}
    generate = next(request for request in engine.requests if isinstance(request, Generate))
    assert generate.ignore_eog and generate.sampling.top_k == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workload", "sumary"), "chat, code, edit, extract, quote, story, summary"),
        (("--method", "off"), "nothing to compare"),
        (("--method", "draft"), "--draft MODEL"),
        (("--n-min", "9", "--n-max", "4"), "n_min 9"),
        (("--max-tokens", "1"), "max-tokens"),
        (("--pairs", "0"), "pairs"),
        (("--prompt", "no-such-file.txt"), "no-such-file.txt"),
    ],
)
def test_wrong_usage_starts_nothing(
    options: tuple[str, ...], said: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = EchoEngine()
    assert run(["bench", str(model), *options], Services(make_engine=lambda: engine)) == 2
    assert said in capsys.readouterr().err
    assert engine.requests == []


def test_a_missing_model_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(EchoEngine(), tmp_path / "none.gguf", "--json") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "There is no file" in captured.err


def test_a_draft_that_does_not_load_is_refused_at_once(
    model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = EchoEngine()
    engine.draft_failure = "the file is damaged [/]"
    assert bench(engine, model, "--draft", model, "--prompt", prompt, "--max-tokens", "6", "--json") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error: The draft cannot be used: the file is damaged [/].\n" in captured.err
    assert f"hint: `localspec pair {model}` lists what can draft" in captured.err
    assert not any(isinstance(request, Generate) for request in engine.requests)


def test_arms_that_all_fail_later_are_told(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = EchoEngine()
    engine.scripts = {"draft": ArmScript(off_reason="it went away")}
    arguments = (model, "--draft", model, "--method", "draft", "--prompt", prompt, "--max-tokens", "6", "--json")
    assert bench(engine, *arguments) == 1
    captured = capsys.readouterr()
    document = document_of(captured.out)
    arm = document["workloads"][0]["arms"][1]
    assert (arm["speculation"], arm["reason"]) == ("off", "it went away")
    assert arm["decode_tps"] is None and arm["speedup"] is None
    assert document["workloads"][0]["verdict"] is None
    assert "Not run with draft" in captured.err
    assert "error: No way of drafting could run here: draft: it went away." in captured.err
    assert "paired run" not in captured.err and "localspec chat model" not in captured.err


class InterruptedEngine(EchoEngine):
    """Gets the user's Ctrl-C while it generates for the `after`-th time."""

    def __init__(self, after: int) -> None:
        super().__init__(pause_s=0.001)
        self._left = after

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if isinstance(request, Generate):
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGINT)
        async for event in super().stream(request):
            yield event


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
def test_an_interruption_prints_what_was_measured(
    model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two warm-ups and two pairs are complete; the third pair is not.
    code = bench(InterruptedEngine(after=7), model, *NGRAM, "--prompt", prompt, "--max-tokens", "12", "--json")
    assert code == 130
    captured = capsys.readouterr()
    document = document_of(captured.out)
    assert document["interrupted"] is True
    assert document["workloads"][0]["speedup"]["pairs"] == 2
    assert "Interrupted" in captured.err and "Traceback" not in captured.err


class DyingEngine(EchoEngine):
    """Dies while it generates for the `after`-th time."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        if isinstance(request, Generate):
            self._left -= 1
            if self._left <= 0:
                yield EngineFailed(request.id, "EngineDiedError", "Killed (signal 9).", "", is_fatal=True)
                return
        async for event in super().stream(request):
            yield event


def test_a_death_keeps_the_pairs_that_are_done(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workloads = ("--workload", "chat", "--workload", "code")
    arguments = (model, *NGRAM, *workloads, "--pairs", "3", "--max-tokens", "4", "--json")
    # Two warm-ups, two pairs and half a pair; what the engine is asked after its death stays unanswered, too.
    assert bench(DyingEngine(after=8), *arguments) == 1
    captured = capsys.readouterr()
    document = document_of(captured.out)
    (workload,) = document["workloads"]
    assert workload["name"] == "chat"
    assert workload["speedup"]["pairs"] == 2
    assert document["failure"] == "Killed (signal 9)."
    assert document["interrupted"] is False and workload["interrupted"] is True
    assert "Ended early" in captured.err
    assert captured.err.count("Killed (signal 9).") == 1


def test_a_death_before_the_first_run_leaves_nothing_to_print(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(DyingEngine(after=2), model, "--workload", "chat", "--json") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error: Killed (signal 9)." in captured.err


def test_a_death_keeps_the_workloads_that_are_done(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (model, "--workload", "chat", "--workload", "code", "--pairs", "1", "--max-tokens", "4", "--json")
    # The first workload takes two warm-ups, a pair and the closing run.
    assert bench(DyingEngine(after=7), *arguments) == 1
    captured = capsys.readouterr()
    document = document_of(captured.out)
    assert [workload["name"] for workload in document["workloads"]] == ["chat"]
    assert document["failure"] == "Killed (signal 9)."
    assert "error: Killed (signal 9)." in captured.err


def test_a_piped_report_is_80_columns_wide_and_says_what_it_rests_on(
    model: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    draft = model.with_name("a draft.gguf")
    draft.write_bytes(b"GGUF")
    assert bench(EchoEngine(), model, "--draft", draft, "--prompt", prompt, "--max-tokens", "12", "--temp", "0.5") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "target  model.gguf (F16, 20 bytes)"
    assert lines[1] == "draft   a draft.gguf (F16, 20 bytes)"
    assert lines[2] == "n_ctx 256, threads 2, 3 pairs x 12 tokens, temperature 0.5"
    assert not any(line != line.rstrip() for line in lines)
    first = next(index for index, line in enumerate(lines) if line.startswith("decode_tps"))
    last = next(index for index, line in enumerate(lines) if line.startswith("same text?"))
    assert max(len(line) for line in lines[first - 2 : last + 1]) <= 80
    assert lines[-1].startswith("  localspec chat ") and "--method" in lines[-1] and "--n-max 4" in lines[-1]


@pytest.mark.parametrize(("columns", "is_broken"), [("50", True), ("200", False)])
def test_an_interval_goes_below_its_figure_when_there_is_no_room(
    columns: str,
    is_broken: bool,
    model: Path,
    prompt: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert bench(EchoEngine(), model, "--draft", model, "--prompt", prompt, "--max-tokens", "12") == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("speedup"))
    assert (" to " not in row) == is_broken


def test_the_command_to_go_on_with_is_quoted(tmp_path: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "my model.gguf"
    model.write_bytes(b"GGUF")
    assert bench(EchoEngine(), model, "--prompt", prompt, "--max-tokens", "12", "--n-ctx", "512") == 0
    out = capsys.readouterr().out
    assert f"  localspec chat '{model}' --method ngram --n-max 4 --n-ctx 512\n" in out


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
def test_an_interruption_names_what_it_stands_on_and_what_is_missing(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (model, *NGRAM, "--workload", "quote", "--workload", "chat", "--max-tokens", "12")
    assert bench(InterruptedEngine(after=7), *arguments) == 130
    out = capsys.readouterr().out
    assert "That stands on 2 of 3 pairs." in out
    assert "Not started: chat." in out


class LongContextEngine(EchoEngine):
    """Loads a target with a context that is far over the trained one."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async for event in super().stream(request):
            if isinstance(event, ModelsLoaded):
                target = replace(event.target, n_ctx=4096)
                yield ModelsLoaded(event.id, target, None, "", event.speculation, 0.1)
            else:
                yield event


def test_a_context_over_the_trained_one_is_noted(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(LongContextEngine(), model, "--prompt", prompt, "--max-tokens", "12", "--json") == 0
    captured = capsys.readouterr()
    assert "trained on texts of up to 256 tokens, but its context has 4096" in captured.err
    assert [note["code"] for note in document_of(captured.out)["notes"]] == ["context_over_trained"]


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
def test_an_interruption_before_the_first_run_shows_no_empty_table(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The second warm-up.
    assert bench(InterruptedEngine(after=2), model, "--workload", "quote", "--workload", "chat") == 130
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Nothing was measured."
    assert not any("decode_tps" in line or "Not run" in line or "Not started" in line for line in lines)


@pytest.mark.skipif(os.name == "nt", reason="a signal to oneself ends the process on Windows")
def test_a_workload_that_was_just_begun_shows_no_empty_table(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (model, *NGRAM, "--workload", "quote", "--workload", "chat", "--pairs", "1", "--max-tokens", "4")
    # Two warm-ups, a pair and the closing run; then a warm-up of the next.
    assert bench(InterruptedEngine(after=6), *arguments) == 130
    out = capsys.readouterr().out
    assert out.count("decode_tps") == 1
    assert "Open chat (chat: temperature 0)\nNothing was measured.\n" in out


def test_one_pair_is_too_little_to_choose_by(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(EchoEngine(), model, "--prompt", prompt, "--max-tokens", "12", "--pairs", "1") == 0
    out = capsys.readouterr().out
    assert "in a single pair: too little to judge." in out
    assert "Too little was measured to choose by. To chat without drafts:" in out
    assert "break even" not in out and "clearly" not in out


def test_the_command_to_go_on_with_brings_back_how_it_was_measured(
    tmp_path: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "a draft.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    options = "--method draft --max-tokens 12 --p-min 0.5 --n-gpu-layers 0 --no-flash-attn --draft-n-ctx 128"
    arguments: list[str | Path] = ["model.gguf", "--draft", "a draft.gguf", "--prompt", prompt, *options.split()]
    assert bench(EchoEngine(), *arguments, "--draft-kv", "q8_0/f16", "--draft-threads", "2") == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "  localspec chat model.gguf --draft 'a draft.gguf' --method draft --n-max 4 --p-min 0.5 "
        "--draft-n-ctx 128 --draft-threads 2 --draft-kv q8_0/f16 --n-gpu-layers 0 --no-flash-attn"
    )


def test_models_of_the_hub_are_called_by_name(
    tmp_path: Path, prompt: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = tmp_path / "models--Owner--Name-GGUF" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "name-Q4_K_M.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert bench(EchoEngine(), "owner/name-gguf:q4_k_m", "--prompt", prompt, "--max-tokens", "12") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "target  Owner/Name-GGUF:Q4_K_M (F16, 20 bytes)"
    assert lines[-1].startswith("  localspec chat owner/name-gguf:q4_k_m --method ngram")


def test_progress_tells_of_replays(model: Path, prompt: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine = EchoEngine()
    engine.scripts = {"ngram": ArmScript(changed_token=3)}
    assert bench(engine, model, "--prompt", prompt, "--max-tokens", "12", "--pairs", "2") == 0
    err = capsys.readouterr().err
    assert "prompt: pair 1 of 2, finding out why the text of ngram differs\n" in err


def test_a_replay_shows_how_far_it_is_and_no_old_speed() -> None:
    told: list[tuple[str, str]] = []
    clock = FakeClock()
    on_progress = progress_printer(lambda what, fraction, figure: told.append((what, figure)), clock)
    begin = ComparisonProgress(
        "chat", "replay", Arm("ngram", SpeculationSettings("ngram")), 0, 3, num_done=9, num_total=9, event=None
    )
    for event in (None, PrefillProgress(1, "target", 40, 90, 0.1)):
        on_progress(MeasurementProgress("compare", 1.0, comparison=replace(begin, event=event)))
    what = "chat: pair 1 of 3, finding out why the text of ngram differs"
    assert told == [(what, ""), (what, "40 of 90 tokens")]
