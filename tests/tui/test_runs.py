"""The Runs screen: history, details, comparison, rerun, files, profiles."""

from __future__ import annotations

import asyncio
import csv
import json
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, DataTable, Input, OptionList, TextArea

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import StoreError
from localspec.session.arms import build_arms
from localspec.session.measurement import MeasurementPlan, measure
from localspec.session.run_keeping import RunKeeper
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.store.runs import Runs
from localspec.store.values import RunSummary
from localspec.tui.app import LocalspecApp
from localspec.tui.screens import runs as runs_module
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.screens.runs_changes import RunsChanges
from localspec.tui.screens.runs_export import RunsExport
from localspec.tui.screens.runs_prompt import RunsPrompt
from localspec.tui.services import AppServices
from localspec.tui.widgets.key_line import KeyLine
from localspec.tui.widgets.line_chart import LineChart
from localspec.tui.widgets.runs_details import RunsDetails
from localspec.tui.widgets.runs_progress import RunsProgress
from tests.kept_runs import made_up_run
from tests.profile_kit import model, profile_of
from tests.report_kit import made_up_document
from tests.scripted_engine import EchoEngine

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def begins_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the app begin with the screen that is tested: the others need not be made."""
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "runs")


HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31m \u202eabc"


def keep(path: Path, *documents: dict[str, Any]) -> None:
    with Database(path) as database:
        runs = Runs(database)
        for document in documents:
            runs.finish(runs.start("bench", {}), document, "done")


def summaries(path: Path) -> tuple[RunSummary, ...]:
    with Database(path) as database:
        return Runs(database).summaries()


async def until(pilot: Pilot[Any], condition: Callable[[], bool]) -> None:
    """Wait until something is so; a test that waits in vain fails."""
    for _ in range(2000):
        if condition():
            await pilot.pause()
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


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


def shown(app: LocalspecApp) -> str:
    """Return all that is on the screen."""
    width, _ = app.size
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip)[:width] for strip in lines)


def details_text(screen: RunsScreen) -> str:
    """Return the lines of the details, beyond what is scrolled into view."""
    found = []
    for widget in screen.query_one(RunsDetails).children:
        found += ["".join(segment.text for segment in widget.render_line(row)) for row in range(widget.size.height)]
    return "\n".join(found)


def said(app: LocalspecApp) -> str:
    return "\n".join(notice.message for notice in app._notifications)


async def test_without_runs_it_leads_to_compare(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, has_details=False)
        assert "No runs are kept yet." in shown(app)
        await until(pilot, lambda: isinstance(app.focused, Button))
        await pilot.press("enter")
        assert app.current_mode == "compare"


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 50)])
async def test_the_runs_are_listed_newest_first(app: LocalspecApp, database_path: Path, size: tuple[int, int]) -> None:
    keep(database_path, made_up_run(), made_up_run({"off": (100.0, 101.0, 99.0), "draft": (80.0, 82.0, 79.0)}))
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        assert [row[1] for row in cells(screen)] == ["2", "1"]
        assert any("▼ 0.80x" in cell for cell in cells(screen)[0])
        assert any("▲ 1.50x" in cell for cell in cells(screen)[1])
        assert screen.query_one("#runs", DataTable).has_focus
        assert not screen.query_one("#runs", DataTable).show_horizontal_scrollbar


async def test_the_filter_works_while_typing(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run(workload="edit"), made_up_run(workload="chat"))
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await opened(pilot)
        await pilot.press("slash", *"edit")
        assert [row[1] for row in cells(screen)] == ["1"]
        await pilot.press(*"zzz")
        assert cells(screen) == [] and "No run has all these words." in shown(app)
        await pilot.press("escape")
        assert len(cells(screen)) == 2 and screen.query_one(Input).value == ""


async def test_details_show_verdicts_tables_and_pictures(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, *(made_up_document("edit", num_tokens=64, seed=seed) for seed in (1, 2)))
    async with app.run_test(size=(140, 45)) as pilot:
        screen = await opened(pilot)
        text = details_text(screen)
        for wanted in (
            "tokens/s",
            "acceptance by position, draft",
            "once reached",
            "accepted tokens of a round, ngram",
        ):
            assert wanted in text
        for wanted in ("What checking costs", "This pair so far", "Receipt", "ab" * 16):
            assert wanted in text
        assert [len(chart.series) for chart in screen.query(LineChart)] == [3, 1, 1]
        assert "this pair, 2 runs" in shown(app)


async def test_details_follow_the_cursor_and_open_in_full(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run(), made_up_run({"off": (100.0,), "draft": (50.0,)}))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("down")
        await until(pilot, lambda: "run 1 " in details_text(screen))
        await pilot.press("enter")
        assert screen.query_one(RunsDetails).has_focus
        assert not screen.run_list.display
        await pilot.pause()
        assert screen.query_one(KeyLine).keys[0].words == "Back"
        await pilot.press("escape")
        assert screen.run_list.display and screen.run_list.table.has_focus


async def test_hostile_texts_stay_texts(app: LocalspecApp, database_path: Path) -> None:
    document = made_up_run(workload=HOSTILE)
    document["target"]["path"] = f"/models/{HOSTILE.replace('/', '')}{'x' * 10000}.gguf"
    document["device"]["description"] = HOSTILE
    document["workloads"][0]["notes"] = [HOSTILE]
    document["workloads"][0]["arms"][1]["name"] = HOSTILE
    document["workloads"][0]["arms"][1]["sentence"] = HOSTILE + "y" * 10000
    document["draft_failure"] = HOSTILE
    keep(database_path, document, made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("down")
        await until(pilot, lambda: "run 1 " in details_text(screen))
        assert "[/] [/path] [bold [type=x, v={'a[0]'}] [31m abc" in details_text(screen)
        await pilot.press("space", "up", "c")
        await until(pilot, lambda: isinstance(app.screen, RunsChanges))
        assert "\x1b" not in shown(app)
        await pilot.press("escape")
        await pilot.resize_terminal(60, 20)
        await pilot.resize_terminal(160, 50)
        assert len(cells(screen)) == 2


async def test_two_runs_are_compared(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run({"off": (100.0, 101.0, 99.0), "draft": (90.0, 91.0, 89.0)}), made_up_run())
    async with app.run_test(size=(100, 40)) as pilot:
        await opened(pilot)
        await pilot.press("c")
        assert "Mark one run with space" in said(app)
        await pilot.press("space", "down", "c")
        await until(pilot, lambda: isinstance(app.screen, RunsChanges))
        text = shown(app)
        assert "Run 1 against run 2" in text and "▲ faster" in text and "▲ larger" in text
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)


async def test_runs_are_deleted_after_asking(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run(), made_up_run(), made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("d", "n")
        assert len(summaries(database_path)) == 3
        await pilot.press("space", "down", "space", "d", "y")
        await until(pilot, lambda: len(screen.runs) == 1)
        assert [run.id for run in summaries(database_path)] == [1]
        assert screen.run_list.marked == ()


async def test_a_running_run_is_shown_and_not_deleted(app: LocalspecApp, database_path: Path) -> None:
    with Database(database_path) as database:
        Runs(database).start("bench", {"frame": made_up_run(), "workloads": [{"name": "chat"}]})
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        assert cells(screen)[0][-1] == "running"
        await pilot.press("d", "y")
        await until(pilot, lambda: "still being measured" in said(app))
        assert len(summaries(database_path)) == 1


async def test_a_lost_run_says_so(app: LocalspecApp, database_path: Path, target: Path) -> None:
    await keep_real_run(database_path, target)
    with Database(database_path) as database:
        database.connection.execute("UPDATE runs SET state = 'running', pid = 0, document = NULL")
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await opened(pilot)
        assert cells(screen)[0][-1] == "lost"
        assert "ended without a word" in details_text(screen)
        assert "No run of it was complete" in details_text(screen)


async def test_a_damaged_run_is_a_sentence(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run(), made_up_run())
    with Database(database_path) as database:
        database.connection.execute("UPDATE runs SET document = ? WHERE id = 2", (b"nonsense",))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        before = details_text(screen)
        assert "1.50x" not in before and before.strip()
        await pilot.press("down")
        await until(pilot, lambda: "run 1 " in details_text(screen))


async def test_what_others_keep_appears_by_itself(
    app: LocalspecApp, database_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "POLL_S", 0.02)
    keep(database_path, made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("space")
        await asyncio.to_thread(keep, database_path, made_up_run())
        await until(pilot, lambda: len(screen.runs) == 2)
        assert screen.run_list.highlighted is not None and screen.run_list.highlighted.id == 1
        assert screen.run_list.marked == (1,)


async def test_nothing_is_looked_at_while_another_screen_is_shown(
    app: LocalspecApp, database_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_module, "POLL_S", 0.02)
    keep(database_path, made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        await pilot.press("f3")
        keep(database_path, made_up_run())
        await pilot.pause(0.2)
        assert len(screen.runs) == 1
        await pilot.press("f6")
        await until(pilot, lambda: len(screen.runs) == 2)


async def test_a_database_that_cannot_be_opened_is_a_notice(services: AppServices) -> None:
    def refuse() -> Database:
        raise StoreError("It was made by a newer localspec [/].", "Update localspec.")

    app = LocalspecApp(replace(services, open_database=refuse))
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, has_details=False)
        assert "made by a newer localspec [/]" in said(app)
        assert "cannot be read" in shown(app)


async def test_a_damaged_database_is_set_aside_with_a_notice(app: LocalspecApp, database_path: Path) -> None:
    database_path.write_bytes(b"no database at all" * 100)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, has_details=False)
        assert "no database of localspec" in said(app)
        assert "No runs are kept yet." in shown(app)


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
        await until(pilot, lambda: "Written to" in said(app))
        text = (tmp_path / name).read_text()
        if name.endswith("csv"):
            assert len(list(csv.reader(text.splitlines()))) == 1 + 6 * 3
        else:
            assert json.loads(text)["run"]["id"] == 1
        await pilot.press("x")
        app.screen.query_one(Input).value = str(tmp_path / name)
        await pilot.press("enter")
        await until(pilot, lambda: "There is a file" in said(app))


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
        await until(pilot, lambda: "Press o to open it" in said(app))
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
        await until(pilot, lambda: "Saved as the profile daily" in said(app))
        with Database(database_path) as database:
            (profile,) = Profiles(database).all()
        assert (profile.name, profile.document["speculation"]["method"]) == ("daily", "draft")
        await until(pilot, lambda: len(screen._history.profiles) == 1)
        await pilot.press("s", *"Daily", "enter")
        await until(pilot, lambda: "Replace it?" in shown(app))
        await pilot.press("n")
        with Database(database_path) as database:
            assert [kept.name for kept in Profiles(database).all()] == ["daily"]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target.gguf"
    path.write_bytes(b"GGUF target")
    return path


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
        assert "target is gone" in said(app)
        assert app.workbench.target is None
        await pilot.press("down", "enter")
        await until(pilot, lambda: app.workbench.target is not None)
        assert app.workbench.target is not None and app.workbench.target.path == target
        assert app.workbench.speculation.n_max == 5
        assert "another file now" in said(app)


async def test_profiles_are_renamed_and_deleted(app: LocalspecApp, database_path: Path) -> None:
    with Database(database_path) as database:
        Profiles(database).save(profile_of("old"))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await in_profiles(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        app.screen.query_one(Input).value = "[/bad"
        await pilot.press("enter")
        await until(pilot, lambda: "cannot be a profile's name" in said(app))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, RunsPrompt))
        app.screen.query_one(Input).value = "new"
        await pilot.press("enter")
        await until(pilot, lambda: [kept.name for kept in screen._history.profiles] == ["new"])
        await pilot.press("d", "y")
        await until(pilot, lambda: screen._history.profiles == ())
        await until(pilot, lambda: "No profiles yet." in shown(app))


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
        app.screen.query_one(OptionList).highlighted = 7
        await until(pilot, lambda: app.screen.query_one(TextArea).text.startswith("{"))
        await pilot.press("escape")
        assert isinstance(app.screen, RunsScreen)


def plan(target: Path) -> MeasurementPlan:
    return MeasurementPlan(
        target=target,
        draft=None,
        context=ContextSettings(n_ctx=256),
        arms=build_arms(("off", "ngram"), SpeculationSettings(n_max=3)),
        workloads=(Workload("own", "Own", "", False, None, (Prompt("own", "", "Say one two three."),)),),
        sampling=SamplingSettings(seed=7),
        is_temperature_fixed=False,
        max_tokens=12,
        num_pairs=1,
        warmup_tokens=0,
    )


async def keep_real_run(path: Path, target: Path) -> None:
    keeper = RunKeeper("bench", lambda: Database(path), lambda notice: None)
    keeper.finish(await measure(EchoEngine(), plan(target), keeper.watching(lambda progress: None)))


async def test_a_run_is_measured_again_kept_and_compared(app: LocalspecApp, database_path: Path, target: Path) -> None:
    await keep_real_run(database_path, target)
    async with app.run_test(size=(100, 40)) as pilot:
        screen = await opened(pilot)
        await pilot.press("r", "n")
        assert len(summaries(database_path)) == 1
        await pilot.press("r", "y")
        await until(pilot, lambda: isinstance(app.screen, RunsChanges))
        assert "Run 1 against run 2" in shown(app)
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
        await until(pilot, lambda: "own: pair 1 of 1" in shown(app) and "esc stops" in shown(app))
        await pilot.resize_terminal(60, 20)
        await pilot.press("r")
        assert "measured again already" in said(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.room.is_free)
        await until(pilot, lambda: len(screen.runs) == 2)
        assert screen.runs[0].state == "interrupted"
        await until(pilot, lambda: "kept as run 2" in said(app))


async def test_a_rerun_whose_file_is_gone_is_a_notice(app: LocalspecApp, database_path: Path, target: Path) -> None:
    await keep_real_run(database_path, target)
    target.unlink()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await pilot.press("r", "y")
        await until(pilot, lambda: "no longer at" in said(app))
        assert len(summaries(database_path)) == 1
        assert app.room.is_free


async def test_a_busy_engine_is_said(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run())
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        async with app.room.occupied("answering"):
            await pilot.press("r")
            assert "The engine is busy: answering" in said(app)
