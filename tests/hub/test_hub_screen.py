"""Find on the Hub, in the app: from words to models that are here, with the real engine and the real client."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from localspec.catalog.hub.client import Hub
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.hub_browsing import Browsing
from localspec.tui.screens.hub import HubScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.services import AppServices
from localspec.tui.widgets.hub_details import hub_lines
from tests.hub.commanding import DRAFT, TARGET, TARGET_FILE, Files, add_models, is_spared
from tests.hub.server import TestHub
from tests.tui.waiting import until


@pytest.fixture
def app(hub: TestHub, files: Files, data: Path, quick_engines: None, tmp_path: Path) -> LocalspecApp:
    add_models(hub, files)
    return LocalspecApp(AppServices(open_hub=Hub, open_database=lambda: Database(tmp_path / "kept.sqlite3")))


async def opened(pilot: Pilot[int], words: str) -> HubScreen:
    """Open the search, and have it list what a repository offers."""
    models = pilot.app.screen
    assert isinstance(models, ModelsScreen)
    await until(pilot, lambda: not models.library.activity)
    await pilot.press("h", *words, "enter")
    screen = pilot.app.screen
    assert isinstance(screen, HubScreen)
    await until(pilot, lambda: not screen.browsing.activity and bool(screen.browsing.rows or screen.browsing.failure))
    return screen


def said(screen: HubScreen) -> str:
    return "\n".join(line.plain for line in hub_lines(screen.browsing, screen.offers.current))


async def test_from_words_to_target_and_draft(app: LocalspecApp, hub: TestHub) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        assert not hub.requests
        screen = await opened(pilot, "Tiny3-8B")
        assert [hit.repo for hit in screen.browsing.hits] == [TARGET]
        assert not hub.requests_for(TARGET_FILE)
        await pilot.press("enter")
        await until(pilot, lambda: screen.browsing.rows[0].fit is not None)
        assert "✓ fits" in said(screen) and is_spared(hub)
        await pilot.press("enter")
        await until(pilot, lambda: screen.browsing.planned is not None)
        assert f"draft  {DRAFT}:F32" in said(screen) and "Enter fetches both" in said(screen) and is_spared(hub)
        await pilot.press("enter")
        await until(pilot, lambda: [item.status for item in app.transfers] == ["done", "done"])
        assert [item.label for item in app.transfers] == [f"{TARGET}:F32", f"{DRAFT}:F32"]
        await pilot.press("escape", "escape")
        models = app.screen
        assert isinstance(models, ModelsScreen)
        await until(pilot, lambda: models.table.row_count == 2 and not models.library.activity)


async def test_the_target_alone_is_fetched_without_looking_for_a_draft(app: LocalspecApp, hub: TestHub) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, "Tiny3-8B")
        await pilot.press("enter", "o")
        await until(pilot, lambda: [item.status for item in app.transfers] == ["done"])
        assert app.transfers[0].label == f"{TARGET}:F32"


async def test_escape_stops_a_question_at_once(app: LocalspecApp, hub: TestHub) -> None:
    hub.fault(TARGET, delay_s=30.0)
    async with app.run_test(size=(80, 24)) as pilot:
        models = app.screen
        assert isinstance(models, ModelsScreen)
        await until(pilot, lambda: not models.library.activity)
        await pilot.press("h", *"Tiny3-8B", "enter")
        screen = app.screen
        assert isinstance(screen, HubScreen)
        await until(pilot, lambda: screen.browsing.activity.startswith("asking what"))
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert not screen.browsing.activity and app.screen is screen
        assert not [worker for worker in screen.workers if worker.group == "hub" and worker.is_running]
        hub.release()


async def test_nothing_found_and_refusals_are_said(app: LocalspecApp, hub: TestHub) -> None:
    async with app.run_test(size=(60, 20)) as pilot:
        models = app.screen
        assert isinstance(models, ModelsScreen)
        await until(pilot, lambda: not models.library.activity)
        await pilot.press("h", *"nothing", "enter")
        screen = app.screen
        assert isinstance(screen, HubScreen)
        await until(pilot, lambda: screen.browsing.words == "nothing" and not screen.browsing.activity)
        assert "no GGUF model for 'nothing'" in said(screen)
        hub.fault(status=500)
        await pilot.press("slash", "x", "enter")
        await until(pilot, lambda: bool(screen.browsing.failure))
        assert "! " in said(screen)


def test_hostile_words_of_the_hub_stay_text() -> None:
    browsing = Browsing(words="[/x] \x1b[31m", failure="[/] \x1b]0;x\x07", hint="[type=x, v={'a[0]'}]")
    shown = "\n".join(line.plain for line in hub_lines(browsing, None))
    assert "[/]" in shown and "[type=x, v={'a[0]'}]" in shown and "\x1b" not in shown
