"""Screens compared with kept pictures. `UPDATE_SNAPSHOTS=1 pytest tests/tui/…` keeps them as they are now: look at
them before that is committed.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from localspec.tui.state import Launch
from tests.pictures import still, svg_of
from tests.replay_scenes import Look
from tests.steady import WallClock, steady
from tests.tui.conftest import no_hub

FOLDER = Path(__file__).parent / "snapshots"

SMALL, LARGE = Look(80, 24), Look(140, 40, "light")
TURNED = Look(80, 24, "light"), Look(140, 40)
"""The same sizes in the other colours, for the most telling screens."""


def looks(*wanted: Look, quick: Look | None = None) -> pytest.MarkDecorator:
    """Have a test run once for each look; all but one are left to `make test-slow`."""
    params = [pytest.param(look, id=str(look), marks=() if look == quick else pytest.mark.slow) for look in wanted]
    return pytest.mark.parametrize("look", params)


def check(name: str, look: Look, picture: str) -> None:
    """Compare a picture with the kept one of the name, and fail with where to see both."""
    kept = FOLDER / f"{name}-{look}.svg"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        kept.write_text(picture, "utf-8")
        return
    if kept.is_file() and kept.read_text("utf-8") == picture:
        return
    place = Path(os.environ.get("SNAPSHOT_REPORT", "/tmp/localspec-snapshots"))
    place.mkdir(parents=True, exist_ok=True)
    (place / kept.name).write_text(picture, "utf-8")
    raise AssertionError(f"{kept} looks different now: {place / kept.name}. UPDATE_SNAPSHOTS=1 keeps the new one.")


@asynccontextmanager
async def shown(
    look: Look, make_engine: Callable[[], object], folder: Path, launch: Launch | None = None, **services: object
) -> AsyncIterator[tuple[LocalspecApp, Pilot[int]]]:
    """Open an app on made-up engines, on a machine that never changes."""
    clock = WallClock()
    made = AppServices(
        look.settings,
        make_engine=make_engine,  # type: ignore[arg-type]
        open_hub=no_hub,  # type: ignore[arg-type]
        open_database=lambda: Database(folder / "kept.sqlite3", now=clock),
    )
    with steady():
        app = LocalspecApp(replace(made, **services), launch)  # type: ignore[arg-type]
        async with app.run_test(size=look.size) as pilot:
            await still(pilot)
            yield app, pilot


async def keep_still(name: str, look: Look, pilot: Pilot[int], is_so: Callable[[], bool] = lambda: True) -> None:
    """Wait until something is so and nothing moves, and compare what is shown."""
    await still(pilot, is_so)
    check(name, look, svg_of(pilot.app))
