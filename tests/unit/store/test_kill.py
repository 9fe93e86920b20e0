"""kill -9 at any moment loses at most the round in flight."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.session.records import document_of
from localspec.store.database import Database
from localspec.store.runs import Runs

ROOT = Path(__file__).parents[3]

MEASURING = """
import asyncio, os, sys
from pathlib import Path
from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.events import RoundFinished
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.session.arms import build_arms
from localspec.session.measurement import MeasurementPlan, measure
from localspec.session.run_keeping import RunKeeper
from localspec.store.database import Database
from tests.scripted_engine import ScriptedEngine

folder = Path(sys.argv[1])
plan = MeasurementPlan(
    target=folder / "model.gguf", draft=None, context=ContextSettings(),
    arms=build_arms(("off", "ngram"), SpeculationSettings()),
    workloads=(Workload("chat", "Chat", "", False, None, (Prompt("one", "", "One."),)),),
    sampling=SamplingSettings(), is_temperature_fixed=True, max_tokens=12, num_pairs=500, warmup_tokens=2,
)
num_kept = 0

def tell(progress):
    global num_kept
    comparison = progress.comparison
    if comparison is not None and comparison.phase == "trial" and isinstance(comparison.event, RoundFinished):
        num_kept += 1
        # Straight to the system, so that the kill cannot take it back.
        sys.stdout.write(f"{num_kept}\\n")
        sys.stdout.flush()

def run():
    keeper = RunKeeper("bench", lambda: Database(folder / "kept.sqlite3"), print)

    def watch(progress):
        keeper.observe(progress)
        tell(progress)

    asyncio.run(measure(ScriptedEngine(), plan, watch))

# Forked, since loading Python takes longer than all the rest.
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        run()
        os._exit(0)
    sys.stdout.write(f"pid {pid}\\n")
    sys.stdout.flush()
    os.waitpid(pid, 0)
    sys.stdout.write("gone\\n")
    sys.stdout.flush()
"""


def kill_at(source: subprocess.Popen[str], num_rounds: int) -> int:
    """Have a process measure, kill it once it has told of so many rounds, and return how many it told of in the end."""
    assert source.stdin is not None and source.stdout is not None and source.stderr is not None
    source.stdin.write("\n")
    source.stdin.flush()
    pid = num_told = 0
    for line in source.stdout:
        word = line.strip()
        if word.startswith("pid "):
            pid = int(word.removeprefix("pid "))
        elif word == "gone":
            return num_told
        else:
            num_told = int(word)
        if pid and num_told >= num_rounds:
            os.kill(pid, signal.SIGKILL)
            pid = 0
    raise AssertionError(source.stderr.read())


@pytest.fixture
def source(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    command = [sys.executable, "-c", MEASURING, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT, text=True) as process:
        yield process
        process.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kill -9 is of Unix")
def test_a_kill_loses_at_most_the_round_in_flight(tmp_path: Path, source: subprocess.Popen[str]) -> None:
    rng = random.Random(20)
    num_kills = 40
    for number in range(1, num_kills + 1):
        num_told = kill_at(source, rng.randrange(1, 150))
        with Database(tmp_path / "kept.sqlite3") as database:
            assert database.notices == ()
            assert database.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            runs = Runs(database)
            summary = runs.summaries(limit=1)[0]
            assert (summary.id, summary.state, summary.finished_at) == (number, "lost", "")
            stored = runs.get(summary.id)
            in_trials = sum(len(trial["rounds"]["at_s"]) for trial in stored.trials)
            # The round in flight may be kept though nobody was told of it any more.
            assert num_told <= in_trials + len(stored.rounds) <= num_told + 1
            document = document_of(stored)
            assert document["run_id"] == number
            assert sum(len(entry["trials"]) for entry in document["workloads"]) == len(stored.trials)
            unfinished = document["unfinished"]
            assert len(stored.rounds) == (len(unfinished["rounds"]["at_s"]) if unfinished else 0)
    with Database(tmp_path / "kept.sqlite3") as database:
        assert [summary.state for summary in Runs(database).summaries()] == ["lost"] * num_kills
