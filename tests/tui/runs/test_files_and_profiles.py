"""What becomes of a run: files, reports and profiles."""

from __future__ import annotations

import csv
import json
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, OptionList, TextArea

from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.screens.runs_export import RunsExport
from localspec.tui.screens.runs_prompt import RunsPrompt
from tests.kept_runs import made_up_run
from tests.profile_kit import drafting, model, profile_of
from tests.report_kit import made_up_document
from tests.tui.looking import notices, screen_text
from tests.tui.runs_kit import keep, opened
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["out.json", "out.csv"])
async def test_a_run_is_exported(app: LocalspecApp, database_path: Path, tmp_path: Path, name: str) -> None:
    keep(database_path, made_up_run())
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        app.screen.query_one(Input).value = str(tmp_path / name)
        await pilot.press("enter")
        await until(pilot, (tmp_path / name).exists)
        await until(pilot, lambda: "Written to" in notices(app))
        text = (tmp_path / name).read_text()
        if name.endswith("csv"):
            assert len(list(csv.reader(text.splitlines()))) == 1 + 6 * 3
        else:
            assert json.loads(text)["run"]["id"] == 1
        await pilot.press("x")
        app.screen.query_one(Input).value = str(tmp_path / name)
        await pilot.press("enter")
        await until(pilot, lambda: "There is a file" in notices(app))


async def test_a_report_is_written_and_opened_only_when_asked(
    app: LocalspecApp, database_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited: list[str] = []

    def visit(address: str) -> bool:
        visited.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", visit)
    keep(database_path, made_up_run())
    place = tmp_path / "page.html"
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await pilot.press("o", "p")
        app.screen.query_one(Input).value = str(place)
        await pilot.press("enter")
        await until(pilot, lambda: "o on the Runs screen opens it" in notices(app))
        assert place.read_text().startswith("<!")
        assert visited == []
        await pilot.press("o")
        await until(pilot, lambda: visited == [place.as_uri()])


async def test_a_run_becomes_a_profile(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_document("edit", num_tokens=64))
    async with app.run_test(size=(100, 30)) as pilot:
        screen = await opened(pilot)
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        await pilot.press(*"daily", "tab", "down", "down", "enter")
        await until(pilot, lambda: "Saved as the profile daily" in notices(app))
        with Database(database_path) as database:
            (profile,) = Profiles(database).all()
        assert (profile.name, profile.document["speculation"]["method"]) == ("daily", "draft")
        await until(pilot, lambda: len(screen._history.profiles) == 1)
        await pilot.press("s", *"Daily", "enter")
        await until(pilot, lambda: "Replace it?" in screen_text(app))
        await pilot.press("n")
        with Database(database_path) as database:
            assert [kept.name for kept in Profiles(database).all()] == ["daily"]


async def in_profiles(pilot: Pilot[Any]) -> RunsScreen:
    screen = await opened(pilot, has_details=False)
    await until(pilot, lambda: bool(screen._history.profiles))
    await pilot.press("v")
    await until(pilot, lambda: screen.query_one("#profiles", DataTable).has_focus)
    return screen


async def test_a_profile_is_laid_on_the_workbench(app: LocalspecApp, database_path: Path, target: Path) -> None:
    gone = profile_of("gone")
    here = profile_of("here", target=model(str(target), file_bytes=3), draft=model(str(target)))
    with Database(database_path) as database:
        Profiles(database).save(gone)
        Profiles(database).save(here)
    async with app.run_test(size=(80, 24)) as pilot:
        await in_profiles(pilot)
        await pilot.press("u")
        assert "target is gone" in notices(app)
        assert app.workbench.target is None
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.workbench.target is not None)
        assert app.workbench.target is not None and app.workbench.target.path == target
        assert app.workbench.speculation.n_max == 5
        assert "another file now" in notices(app)


async def test_profiles_are_renamed_and_deleted(app: LocalspecApp, database_path: Path) -> None:
    with Database(database_path) as database:
        Profiles(database).save(profile_of("old"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await in_profiles(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        app.screen.query_one(Input).value = "[/bad"
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be a profile's name" in notices(app))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        app.screen.query_one(Input).value = "new"
        await pilot.press("enter")
        await until(pilot, lambda: [kept.name for kept in screen._history.profiles] == ["new"])
        await pilot.press("d", "y")
        await until(pilot, lambda: screen._history.profiles == ())
        await until(pilot, lambda: "No profiles yet." in screen_text(app))


async def test_a_profile_is_shown_for_other_engines(app: LocalspecApp, database_path: Path) -> None:
    with Database(database_path) as database:
        Profiles(database).save(profile_of("quick"))
    async with app.run_test(size=(100, 30)) as pilot:
        await in_profiles(pilot)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, RunsExport))
        await until(pilot, lambda: "llama-server" in app.screen.query_one(TextArea).text)
        await pilot.press("y")
        assert "llama-server" in app.clipboard
        engines = app.screen.query_one(OptionList)
        engines.highlighted = engines.get_option_index("json")
        await until(pilot, lambda: app.screen.query_one(TextArea).text.startswith("{"))
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)


async def test_a_profile_shows_its_ways_of_drafting_by_kind(app: LocalspecApp, database_path: Path) -> None:
    with Database(database_path) as database:
        Profiles(database).save(profile_of("mine", by_workload={"code": drafting("suffix", n_max=8)}))
    async with app.run_test(size=(100, 40)) as pilot:
        await in_profiles(pilot)
        await until(pilot, lambda: "for code  suffix n_max 8" in screen_text(app))
