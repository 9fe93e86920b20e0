"""The commands on kept runs, on a database of their own."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localspec.catalog.workloads import Prompt, Workload
from localspec.cli.main import run
from localspec.cli.run_receipt import accepted_lengths, histogram_lines
from localspec.cli.services import Services
from localspec.engine.interface import Engine
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.session.arms import build_arms
from localspec.session.measurement import MeasurementPlan, measure
from localspec.session.run_export import COLUMNS
from localspec.session.run_keeping import RunKeeper
from localspec.store.database import Database
from localspec.store.runs import Runs
from tests.kept_runs import Document, changed, made_up_run
from tests.scripted_engine import ArmScript, EchoEngine, ScriptedEngine

Command = Callable[..., int]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def command(store: Path) -> Command:
    def carry_out(*words: object, engine: Engine | None = None) -> int:
        def make() -> Engine:
            assert engine is not None, "this command needs no engine"
            return engine

        return run([str(word) for word in words], Services(make_engine=make, open_database=lambda: Database(store)))

    return carry_out


@pytest.fixture
def keep(store: Path) -> Callable[[Document], int]:
    def keep(document: Document) -> int:
        with Database(store) as database:
            runs = Runs(database)
            run_id = runs.start("bench", {"workloads": [{"name": "chat"}]})
            runs.finish(run_id, document, "done")
            return run_id

    return keep


Keep = Callable[[Document], int]
SLOW = {"off": (80.0, 81.0, 79.0), "draft": (150.0, 151.0, 149.5)}


def json_of(out: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(out.splitlines()[-1])
    return document


def test_without_runs_it_says_how_to_begin(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("runs") == 0
    assert "No runs are kept yet" in capsys.readouterr().out
    assert command("runs", "show", "last") == 2
    assert "No run" in capsys.readouterr().err


def test_the_list_is_80_columns_wide_and_harmless(
    command: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    keep(made_up_run())
    keep(changed(made_up_run(), target__path="/m/[red] \x1b[31m" + "very-long-name-" * 5 + ".gguf", draft=None))
    assert command("runs") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out and "[red]" in out
    assert "1.50x" in out and "done" in out and "target [b]" in out
    assert out.index("very") < out.index("target [b]")


def test_the_list_in_wide_columns_and_json(
    command: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    for _ in range(3):
        keep(made_up_run())
    assert command("runs", "--limit", "2", "--json") == 0
    captured = capsys.readouterr()
    assert [summary["id"] for summary in json_of(captured.out)["runs"]] == [3, 2]
    assert "Best arm" in captured.err and "older ones" in captured.err
    assert captured.out.count("\n") == 1


def test_show_is_a_receipt(command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(made_up_run())
    assert command("runs", "show", "last") == 0
    out = capsys.readouterr().out
    for text in ("a" * 64, "llama.cpp b1", "NVIDIA 570.1", "mains", "n_ctx 256", "flash_attn on", "Fast, 2 cores"):
        assert text in out
    assert "decode_tps (tokens/s)" in out and "identical" in out and "1.50x with draft." in out
    assert "accepted tokens of a round, draft (9 rounds with drafts):" in out
    assert "\x1b" not in out
    assert command("runs", "show", "1", "--json") == 0
    captured = capsys.readouterr()
    assert json_of(captured.out)["run"]["id"] == 1
    assert captured.out.count("\n") == 1


def test_show_prints_the_table_that_bench_prints(
    command: Command, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("bench", model, "--workload", "chat", "--max-tokens", "12")
    assert command(*words, engine=EchoEngine()) == 0
    printed = capsys.readouterr().out
    start = printed.index("Open chat (chat: temperature 0)")
    assert command("runs", "show", "last") == 0
    assert printed[start : printed.index("\n\n", start)] in capsys.readouterr().out


def test_a_run_that_has_not_ended_is_shown_as_far_as_it_came(
    command: Command, store: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keeper = RunKeeper("bench", lambda: Database(store), lambda notice: None)
    plan = MeasurementPlan(
        target=model,
        draft=None,
        context=ContextSettings(n_ctx=256),
        arms=build_arms(("off", "ngram"), SpeculationSettings()),
        workloads=(Workload("own", "Own text", "", False, None, (Prompt("own", "", "One two three."),)),),
        sampling=SamplingSettings(),
        is_temperature_fixed=False,
        max_tokens=12,
        num_pairs=3,
        warmup_tokens=0,
    )
    asyncio.run(measure(ScriptedEngine(), plan, keeper.watching(lambda progress: None)))
    assert command("runs", "show", "last") == 0
    out = capsys.readouterr().out
    assert "still being measured" in out and "Own text (own: temperature 0)" in out and "speedup" in out
    assert command("runs", "delete", "last", "--yes") == 2
    with Database(store) as database:
        database.connection.execute("UPDATE runs SET state = 'lost'")
    assert command("runs", "show", "last") == 0
    assert "ended without a word" in capsys.readouterr().out


def test_a_run_without_settings_is_a_failure_in_words(
    command: Command, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database(store) as database:
        Runs(database).start("bench", {})
    assert command("runs", "show", "last") == 1
    assert "error:" in capsys.readouterr().err


def test_histograms_count_all_trials() -> None:
    workload = made_up_run()["workloads"][0]
    assert accepted_lengths(workload, "draft") == [0, 3, 6]
    assert accepted_lengths(workload, "off") == []
    head, none, one, two = histogram_lines(workload)
    assert "9 rounds" in head
    assert (none.count("#"), one.count("#"), two.count("#")) == (0, 20, 40)
    assert two.endswith("67 %")


def test_compare_says_what_differs_and_what_became_of_it(
    command: Command, keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    keep(made_up_run())
    keep(changed(made_up_run(SLOW), build__llama_cpp="b2 [/b]\x1b[31m"))
    assert command("runs", "compare", "1", "last") == 0
    out = capsys.readouterr().out
    assert "llama.cpp: b1 -> b2 [/b]" in out and "\x1b" not in out
    row = next(line for line in out.splitlines() if "so it is" in line)
    assert row.split() == ["so", "it", "is", "slower", "no", "clear", "difference"]
    assert "0.80x" in out
    assert max(map(len, out.splitlines())) <= 80
    assert command("runs", "compare", "2", "1", "--json") == 0
    record = json_of(capsys.readouterr().out)
    assert (record["before"], record["after"]) == (2, 1)
    assert record["workloads"][0]["arms"][0]["decode_tps"]["verdict"] == "faster"


def test_csv_has_a_line_for_each_round_and_no_formulas(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = {"off": (100.0, 101.0), "=HYPERLINK(1)": (150.0, 152.0)}
    keep(made_up_run(rates, workload='@SUM, ["x"]\n', methods={"=HYPERLINK(1)": "draft"}))
    assert command("runs", "export", "1", "--csv") == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 4 * 3
    assert tuple(rows[0]) == COLUMNS
    assert {row["arm"] for row in rows} == {"off", "'=HYPERLINK(1)"}
    assert {row["workload"] for row in rows} == {'\'@SUM, ["x"]'}
    assert [row["round"] for row in rows[:3]] == ["0", "1", "2"]
    assert (rows[-1]["drafted"], rows[-1]["accepted"], rows[-1]["decode_tps"]) == ("4", "2", "152.0")
    # Columns that an older run lacks are empty.
    assert rows[0]["verify_s"] == "" and rows[0]["at_s"] == "0.02"


def test_export_writes_files_but_not_over_others(
    command: Command, keep: Keep, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(made_up_run())
    file = tmp_path / "run.csv"
    assert command("runs", "export", "last", "-o", file) == 0
    assert file.read_text(encoding="utf-8").startswith("run,workload,arm,")
    assert command("runs", "export", "last", "--json", "-o", file) == 2
    assert "--force" in capsys.readouterr().err
    assert command("runs", "export", "last", "--json", "--force", "-o", file) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["schema"] == 1
    assert command("runs", "export", "last") == 0
    assert json_of(capsys.readouterr().out)["run"]["kind"] == "bench"


def test_delete_asks_and_deletes_all_or_none(command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        keep(made_up_run())
    assert command("runs", "delete", "1") == 2
    assert "--yes" in capsys.readouterr().err
    assert command("runs", "delete", "1", "9", "--yes") == 2
    assert "no run 9" in capsys.readouterr().err
    assert command("runs", "delete", "1", "last", "3", "--yes") == 0
    assert "2 runs deleted." in capsys.readouterr().out
    assert command("runs", "--json") == 0
    assert [summary["id"] for summary in json_of(capsys.readouterr().out)["runs"]] == [2]


@pytest.mark.parametrize("word", ["0", "-1", "1e9", "9" * 30, "x\x1b[31m", "newest"])
def test_a_wrong_number_is_wrong_usage(
    word: str, command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(made_up_run())
    assert command("runs", "show", "--", word) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "error:" in captured.err and "\x1b" not in captured.err


def test_a_rerun_says_what_differs_and_compares(
    command: Command, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("bench", model, "--workload", "chat", "--max-tokens", "12", "--n-max", "3")
    assert command(*words, engine=EchoEngine()) == 0
    capsys.readouterr()
    model.write_bytes(b"GGUF" + bytes(99))
    assert command("runs", "rerun", "1", "--json", engine=EchoEngine()) == 0
    captured = capsys.readouterr()
    before, _, after = captured.err.partition("pair 1 of 3")
    assert "Measuring again: run 1" in before
    assert "What differs now (run 1 -> now):" in before and "SHA-256 of the target:" in before
    assert "decode_tps, run 1" in after and "decode_tps, run 2" in after and "run 2 kept" in after
    document = json_of(captured.out)
    assert document["run_id"] == 2 and document["settings"]["speculation"]["ngram"]["n_max"] == 3
    assert document["compared_with"]["run_id"] == 1
    assert [one["group"] for one in document["compared_with"]["differences"]] == ["file"]


def test_a_rerun_need_not_be_kept(command: Command, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("bench", model, "--workload", "chat", "--max-tokens", "12", engine=EchoEngine()) == 0
    assert command("runs", "rerun", "last", "--no-keep", engine=EchoEngine()) == 0
    captured = capsys.readouterr()
    assert "decode_tps, now" in captured.out
    assert "Build, device, power and files are as in run 1" in captured.err
    assert command("runs", "--json") == 0
    assert len(json_of(capsys.readouterr().out)["runs"]) == 1


def test_a_rerun_of_what_is_gone_measures_nothing(
    command: Command, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("bench", model, "--workload", "chat", "--max-tokens", "12", engine=EchoEngine()) == 0
    model.unlink()
    capsys.readouterr()
    assert command("runs", "rerun", "last") == 1
    assert "no longer at" in capsys.readouterr().err


def test_bench_warns_when_it_is_slower_than_before(
    command: Command, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("bench", model, "--method", "ngram", "--workload", "chat", "--max-tokens", "12")
    assert command(*words, engine=EchoEngine()) == 0
    assert "warning:" not in capsys.readouterr().err
    assert command(*words, engine=EchoEngine()) == 0
    assert "warning:" not in capsys.readouterr().err
    slow = EchoEngine()
    slow.step_s = 0.02
    slow.scripts = {"ngram": ArmScript(draft_step_s=0.002)}
    assert command(*words, "--json", engine=slow) == 0
    captured = capsys.readouterr()
    assert "warning: This configuration is slower than before:" in captured.err
    assert "chat, off: 50.0 tokens/s where runs 2 and 1 had 100.0: 0.50x" in captured.err
    assert {alarm["arm"] for alarm in json_of(captured.out)["alarms"]} == {"off", "ngram"}


DRAFT_CONTEXT = {"n_ctx": 256, "n_gpu_layers": 0, "type_k": "f16", "type_v": "f16"}
UNUSABLE = {"off": (100.0, 60.0, 30.0), "draft": (150.0, 152.0, 149.0)}


def test_compare_claims_nothing_of_an_unusable_run(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(made_up_run())
    keep(made_up_run({**UNUSABLE, "draft": (15.0, 15.2, 14.9)}))
    assert command("runs", "compare", "1", "2", "--json") == 0
    out, err = capsys.readouterr()
    assert "No clear difference: run 2 was unusable" in err
    (workload,) = json_of(out)["workloads"]
    assert workload["is_unusable"] == [False, True]
    assert {arm["decode_tps"]["verdict"] for arm in workload["arms"]} == {"no_clear_difference"}


def test_an_unusable_speedup_is_marked_in_the_list(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    keep(made_up_run())
    assert command("runs") == 0
    assert "unusable" not in capsys.readouterr().out
    keep(made_up_run(UNUSABLE))
    assert command("runs") == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.lstrip().startswith("2 ")]
    assert ")*" in line and "* unusable: the baseline changed too much" in out


def test_forty_columns_break_no_words(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(changed(made_up_run(), target__path="/m/target-of-the-list.gguf", draft__path="/m/its-draft.gguf"))
    monkeypatch.setenv("COLUMNS", "40")
    assert command("runs") == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 40
    for word in ("target-of-the-list", "+ its-draft", "chat", "draft", "done", "bench"):
        assert word in out


@pytest.mark.skipif(os.name == "nt", reason="there are no such files")
@pytest.mark.parametrize(
    "words", [("runs", "export", "1"), ("history", "export", "1"), ("export", "quick", "--to", "json")]
)
def test_no_export_touches_what_is_no_file(
    command: Command, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "goal").write_text("mine")
    (tmp_path / "link").symlink_to("goal")
    for place, kind in (("pipe", "a named pipe"), ("link", "a link"), (".", "a folder")):
        for more in ((), ("--force",)):
            assert command(*words, "-o", tmp_path / place, *more) == 2
            assert kind in capsys.readouterr().err
    assert (tmp_path / "goal").read_text() == "mine" and (tmp_path / "pipe").is_fifo()


def test_a_dash_is_stdout(command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]) -> None:
    keep(made_up_run())
    assert command("runs", "export", "1", "-o", "-") == 0
    assert json_of(capsys.readouterr().out)["run"]["kind"] == "bench"


def test_nothing_is_estimated_of_a_run_without_figures(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep({**made_up_run(), "workloads": []})
    assert command("estimate", "--run", "1") == 2
    assert "Nothing was measured" in capsys.readouterr().err
    assert command("profile", "save", "quick", "--run", "1") == 2
    assert "Nothing was measured" in capsys.readouterr().err


def test_a_profile_is_made_of_the_file_that_was_measured(
    command: Command, keep: Keep, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    keep(changed(made_up_run(), target__path=str(model), target__sha256=sha256, settings__draft_context=DRAFT_CONTEXT))
    assert command("profile", "save", "same") == 0
    model.write_bytes(b"GGUF" + bytes(99) + b"!")
    assert command("profile", "save", "other") == 2
    err = capsys.readouterr().err
    assert "is not the file that run 1 measured" in err and sha256 in err
    keep(changed(made_up_run(), target__path="model.gguf"))
    assert command("profile", "save", "relative") == 2
    assert "a path that began in a folder it does not name" in capsys.readouterr().err
    assert command("profile", "list", "--json") == 0
    assert [item["name"] for item in json_of(capsys.readouterr().out)["profiles"]] == ["same"]


def test_no_profile_is_made_of_an_unusable_figure_unasked(
    command: Command, keep: Keep, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(changed(made_up_run(UNUSABLE), settings__draft_context=DRAFT_CONTEXT))
    assert command("profile", "save", "quick") == 2
    assert "relied on" in capsys.readouterr().err
    assert command("profile", "save", "quick", "--arm", "draft") == 0
    capsys.readouterr()
    assert command("profile", "list") == 0
    assert "unusable" in capsys.readouterr().out
    assert command("export", "quick", "--to", "llama-cli") == 0
    assert "# Do not rely on that figure" in capsys.readouterr().out
