"""The Runs screen: what was measured, and how it ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Button, DataTable, Input

from localspec.errors import StoreError
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.tui.app import LocalspecApp
from localspec.tui.screens import runs as runs_module
from localspec.tui.screens.runs import RunsScreen
from localspec.tui.screens.runs_changes import RunsChanges
from localspec.tui.services import AppServices
from localspec.tui.widgets.key_line import KeyLine
from localspec.tui.widgets.line_chart import LineChart
from localspec.tui.widgets.runs_details import RunsDetails
from tests.kept_runs import made_up_run
from tests.report_kit import made_up_document
from tests.tui.looking import notices, screen_text
from tests.tui.runs_kit import cells, details_text, keep, keep_real_run, opened, summaries
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31m \u202eabc"


async def test_without_runs_it_leads_to_compare(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, has_details=False)
        assert "No runs are kept yet." in screen_text(app)
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
        assert cells(screen) == [] and "No run has all these words." in screen_text(app)
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
        assert "this pair, 2 runs" in screen_text(app)


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
        assert "\x1b" not in screen_text(app)
        await pilot.press("escape")
        await pilot.resize_terminal(60, 20)
        await pilot.resize_terminal(160, 50)
        assert len(cells(screen)) == 2


async def test_two_runs_are_compared(app: LocalspecApp, database_path: Path) -> None:
    keep(database_path, made_up_run({"off": (100.0, 101.0, 99.0), "draft": (90.0, 91.0, 89.0)}), made_up_run())
    async with app.run_test(size=(100, 40)) as pilot:
        await opened(pilot)
        await pilot.press("c")
        assert "Mark one run with space" in notices(app)
        await pilot.press("space", "down", "c")
        await until(pilot, lambda: isinstance(app.screen, RunsChanges))
        text = screen_text(app)
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
        await until(pilot, lambda: "still being measured" in notices(app))
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
        assert "made by a newer localspec [/]" in notices(app)
        assert "cannot be read" in screen_text(app)


async def test_a_damaged_database_is_set_aside_with_a_notice(app: LocalspecApp, database_path: Path) -> None:
    database_path.write_bytes(b"no database at all" * 100)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, has_details=False)
        assert "no database of localspec" in notices(app)
        assert "No runs are kept yet." in screen_text(app)
