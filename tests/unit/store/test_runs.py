"""Runs in the store: their life, their order, and what becomes of those that nobody finished."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localspec.errors import StoreError, UsageError
from localspec.store.database import Database
from localspec.store.run_facts import facts_of
from localspec.store.runs import Runs

REQUEST: dict[str, Any] = {
    "workloads": [{"name": "chat"}, {"name": "edit"}],
    "frame": {
        "build": {"llama_cpp": "b1", "llama_cpp_python": "0.3.36"},
        "device": {"name": "CPU", "description": "Processor"},
        "target": {"path": "/models/big Q4.gguf"},
        "draft": {"path": "C:\\models\\small.gguf"},
    },
}


def arm(name: str, median: float | None, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"name": name, "speedup": None if median is None else {"median": median, "low": low, "high": high}}


def document(**workloads: list[dict[str, Any]]) -> dict[str, Any]:
    return {**REQUEST["frame"], "workloads": [{"name": name, "arms": arms} for name, arms in workloads.items()]}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    start = datetime(2025, 1, 2, 3, 0, 0, tzinfo=UTC)
    minutes = itertools.count()
    with Database(tmp_path / "x.sqlite3", now=lambda: start + timedelta(minutes=next(minutes))) as database:
        yield database


def test_a_run_from_its_beginning_to_its_end(database: Database) -> None:
    runs = Runs(database)
    run_id = runs.start("bench", REQUEST, "daily")
    (summary,) = runs.summaries()
    assert (summary.id, summary.state, summary.kind, summary.profile) == (run_id, "running", "bench", "daily")
    assert (summary.created_at, summary.finished_at) == ("2025-01-02T03:00:00+00:00", "")
    assert (summary.target_name, summary.draft_name) == ("big Q4", "small")
    assert (summary.workloads, summary.device) == (("chat", "edit"), "Processor")
    assert summary.build == "llama.cpp b1, llama-cpp-python 0.3.36"

    runs.add_round(run_id, 0, {"index": 0})
    runs.add_round(run_id, 0, {"index": 1})
    assert [record["index"] for record in runs.get(run_id).rounds] == [0, 1]
    runs.add_trial(run_id, {"place": 0})
    runs.add_round(run_id, 1, {"index": 0})
    stored = runs.get(run_id)
    assert (stored.trials, stored.rounds, stored.document) == (({"place": 0},), ({"index": 0},), None)
    assert stored.request == REQUEST

    end = document(chat=[arm("off", None), arm("draft", 1.5, 1.4, 1.6)])
    runs.finish(run_id, end, "done")
    stored = runs.get(run_id)
    assert (stored.document, stored.trials, stored.rounds) == (end, (), ())
    assert stored.summary.finished_at == "2025-01-02T03:01:00+00:00"
    assert (stored.summary.state, stored.summary.workloads) == ("done", ("chat",))
    facts = stored.summary
    assert (facts.best_arm, facts.speedup, facts.speedup_low, facts.speedup_high) == ("draft", 1.5, 1.4, 1.6)


def test_documents_lie_compressed(database: Database) -> None:
    runs = Runs(database)
    run_id = runs.start("bench", REQUEST)
    runs.finish(run_id, {"workloads": [], "rounds": [1, 2, 3] * 10_000}, "done")
    ((size,),) = database.connection.execute("SELECT LENGTH(document) FROM runs").fetchall()
    assert size < 2000
    assert runs.get(run_id).document == {"workloads": [], "rounds": [1, 2, 3] * 10_000}


def test_numbers_that_json_lacks_are_refused(database: Database) -> None:
    runs = Runs(database)
    with pytest.raises(ValueError, match="JSON"):
        runs.add_round(runs.start("bench", REQUEST), 0, {"at_s": float("nan")})


def test_the_newest_come_first_and_numbers_are_never_used_again(database: Database) -> None:
    runs = Runs(database)
    ids = [runs.start("bench", REQUEST) for _ in range(4)]
    assert [summary.id for summary in runs.summaries()] == ids[::-1]
    assert [summary.id for summary in runs.summaries(limit=2)] == ids[:1:-1]
    runs.delete(ids[-1])
    assert runs.start("bench", REQUEST) > ids[-1]


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (5, "The nearest ones are 2, 3, 4"),
        (-1, "The nearest ones are 1, 2, 3"),
        (10**30, "The nearest ones are 3, 4, 9"),
    ],
)
def test_a_number_that_is_not_there_is_answered_with_its_neighbours(database: Database, asked: int, hint: str) -> None:
    runs = Runs(database)
    for _ in range(9):
        runs.start("bench", REQUEST)
    for number in (5, 6, 7, 8):
        runs.delete(number)
    for ask in (runs.get, runs.delete):
        with pytest.raises(UsageError, match=f"no run {asked}") as caught:
            ask(asked)
        assert hint in caught.value.hint


def test_without_any_run_the_hint_says_what_keeps_one(database: Database) -> None:
    with pytest.raises(UsageError) as caught:
        Runs(database).get(1)
    assert "localspec bench" in caught.value.hint


def test_a_deleted_run_takes_its_rounds_with_it_and_leaves_its_profile(database: Database) -> None:
    runs = Runs(database)
    run_id = runs.start("bench", REQUEST)
    runs.add_trial(run_id, {})
    runs.add_round(run_id, 0, {})
    ask = database.connection.execute
    ask("INSERT INTO profiles (name, created_at, run_id, document) VALUES ('p', '', ?, '{}')", (run_id,))
    runs.delete(run_id)
    for table in ("runs", "trials", "rounds"):
        assert ask(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    assert ask("SELECT name, run_id FROM profiles").fetchall() == [("p", None)]
    with pytest.raises(sqlite3.IntegrityError):
        runs.add_round(run_id, 0, {})
    with pytest.raises(UsageError):
        runs.finish(run_id, {}, "done")


def test_a_document_that_cannot_be_read_is_a_failure_in_words(database: Database) -> None:
    runs = Runs(database)
    run_id = runs.start("bench", REQUEST)
    database.connection.execute("UPDATE runs SET request = x'00112233', workloads = '[\"chat'")
    assert runs.summaries()[0].workloads == ()
    with pytest.raises(StoreError, match="cannot be read"):
        runs.get(run_id)


def test_a_run_whose_process_has_gone_is_lost(database: Database) -> None:
    runs = Runs(database)
    alive, gone, reused, done = (runs.start("bench", REQUEST) for _ in range(4))
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    ask = database.connection.execute
    ask("UPDATE runs SET pid = ? WHERE id = ?", (child.pid, gone))
    # Our own number, but another process had it.
    ask("UPDATE runs SET process_started_at = process_started_at - 3600 WHERE id = ?", (reused,))
    runs.finish(done, {"workloads": []}, "done")
    ask("UPDATE runs SET pid = ? WHERE id = ?", (child.pid, done))
    states = {summary.id: summary.state for summary in Runs(database).summaries()}
    assert states == {alive: "running", gone: "lost", reused: "lost", done: "done"}
    assert runs.get(alive).summary.finished_at == ""
    assert os.getpid() == ask("SELECT pid FROM runs WHERE id = ?", (alive,)).fetchone()[0]


def test_the_best_arm_is_the_best_over_all_workloads() -> None:
    facts = facts_of(
        document(
            chat=[arm("off", None), arm("draft", 1.0, 0.9, 1.1), arm("ngram", 2.0, 1.9, 2.1), arm("late", 9.0)],
            edit=[arm("off", None), arm("draft", 4.0, 3.6, 4.4), arm("ngram", 1.5, 1.4, 1.6)],
        )
    )
    assert facts.best_arm == "draft"
    assert facts.speedup == pytest.approx(2.0)
    assert facts.speedup_low == pytest.approx((0.9 * 3.6) ** 0.5)
    assert facts.speedup_high == pytest.approx((1.1 * 4.4) ** 0.5)
    # Without an interval on one of them there is none over all.
    facts = facts_of(document(chat=[arm("draft", 2.0, 1.9, 2.1)], edit=[arm("draft", 2.0)]))
    assert (facts.speedup, facts.speedup_low, facts.speedup_high) == (2.0, None, None)


@pytest.mark.parametrize(
    "odd", [{}, {"workloads": None}, {"workloads": [3, {"arms": {}}]}, {"target": 7, "build": [], "device": None}]
)
def test_a_document_of_another_form_has_no_facts(odd: dict[str, Any]) -> None:
    facts = facts_of(odd)
    assert (facts.best_arm, facts.speedup, facts.target_name, facts.build) == ("", None, "", "")
