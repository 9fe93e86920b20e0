"""What was measured, as pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.state import Launch
from localspec.tui.widgets.runs_details import RunsDetails
from tests.kept_runs import made_up_run
from tests.pictures import still
from tests.replay_scenes import Look
from tests.report_kit import made_up_document
from tests.scripted_engine import EchoEngine
from tests.steady import WallClock
from tests.tui.snapshot_kit import LARGE, SMALL, TURNED, keep_still, looks, shown


def documents() -> tuple[dict[str, Any], ...]:
    runs = (
        made_up_run({"off": (100.0, 101.0, 99.0), "draft": (80.0, 82.0, 79.0)}),
        made_up_run({"off": (100.0, 101.0, 99.0), "ngram": (101.0, 99.0, 102.0)}, workload="story"),
        made_up_run(workload="edit"),
    )
    for run in runs:
        run["target"]["path"], run["draft"]["path"] = "/models/Qwen3-8B-Q4_K_M.gguf", "/models/Qwen3-0.6B-Q8_0.gguf"
    return (*runs, *(made_up_document("edit", num_tokens=64, seed=seed) for seed in (1, 2)))


@asynccontextmanager
async def runs(look: Look, folder: Path, *kept: dict[str, Any]) -> AsyncIterator[Pilot[int]]:
    """Open the screen with runs that were measured a day and a half apart."""
    clock = WallClock()
    with Database(folder / "kept.sqlite3", now=clock) as database:
        store = Runs(database)
        for document in kept:
            clock.advance(hours=37)
            store.finish(store.start("bench", {}), document, "done")
    async with shown(look, EchoEngine, folder, Launch(screen="runs")) as (_, pilot):
        yield pilot


def has_details(pilot: Pilot[int]) -> bool:
    screen = pilot.app.screen
    assert isinstance(screen, RunsScreen)
    return bool(screen.query_one(RunsDetails).children)


@looks(SMALL, LARGE, *TURNED, quick=SMALL)
async def test_the_list_of_runs(look: Look, tmp_path: Path) -> None:
    async with runs(look, tmp_path, *documents()) as pilot:
        await keep_still("runs", look, pilot, lambda: has_details(pilot))


@looks(SMALL, LARGE)
async def test_the_pictures_of_a_run(look: Look, tmp_path: Path) -> None:
    async with runs(look, tmp_path, *documents()) as pilot:
        await keep_still("runs", look, pilot, lambda: has_details(pilot))
        await pilot.press("enter")
        await still(pilot)
        details = pilot.app.screen.query_one(RunsDetails)
        details.scroll_to(y=24, animate=False)
        await keep_still("runs-details", look, pilot)


@looks(SMALL)
async def test_no_runs(look: Look, tmp_path: Path) -> None:
    async with runs(look, tmp_path) as pilot:
        await keep_still("runs-none", look, pilot)


@looks(SMALL, LARGE)
async def test_two_runs_compared(look: Look, tmp_path: Path) -> None:
    async with runs(look, tmp_path, *documents()) as pilot:
        await keep_still("runs", look, pilot, lambda: has_details(pilot))
        await pilot.press("space", "down", "c")
        await keep_still("runs-changes", look, pilot, lambda: not isinstance(pilot.app.screen, RunsScreen))
