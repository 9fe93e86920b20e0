from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from localspec.catalog.costs import too_dear_words
from localspec.catalog.pairing import PairVerdict
from localspec.cli.candidate_list import show_candidates
from localspec.cli.main import run
from localspec.cli.pair import candidate_record, verdict_record
from localspec.cli.services import Services
from localspec.session.candidates import Candidate, SearchExtent
from localspec.session.located import LocatedModel
from tests.candidate_kit import MIB, engine, facts

TARGET = LocatedModel("o/target:Q4_K_M", Path("/cache/header"), None)
GOOD = Candidate(
    source="hub",
    label="o/draft:Q4_0",
    method="draft",
    size_bytes=300 * MIB,
    facts=facts(active_mib=300),
    verdict=PairVerdict("PAIR", ""),
    cost_ratio=0.08,
    break_even=0.07,
    reason="Same family.",
    refusal="",
)
NGRAM = Candidate("built in", "n-grams of the text", "ngram", 0, None, None, 0.0, 0.0, "Needs nothing.", "")
REFUSED = replace(GOOD, label="o/other:Q4_0", reason="", refusal="token 5: the target says [a], the draft says [b]")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two local files, and folders of the test's own."""
    for name in ("DATA", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    for name in ("big", "small"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
    return str(tmp_path / "big.gguf"), str(tmp_path / "small.gguf")


def shown(*candidates: Candidate, width: int = 80, extent: SearchExtent | None = None) -> str:
    text = io.StringIO()
    show_candidates(Console(file=text, width=width, markup=False), TARGET, candidates, extent)
    return text.getvalue()


def test_accepted_ones_come_ranked_and_refused_ones_with_their_reason() -> None:
    out = shown(GOOD, NGRAM, REFUSED)
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "o/draft:Q4_0", "draft", "300", "MiB", "0.08", "7", "%"] in rows
    assert "1. o/draft:Q4_0: Same family." in out and "2. n-grams of the text: Needs nothing." in out
    assert out.index("Refused:") < out.index("  o/other:Q4_0: token 5: the target says [a], the draft says [b]")
    assert "Cost: what a draft step reads" in out


def test_columns_are_explained_only_where_they_say_something() -> None:
    out = shown(NGRAM)
    assert "Cost: what" not in out and "Refused" not in out
    assert "(here)" in shown(replace(GOOD, source="local")) and "(here)" not in shown(GOOD)


def test_a_draft_that_is_too_large_is_so_in_the_same_words_everywhere(
    models: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = "oo dear to pay: it reads 0.69 of what a target step reads; a quarter or less is worth trying"
    services = Services(make_engine=lambda: engine({"big": 1000, "small": 694}))
    assert run(["pair", *models], services) == 0
    assert f"  T{words}.\n" in capsys.readouterr().out
    assert too_dear_words(0.694) == f"t{words}"
    noted = PairVerdict("PAIR_WITH_NOTE", "", (f"t{words}",))
    services = Services(make_engine=lambda: engine({"big": 1000, "small": 694}, {"small": noted}))
    assert run(["pair", *models], services) == 0
    assert capsys.readouterr().out.count(words) == 1
    assert too_dear_words(0.25) == "" and "0.26 of" in too_dear_words(0.2501)


def test_only_ngrams_need_no_figures_and_the_search_is_told() -> None:
    extent = SearchExtent(9, {"vocabulary": 7}, ("qwen3",))
    out = shown(NGRAM, extent=extent)
    assert out.splitlines()[1].split() == ["Draft", "Method"]
    assert "7 other local models have another vocabulary.\n" in out
    assert "Looked at: the curated list, 9 other models on this machine and the Hub (qwen3).\n" in out
    out = shown(GOOD, NGRAM, extent=extent)
    assert "7 other local models" in out and "Looked at" not in out


def test_notes_and_other_names_are_shown() -> None:
    out = shown(replace(GOOD, notes="Tried by many. (https://example.org)", other_names=("copy", "copy-2")))
    assert "1. o/draft:Q4_0 (the same as copy, copy-2): Same family." in out
    assert "The curated list says:\n  o/draft:Q4_0: Tried by many. (https://example.org)\n" in out


@pytest.mark.parametrize("words", [("--draft",), ()])
def test_the_draft_may_be_an_option(
    words: tuple[str, ...], models: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    services = Services(make_engine=lambda: engine({"big": 1000, "small": 100}))
    assert run(["pair", models[0], *words, models[1]], services) == 0
    assert "draft   small\n" in capsys.readouterr().out
    assert run(["pair", models[0], models[1], "--draft", models[0]], services) == 2


def test_the_table_of_candidates_fits_80_columns() -> None:
    out = shown(replace(GOOD, label="bartowski/Meta-Llama-3.2-1B-Instruct-GGUF:Q4_K_M"), NGRAM)
    table = out.partition("Cost:")[0].splitlines()
    assert max(map(len, table)) <= 80
    beginnings = [line.split()[0] for line in table[3:]]
    assert beginnings == ["1", "Meta-Llama-3.2-1B-Instruct-GGUF:Q4_K_M", "2"]


@pytest.mark.parametrize(
    ("verdict", "code", "words"),
    [
        (PairVerdict("PAIR", ""), 0, "verdict a pair\n"),
        (PairVerdict("PAIR_WITH_NOTE", "", ("the templates differ",)), 0, "  note: the templates differ\n"),
        (PairVerdict("NO_PAIR", "token 9: [/] is \x1b[31mred"), 1, "  token 9: [/] is [31mred\n"),
        (PairVerdict("UNKNOWN", "no vocabulary"), 1, "verdict cannot be said\n  no vocabulary\n"),
    ],
)
def test_the_exit_code_is_the_verdict(
    verdict: PairVerdict, code: int, words: str, models: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    services = Services(make_engine=lambda: engine({"big": 1000, "small": 100}, {"small": verdict}))
    assert run(["pair", *models], services) == code
    out = capsys.readouterr().out
    assert words in out
    assert ("A draft step reads 0.10 of what a target step reads." in out) is (code == 0)
    assert run(["pair", *models, "--json"], services) == code
    document = json.loads(capsys.readouterr().out)
    assert (document["target"], document["draft"], document["verdict"]) == ("big", "small", verdict.status)
    assert document["reason"] == (verdict.reason or None) and document["notes"] == list(verdict.notes)


def test_an_engine_that_dies_is_a_failure(
    models: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    deadly = tmp_path / "deadly.gguf"
    deadly.write_bytes(b"GGUF")
    assert run(["pair", models[0], str(deadly)], Services(make_engine=engine)) == 1
    assert "error: The engine died." in capsys.readouterr().err


def test_one_model_alone_lists_what_is_here(models: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    def no_hub() -> object:
        raise AssertionError("The Hub was asked.")

    services = Services(engine, no_hub)  # type: ignore[arg-type]
    assert run(["pair", models[0], "--local", "--json"], services) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["target"] == "big"
    assert [one["method"] for one in document["candidates"]] == ["ngram"]


def test_records_have_null_for_what_is_empty() -> None:
    assert verdict_record(PairVerdict("PAIR", ""))["reason"] is None
    record = candidate_record(NGRAM)
    assert (record["verdict"], record["refusal"], record["path"], record["facts"]) == (None, None, None, None)
    assert candidate_record(REFUSED)["reason"] is None
    assert candidate_record(GOOD)["verdict"]["verdict"] == "PAIR"
