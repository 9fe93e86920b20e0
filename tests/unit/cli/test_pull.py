from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from localspec.catalog.hub.cache_layout import blob_path, snapshot_path
from localspec.catalog.hub.partials import partial_path
from localspec.catalog.hub.values import Offer, RepoFile, RepoListing
from localspec.catalog.pairing import PairVerdict
from localspec.catalog.progress import TransferProgress, TransferState
from localspec.cli.pull import check_plan, pull_record, show_plan
from localspec.cli.transfers import description, figure, transfer_printer
from localspec.errors import UsageError
from localspec.session.pulling import PlannedPart, PullPlan, missing_bytes
from tests.candidate_kit import MIB

SHA = "a" * 64


def part(repo: str, mib: int, missing: int | None = None) -> PlannedPart:
    file = RepoFile(f"{repo[2:]}-Q4_0.gguf", mib * MIB, SHA)
    listing = RepoListing(repo, "main", "c" * 40, (file,), (), "", False, 1)
    left = mib if missing is None else missing
    return PlannedPart(f"{repo}:Q4_0", listing, Offer("Q4_0", "model", (file,)), left * MIB)


PLAN = PullPlan(part("o/target", 900), part("o/draft", 90), "", PairVerdict("PAIR", ""), "", Path("header.gguf"))


def shown(plan: PullPlan) -> str:
    text = io.StringIO()
    show_plan(Console(file=text, width=80, markup=False), plan)
    return text.getvalue()


def test_the_plan_says_what_is_still_to_come() -> None:
    rows = [line.split() for line in shown(replace(PLAN, draft=part("o/draft", 90, 0))).splitlines()]
    assert rows[2:4] == [
        ["target", "o/target:Q4_0", "900", "MiB", "900", "MiB"],
        ["draft", "o/draft:Q4_0", "90", "MiB", "all", "here"],
    ]
    assert replace(PLAN, draft=part("o/draft", 90, 1)).missing_bytes == 901 * MIB
    assert "Target and draft: a pair." in shown(PLAN)


def test_long_names_break_behind_their_owner() -> None:
    long = "hugging-quants/Meta-Llama-3.2-1B-Instruct-GGUF"
    plan = replace(PLAN, draft=replace(part("o/draft", 90), label=f"{long}:Q4_K_M"))
    lines = shown(plan).partition("Target and")[0].splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-2].split()[:2] == ["draft", "hugging-quants/"]
    assert lines[-1].split() == ["Meta-Llama-3.2-1B-Instruct-GGUF:Q4_K_M"]


def test_the_plan_says_why_this_draft_or_none() -> None:
    noted = replace(PLAN, verdict=PairVerdict("PAIR_WITH_NOTE", "", ("[/] differs",)))
    assert "a pair, with a note.\n  note: [/] differs\n" in shown(noted)
    assert "The draft is here already: small." in shown(replace(PLAN, draft=None, draft_here="small"))
    assert "No draft was found." in shown(replace(PLAN, draft=None, verdict=None, remark="No draft was found."))


@pytest.mark.parametrize("status", ["NO_PAIR", "UNKNOWN"])
def test_what_is_no_pair_is_refused_unless_forced(status: str) -> None:
    plan = replace(PLAN, verdict=PairVerdict(status, "the tokens differ"))  # type: ignore[arg-type]
    with pytest.raises(UsageError) as failure:
        check_plan(plan, False)
    assert failure.value.message.endswith("draft for o/target:Q4_0: the tokens differ.")
    for word in ("--draft auto", "--draft none", "--force"):
        assert word in failure.value.hint
    check_plan(plan, True)
    check_plan(replace(plan, draft=None), False)


def test_pairs_are_not_refused() -> None:
    check_plan(PLAN, False)
    check_plan(replace(PLAN, verdict=PairVerdict("PAIR_WITH_NOTE", "", ("x",))), False)
    check_plan(replace(PLAN, draft=None, verdict=None), False)


def test_the_record_names_hashes_and_roles() -> None:
    record = pull_record(PLAN, (Path("/t.gguf"), Path("/d.gguf")), ("target name", "draft name"), None)
    assert [(model["role"], model["name"], model["path"]) for model in record["models"]] == [
        ("target", "target name", "/t.gguf"),
        ("draft", "draft name", "/d.gguf"),
    ]
    assert record["models"][0]["files"] == [{"path": "target-Q4_0.gguf", "sha256": SHA}]
    assert (record["draft_here"], record["remark"]) == (None, None)


def test_what_broken_off_downloads_left_counts_as_there(tmp_path: Path) -> None:
    one = part("o/target", 1)
    assert missing_bytes(one.listing, one.offer, tmp_path) == MIB
    blob = blob_path(tmp_path, "o/target", SHA)
    blob.parent.mkdir(parents=True)
    partial_path(blob).write_bytes(bytes(1000))
    assert missing_bytes(one.listing, one.offer, tmp_path) == MIB - 1000
    blob.write_bytes(bytes(MIB))
    assert missing_bytes(one.listing, one.offer, tmp_path) == 0
    snapshot = snapshot_path(tmp_path, "o/target", "c" * 40, "target-Q4_0.gguf")
    snapshot.parent.mkdir(parents=True)
    blob.rename(snapshot)
    assert missing_bytes(one.listing, one.offer, tmp_path) == 0
    snapshot.write_bytes(b"short")
    partial_path(blob).unlink()
    assert missing_bytes(one.listing, one.offer, tmp_path) == MIB


def transfer(state: TransferState = "fetching", name: str = "a.gguf", num_files: int = 1) -> TransferProgress:
    return TransferProgress(name, 0, num_files, state, MIB, 10 * MIB, 50 * MIB, 200 * MIB, 2.5 * MIB, 60.0)


def test_progress_in_words_and_figures() -> None:
    assert description(transfer()) == "fetching a.gguf"
    assert description(transfer("checking", num_files=3)) == "checking what is there of a.gguf (1 of 3)"
    assert figure(transfer()) == "50 of 200 MiB, 2.5 MiB/s, 60 s left"
    assert figure(transfer("done")) == "50 of 200 MiB"
    assert figure(replace(transfer(), speed=None, eta_s=None)) == "50 of 200 MiB"


@pytest.mark.parametrize("room", [0, 25, 30, 40, 80])
def test_a_long_name_gives_way_in_the_middle(room: int) -> None:
    name = "Meta-Llama-3.1-70B-Instruct-Q4_K_M.gguf"
    text = description(transfer(name=name, num_files=2), room)
    assert text.startswith("fetching Meta") and text.removesuffix(" (1 of 2)").removesuffix(".gguf").endswith("_K_M")
    assert len(text) <= max(room, len("fetching ") + 9 + len(" (1 of 2)"))
    assert ("…" not in text) is (name in text) is (room == 80)
    assert description(transfer(name="a\x1b[31m\nb")) == "fetching a[31m b"


def test_reports_carry_the_fraction_of_everything() -> None:
    seen: list[tuple[str, float, str]] = []
    show = transfer_printer(lambda *step: seen.append(step))
    show(transfer())
    show(replace(transfer(), all_done_bytes=0, all_total_bytes=0))
    assert [step[1] for step in seen] == [0.25, 0.0]
    assert seen[0][0] == "fetching a.gguf"
