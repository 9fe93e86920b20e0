"""Runs that are measured again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.runs_changes import RunsChanges
from localspec.tui.services import AppServices
from localspec.tui.widgets.runs_progress import RunsProgress
from tests.kept_runs import made_up_run
from tests.scripted_engine import EchoEngine
from tests.tui.looking import notices, screen_text
from tests.tui.runs_kit import cells, details_text, keep, keep_real_run, opened, summaries
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


async def test_a_run_is_measured_again_kept_and_compared(app: LocalspecApp, database_path: Path, target: Path) -> None:
    await keep_real_run(database_path, target)
    async with app.run_test(size=(100, 40)) as pilot:
        screen = await opened(pilot)
        await pilot.press("r", "n")
        assert len(summaries(database_path)) == 1
        await pilot.press("r", "y")
        await until(pilot, lambda: isinstance(app.screen, RunsChanges))
        assert "Run 1 against run 2" in screen_text(app)
        assert [run.state for run in summaries(database_path)] == ["done", "done"]
        assert app.room.is_free and app.engine_state.loaded is not None
        await pilot.press("escape")
        await until(pilot, lambda: screen.run_list.highlighted is not None and screen.run_list.highlighted.id == 2)
        assert not screen.query_one(RunsProgress).display


async def test_escape_stops_a_rerun_and_keeps_what_there_is(
    services: AppServices, database_path: Path, target: Path
) -> None:
    await keep_real_run(database_path, target)
    app = LocalspecApp(replace(services, make_engine=lambda: EchoEngine(pause_s=0.6)))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("r", "y")
        await until(pilot, lambda: "own: pair 1 of 1" in screen_text(app) and "esc stops" in screen_text(app))
        await pilot.resize_terminal(60, 20)
        await pilot.press("r")
        assert "measured again already" in notices(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.room.is_free)
        await until(pilot, lambda: len(screen.runs) == 2)
        assert screen.runs[0].state == "interrupted"
        await until(pilot, lambda: "kept as run 2" in notices(app))


async def test_a_rerun_whose_file_is_gone_is_a_notice(app: LocalspecApp, database_path: Path, target: Path) -> None:
    await keep_real_run(database_path, target)
    target.unlink()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("r", "y")
        await until(pilot, lambda: "no longer at" in notices(app))
        assert len(summaries(database_path)) == 1
        assert app.room.is_free


async def test_a_busy_engine_is_said(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        async with app.room.occupied("answering"):
            await pilot.press("r")
            assert "The engine is busy: answering" in notices(app)


async def test_a_suite_says_what_auto_promises_and_is_not_measured_again(
    app: LocalspecApp, database_path: Path
) -> None:
    promise = "met: auto / off, on the worst workload: 0.99x (chat), promised are 0.97 or more"
    with Database(database_path) as database:
        runs = Runs(database)
        runs.finish(runs.start("suite", {}), made_up_run() | {"suite": {"sentences": [promise]}}, "done")
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await opened(pilot)
        assert cells(screen)[0][-1] == "suite"
        assert "met: auto / off" in details_text(screen)
        await pilot.press("r")
        await pilot.pause()
        assert "Run 1 is a suite" in notices(app)
        assert app.screen is screen
