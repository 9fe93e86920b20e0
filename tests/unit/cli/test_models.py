from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from localspec.catalog.hub.partials import Partial
from localspec.cli.main import run
from localspec.cli.models import entry_record, fitting_grid, params_text, partial_line, remark
from localspec.cli.screen import DASH, print_table
from localspec.cli.services import Services
from localspec.session.library import ModelEntry
from tests.candidate_kit import MIB, engine, entry, facts
from tests.scripted_engine import EchoEngine
from tests.tiny_gguf import write_llama


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"{name}.gguf").write_bytes(b"GGUF" + name.encode())


def put_cached(tmp_path: Path, repo: str, *names: str) -> Path:
    snapshot = tmp_path / "hf" / "hub" / f"models--{repo.replace('/', '--')}" / "snapshots" / ("c" * 40)
    snapshot.mkdir(parents=True)
    put(snapshot, *names)
    return snapshot


def test_without_models_the_ways_to_get_some_are_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models"], Services(make_engine=EchoEngine)) == 0
    out = capsys.readouterr().out
    for word in ("localspec search", "localspec demo", "settings.toml"):
        assert word in out
    assert out.count("\n") == 1


def test_a_table_of_short_names_fits_80_columns(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(data, "Qwen3-0.6B-Q4_K_M")
    put_cached(tmp_path, "o/Tiny-GGUF", "model-Q4_K_M")
    assert run(["models"], Services(make_engine=engine)) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert max(map(len, rows)) <= 80
    assert head.split() == ["Name", "Parameters", "Quantisation", "Size", "Context", "Where"]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [
        ("Qwen3-0.6B-Q4_K_M", "own"),
        ("o/Tiny-GGUF:Q4_K_M", "hub"),
    ]


def test_in_a_pipe_no_name_is_broken(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "bartowski/Meta-Llama-3.1-70B-Instruct-GGUF"
    put_cached(tmp_path, name, "model-Q4_K_M")
    assert run(["models"], Services(make_engine=engine)) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    # The context goes first; where a model is stays.
    assert head.split() == ["Name", "Params", "Quantisation", "Size", "Where"]
    assert row.split()[0] == f"{name}:Q4_K_M"


def test_on_a_terminal_owners_get_lines_of_their_own() -> None:
    text = io.StringIO()
    console = Console(file=text, width=80, force_terminal=True, color_system=None)
    long = entry("bartowski/Meta-Llama-3.1-70B-Instruct-GGUF:Q4_K_M", facts(), place="hugging face")
    print_table(console, fitting_grid(console, [long]))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:]] == ["bartowski/", "Meta-Llama-3.1-70B-Instruct-GGUF:Q4_K_M"]


def test_a_wide_screen_shows_more(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(data, "Qwen3-0.6B-Q4_K_M")
    monkeypatch.setenv("COLUMNS", "160")
    assert run(["models"], Services(make_engine=engine)) == 0
    head, _, row = capsys.readouterr().out.splitlines()[:3]
    assert head.split() == [
        "Name", "Architecture", "Parameters", "Quantisation", "Size", "Context", "Vocabulary", "Where", "Remarks"
    ]  # fmt: skip
    assert "qwen3" in row and " own " in row and "no chat template" in row


def test_a_file_that_cannot_be_read_is_a_row_with_its_reason(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(data, "bad")
    assert run(["models", "--json"], Services(make_engine=EchoEngine)) == 0
    captured = capsys.readouterr()
    [model] = json.loads(captured.out)["models"]
    assert (model["facts"], model["failure"], model["hint"]) == (None, "There is no such file.", "Do something else.")
    assert "bad: There is no such file.\n  Do something else.\n" in captured.err


def test_folders_of_other_programs_are_suggested(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home" / ".lmstudio" / "models").mkdir(parents=True)
    assert run(["models"], Services(make_engine=EchoEngine)) == 0
    out = capsys.readouterr().out
    assert f"LM Studio keeps models in {tmp_path}/home/.lmstudio/models." in out
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "settings.toml").write_text('[models]\nfolders = ["/nowhere/at/all"]\n', "utf-8")
    assert run(["models", "--json"], Services(make_engine=EchoEngine)) == 0
    [note] = json.loads(capsys.readouterr().out)["notes"]
    assert "/nowhere/at/all" in note


def test_remarks() -> None:
    plain = replace(facts(), template_fingerprint="x")
    assert remark(plain) == ""
    assert remark(facts()) == "no chat template"
    assert remark(replace(plain, num_mtp_layers=1)) == "1 MTP layer"
    assert remark(replace(plain, num_mtp_layers=2)) == "2 MTP layers"
    assert remark(replace(facts(), draft_only="eagle3", num_mtp_layers=1)) == "eagle3 draft only"


def test_active_parameters_of_experts() -> None:
    dense = facts(params=8_190_000_000)
    assert params_text(dense) == "8.2B"
    sparse = replace(dense, num_params=30_500_000_000, num_active_params=3_300_000_000, num_experts=128)
    assert params_text(sparse) == "30B (3.3B active)"
    assert params_text(replace(dense, num_params=0, num_active_params=0)) == DASH


def test_a_record_has_null_for_what_is_unknown() -> None:
    record = entry_record(entry("a", None, failure="Broken."))
    assert (record["facts"], record["repo"], record["commit"], record["failure"]) == (None, None, None, "Broken.")
    record = entry_record(ModelEntry(entry("a", None).found, facts()))
    assert record["failure"] is None and record["facts"]["n_vocab"] == 151936


def test_what_a_download_left_is_one_line() -> None:
    file = Path("/cache/models--o--m/blobs/abc.localspec.partial")
    ours = Partial(Path("/cache"), file, "o/m", "abc", 5 * MIB, "m-Q4_0.gguf", 90 * MIB, True)
    assert partial_line(ours) == "o/m m-Q4_0.gguf: 5.0 MiB of 90 MiB"
    foreign = replace(ours, path="", size_bytes=None, is_ours=False)
    assert partial_line(foreign) == "o/m abc.localspec.partial: 5.0 MiB (left by huggingface_hub, of no more use)"
    assert "\x1b" not in partial_line(replace(ours, path="a\x1b[31m\nb"))


def test_without_a_place_for_the_log_the_list_is_there(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_llama(data / "tiny-F32.gguf")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOCALSPEC_LOG", str(tmp_path / "file" / "log"))
    assert run(["models", "--json"]) == 0
    captured = capsys.readouterr()
    [model] = json.loads(captured.out)["models"]
    assert model["facts"]["architecture"] == "llama"
    assert captured.err.count("note: No log is kept: ") == 1 and "set LOCALSPEC_LOG" in captured.err
