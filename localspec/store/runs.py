"""Runs: begun before the first measured round, and kept round by round until their document replaces all that.

Each round is a transaction of its own, so that a process that is killed loses at most the round in flight. Writing one
takes some 20 microseconds (99 of 100 under 150) in the process that shows the run, while the engine's own process
measures on. The disk is waited for (checkpoint) between trials only.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from typing import Any

from localspec.errors import StoreError, UsageError
from localspec.store.database import Database
from localspec.store.packing import decode, encode, pack, unpack
from localspec.store.run_facts import RunFacts, facts_of, workloads_text
from localspec.store.values import Record, RunState, RunSummary, StoredRun

_SUMMARY_COLUMNS = (
    "id, created_at, finished_at, state, kind, target_name, draft_name, workloads, speedup, speedup_low, "
    "speedup_high, best_arm, build, device, profile, unusable"
)

_PAGES_BEFORE_CHECKPOINT = 8192
"""While rounds are written: 32 MiB of log, which a trial of some thousand rounds stays under."""

_SAME_START_S = 10.0
"""Two readings of when one process started may differ by this much, as clocks are set right meanwhile."""

_NUM_NEAREST = 3


class Runs:
    """The runs of an open database. Runs whose process has ended without a word are found lost at once."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lost: set[int] = set()
        self._mark_lost()
        # On a full disk runs can still be read; the next command tries again.
        with suppress(StoreError):
            self._judge_old()

    def start(self, kind: str, request: Record, profile: str = "") -> int:
        """Begin a run of this process, and return its number, which no other run ever had.

        Args:
            kind: `bench`, `demo`, `tune` or `suite`.
            request: what was asked for. Its item `frame`, if there is one, is the run's document without workloads.
            profile: name of the profile that it measures.

        Raises:
            StoreError: it could not be written. So for everything here.
        """
        frame = request.get("frame")
        facts = facts_of(frame if isinstance(frame, dict) else {})
        names = [entry["name"] for entry in request.get("workloads", ())]
        with self._database.transaction() as connection:
            # Rounds must not wait for the disk; between trials there is time for it.
            connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
            cursor = connection.execute(
                "INSERT INTO runs (created_at, state, kind, target_name, draft_name, workloads, build, device, "
                "profile, pid, process_started_at, request) VALUES (?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._now(),
                    kind,
                    facts.target_name,
                    facts.draft_name,
                    json.dumps(names),
                    facts.build,
                    facts.device,
                    profile,
                    os.getpid(),
                    _process_start_s(os.getpid()) or 0.0,
                    pack(request),
                ),
            )
            return int(cursor.lastrowid or 0)

    def add_round(self, run_id: int, place: int, record: Record) -> None:
        """Keep a round of the trial that is under way.

        Args:
            place: the trial's place in its workload's order of runs.
        """
        self._database.connection.execute(
            "INSERT INTO rounds (run_id, place, record) VALUES (?, ?, ?)", (run_id, place, encode(record))
        )

    def add_trial(self, run_id: int, record: Record) -> None:
        """Keep a finished trial in place of its rounds."""
        # First, since the next write after it waits for the disk, too, and that must not be a round. What readers hold
        # back is taken next time.
        self._database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO trials (run_id, record) VALUES (?, ?)", (run_id, encode(record)))
            connection.execute("DELETE FROM rounds WHERE run_id = ?", (run_id,))

    def finish(self, run_id: int, document: Record, state: RunState) -> None:
        """Keep a run's document in place of its trials and rounds.

        Raises:
            UsageError: there is no run of this number any more.
        """
        facts = facts_of(document)
        with self._database.transaction() as connection:
            cursor = connection.execute(
                "UPDATE runs SET finished_at = ?, state = ?, target_name = ?, draft_name = ?, workloads = ?, "
                "speedup = ?, speedup_low = ?, speedup_high = ?, best_arm = ?, unusable = ?, build = ?, device = ?, "
                "document = ? "
                "WHERE id = ?",
                (self._now(), state, *_columns(facts), pack(document), run_id),
            )
            if not cursor.rowcount:
                raise self._unknown(run_id)
            connection.execute("DELETE FROM trials WHERE run_id = ?", (run_id,))
            connection.execute("DELETE FROM rounds WHERE run_id = ?", (run_id,))

    def summaries(self, limit: int | None = None) -> tuple[RunSummary, ...]:
        """Return the runs, newest first.

        Args:
            limit: at most so many; None for all.
        """
        rows = self._database.connection.execute(
            f"SELECT {_SUMMARY_COLUMNS} FROM runs ORDER BY id DESC LIMIT ?", (-1 if limit is None else limit,)
        ).fetchall()
        return tuple(self._summary(row) for row in rows)

    def get(self, run_id: int) -> StoredRun:
        """Return a run with all that is known of it.

        Raises:
            UsageError: there is none of this number; the hint gives the nearest ones.
            StoreError: what was kept cannot be read.
        """
        connection = self._database.connection
        row = connection.execute(
            f"SELECT {_SUMMARY_COLUMNS}, request, document FROM runs WHERE id = ?", (_number(run_id),)
        ).fetchone()
        if row is None:
            raise self._unknown(run_id)
        return StoredRun(
            self._summary(row[:-2]),
            request=unpack(row[-2]),
            document=None if row[-1] is None else unpack(row[-1]),
            trials=self._records("SELECT record FROM trials WHERE run_id = ? ORDER BY id", run_id),
            rounds=self._records("SELECT record FROM rounds WHERE run_id = ? ORDER BY id", run_id),
        )

    def delete(self, run_id: int) -> None:
        """Delete a run; a profile that it justified stays.

        Raises:
            UsageError: there is none of this number.
        """
        with self._database.transaction() as connection:
            if not connection.execute("DELETE FROM runs WHERE id = ?", (_number(run_id),)).rowcount:
                raise self._unknown(run_id)

    def _records(self, statement: str, run_id: int) -> tuple[Record, ...]:
        rows = self._database.connection.execute(statement, (run_id,)).fetchall()
        return tuple(decode(text) for (text,) in rows)

    def _unknown(self, run_id: int) -> UsageError:
        connection = self._database.connection
        rows = connection.execute(
            "SELECT id FROM runs ORDER BY ABS(id - ?), id LIMIT ?", (max(-(2**62), min(run_id, 2**62)), _NUM_NEAREST)
        ).fetchall()
        nearest = sorted(number for (number,) in rows)
        hint = (
            f"The nearest ones are {', '.join(map(str, nearest))}; `localspec runs` lists them all."
            if len(nearest) > 1
            else f"The only one is {nearest[0]}."
            if nearest
            else "None is kept yet: `localspec bench` and `localspec demo` keep theirs."
        )
        return UsageError(f"There is no run {run_id}.", hint)

    def _mark_lost(self) -> None:
        connection = self._database.connection
        rows = connection.execute("SELECT id, pid, process_started_at FROM runs WHERE state = 'running'").fetchall()
        for run_id, pid, started_s in rows:
            if not _is_alive(pid, started_s):
                self._lost.add(run_id)
                with suppress(StoreError):
                    connection.execute("UPDATE runs SET state = 'lost' WHERE id = ? AND state = 'running'", (run_id,))

    def _judge_old(self) -> None:
        """Find out, once, which runs of an earlier release have a speedup that is not to be relied on."""
        connection = self._database.connection
        wanted = "SELECT id FROM runs WHERE unusable IS NULL AND document IS NOT NULL"
        if not (ids := connection.execute(wanted).fetchall()):
            return
        with self._database.transaction():
            for (run_id,) in ids:
                connection.execute("UPDATE runs SET unusable = 0 WHERE id = ?", (run_id,))
                row = connection.execute("SELECT document FROM runs WHERE id = ?", (run_id,)).fetchone()
                try:
                    facts = facts_of(unpack(row[0]))
                except StoreError:
                    # That is said when the run itself is asked for.
                    continue
                connection.execute(
                    "UPDATE runs SET speedup = ?, speedup_low = ?, speedup_high = ?, best_arm = ?, unusable = ? "
                    "WHERE id = ?",
                    (*_speedup_columns(facts), run_id),
                )

    def _summary(self, row: tuple[Any, ...]) -> RunSummary:
        summary = _summary(row)
        is_lost = summary.state == "running" and summary.id in self._lost
        return replace(summary, state="lost") if is_lost else summary

    def _now(self) -> str:
        return self._database.now().isoformat(timespec="seconds")


def _columns(facts: RunFacts) -> tuple[object, ...]:
    return (
        facts.target_name,
        facts.draft_name,
        workloads_text(facts),
        *_speedup_columns(facts),
        facts.build,
        facts.device,
    )


def _speedup_columns(facts: RunFacts) -> tuple[object, ...]:
    return facts.speedup, facts.speedup_low, facts.speedup_high, facts.best_arm, int(facts.is_unusable)


def _summary(row: tuple[Any, ...]) -> RunSummary:
    values = list(row)
    values[7] = _names(values[7])
    values[-1] = bool(values[-1])
    return RunSummary(*values)


def _names(text: str) -> tuple[str, ...]:
    try:
        return tuple(map(str, json.loads(text)))
    except (ValueError, TypeError):
        # A damaged line must not hide the others.
        return ()


def _number(run_id: int) -> int:
    """Return a number that SQLite takes; no run has one beyond."""
    return run_id if abs(run_id) < 2**63 else -1


def _is_alive(pid: int, started_s: float) -> bool:
    start_s = _process_start_s(pid)
    return start_s is not None and abs(start_s - started_s) <= _SAME_START_S


def _process_start_s(pid: int) -> float | None:
    """Return when a process started, in seconds since 1970; None if there is none of this number."""
    import psutil

    try:
        return float(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
