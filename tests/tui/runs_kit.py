"""Runs that were kept, and what the Runs screen shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import DataTable

from localspec.session.measurement import measure
from localspec.session.run_keeping import RunKeeper
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.store.values import RunSummary
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.widgets.runs_details import RunsDetails
from tests.scripted_engine import EchoEngine
from tests.small_plan import small_plan
from tests.tui.waiting import until


def keep(path: Path, *documents: dict[str, Any]) -> None:
    with Database(path) as database:
        runs = Runs(database)
        for document in documents:
            runs.finish(runs.start("bench", {}), document, "done")


def summaries(path: Path) -> tuple[RunSummary, ...]:
    with Database(path) as database:
        return Runs(database).summaries()


async def keep_real_run(path: Path, target: Path) -> None:
    keeper = RunKeeper("bench", lambda: Database(path), lambda notice: None)
    keeper.finish(await measure(EchoEngine(), small_plan(target, num_pairs=1), keeper.watching(lambda progress: None)))


async def opened(pilot: Pilot[Any], has_details: bool = True) -> RunsScreen:
    """Wait until the screen has read the runs."""
    await pilot.pause()
    screen = pilot.app.screen
    assert isinstance(screen, RunsScreen)
    await until(pilot, lambda: screen._history.is_read)
    if has_details:
        await until(pilot, lambda: bool(screen.query_one(RunsDetails).children))
    return screen


def cells(screen: RunsScreen) -> list[list[str]]:
    table = screen.query_one("#runs", DataTable)
    return [[str(cell) for cell in table.get_row_at(place)] for place in range(table.row_count)]


def details_text(screen: RunsScreen) -> str:
    """Return the lines of the details, beyond what is scrolled into view."""
    found = []
    for widget in screen.query_one(RunsDetails).children:
        found += ["".join(segment.text for segment in widget.render_line(row)) for row in range(widget.size.height)]
    return "\n".join(found)
