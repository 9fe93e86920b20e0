from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from localspec.catalog.hub.values import Offer, RepoFile, RepoListing
from localspec.catalog.pairing import PairVerdict
from localspec.catalog.progress import FileProgress, TransferProgress
from localspec.engine.values import ContextSettings
from localspec.errors import OfflineError
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.tui.app import LocalspecApp
from localspec.tui.download_queue import Transfer
from localspec.tui.model_library import Drafts, Library
from localspec.tui.model_rows import row_of
from localspec.tui.screens.hub import HubScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.screens.models_question import ModelsQuestion
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.widgets.models_details import ModelsDetails, details_content
from localspec.tui.widgets.models_downloads import ModelsDownloads
from localspec.tui.widgets.models_drafts import ModelsDrafts, candidate_content
from localspec.tui.widgets.models_table import ModelsTable
from tests.candidate_kit import engine, entry, facts
from tests.scripted_engine import ScriptedEngine
from tests.tui.looking import notices
from tests.tui.waiting import quiet, until

pytestmark = pytest.mark.slow

HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred\x1b]0;x\x07", "\u202eabc", "x" * 10_000)
BIG, SMALL, EVIL = "Qwen3-8B-Q4_K_M", "Qwen3-0.6B-Q8_0", "[bold]Evil-1B-Q4_0"

Made = Callable[[], LocalspecApp]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """localspec's own folder of models, empty, and an empty Hugging Face cache."""
    for name in ("DATA", "CACHE", "CONFIG", "LOG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    models = tmp_path / "data" / "models"
    models.mkdir(parents=True)
    return models


@pytest.fixture
def models(folder: Path) -> Path:
    for index, name in enumerate((BIG, SMALL, EVIL)):
        (folder / f"{name}.gguf").write_bytes(b"GGUF" + bytes(index))
    return folder


@pytest.fixture
def make_app(tmp_path: Path) -> Made:
    verdicts = {"Evil": PairVerdict("NO_PAIR", "token 7 is 'a' in the target and [/b] in the draft")}

    def scripted() -> ScriptedEngine:
        return engine({"8B": 4000, "0.6B": 300, "Evil": 200}, verdicts)

    def no_hub() -> Any:
        raise OfflineError("There is no network.", "Everything local works without it.")

    def make() -> LocalspecApp:
        services = AppServices(Settings(), scripted, no_hub, lambda: Database(tmp_path / "kept.sqlite3"))
        return LocalspecApp(services)

    return make


async def settled(pilot: Pilot[int], *, drafts: bool = False) -> ModelsScreen:
    """Wait until the library is read, and if wished until the drafts are looked for."""
    screen = pilot.app.screen
    assert isinstance(screen, ModelsScreen)

    def has_drafts() -> bool:
        # Those of the model under the cursor, and not of the one where it began.
        is_its = screen.current is not None and screen.drafts.target == screen.current.entry.found.name
        return is_its and not screen.drafts.activity and bool(screen.drafts.candidates)

    await until(pilot, lambda: not screen.library.activity and (not drafts or has_drafts()))
    return screen


def go_to(screen: ModelsScreen, name: str) -> None:
    table = screen.query_one(ModelsTable)
    table.move_cursor(row=table.get_row_index(name))


async def test_the_table_lists_what_is_here(make_app: Made, models: Path) -> None:
    async with make_app().run_test(size=(160, 40)) as pilot:
        screen = await settled(pilot)
        table = screen.query_one(ModelsTable)
        assert [str(table.get_row_at(row)[1]) for row in range(table.row_count)] == [EVIL, SMALL, BIG]
        assert [str(cell) for cell in table.get_row(BIG)[2:4]] == ["qwen3", "4.2B"]
        assert str(screen.query_one("#table-panel").border_subtitle).startswith("3,")


async def test_filter_as_one_types_and_escape_shows_all(make_app: Made, models: Path) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        await pilot.press("slash", *"qwen", "space", *"8b")
        await pilot.pause()
        assert [row.name for row in screen.table._rows] == [BIG]
        await pilot.press("escape")
        await pilot.pause()
        assert screen.table.row_count == 3 and screen.focused is screen.table


async def test_sorting_by_keys_keeps_the_cursor_on_its_model(make_app: Made, models: Path) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        go_to(screen, SMALL)
        await pilot.press("s", "s")
        await pilot.pause()
        assert screen.sorting == ("parameters", True)
        assert [row.name for row in screen.table._rows] == [BIG, SMALL, EVIL]
        assert screen.current is not None and screen.current.name == SMALL
        await pilot.press("S")
        await pilot.pause()
        assert [row.name for row in screen.table._rows] == [EVIL, SMALL, BIG]


async def test_enter_chooses_a_target_and_d_a_draft_that_is_a_pair(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        go_to(screen, BIG)
        await pilot.press("enter")
        await quiet(pilot)
        assert app.workbench.target == ChosenModel(BIG, models / f"{BIG}.gguf")
        go_to(screen, SMALL)
        await pilot.press("d")
        await quiet(pilot)
        assert app.workbench.draft == ChosenModel(SMALL, models / f"{SMALL}.gguf")
        assert app.workbench.speculation.method == "draft"
        table = screen.query_one(ModelsTable)
        assert (str(table.get_cell(BIG, "mark")), str(table.get_cell(SMALL, "mark"))) == ("T", "D")
        await pilot.press("d")
        await quiet(pilot)
        assert app.workbench.draft is None and app.workbench.speculation.method == "off"


async def test_no_pair_is_refused_with_its_reason_and_D_insists(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        app.workbench = Workbench(target=ChosenModel(BIG, models / f"{BIG}.gguf"))
        go_to(screen, EVIL)
        await pilot.press("d")
        await quiet(pilot)
        assert app.workbench.draft is None
        assert "cannot draft for" in notices(app) and "[/b] in the draft" in notices(app)
        await pilot.press("D")
        await quiet(pilot)
        assert app.workbench.draft is not None and app.workbench.draft.name == EVIL


async def test_a_new_target_lets_go_a_draft_that_is_no_pair_with_it(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        app.workbench = Workbench(draft=ChosenModel(EVIL, models / f"{EVIL}.gguf"))
        go_to(screen, BIG)
        await pilot.press("t")
        await quiet(pilot)
        assert app.workbench.target is not None and app.workbench.draft is None
        assert "is let go" in notices(app)


async def test_a_draft_without_a_target_says_what_to_do(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("d")
        await quiet(pilot)
        assert app.workbench.draft is None and "Choose one with t" in notices(app)


async def test_a_draft_on_a_slower_device_than_the_target_is_warned_of(
    make_app: Made, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    async def slow(*of: object, **_: object) -> str:
        asked.append(of)
        return "The draft would run on the processor."

    monkeypatch.setattr("localspec.session.draft_placement.slow_draft", slow)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        target = ChosenModel(BIG, models / f"{BIG}.gguf")
        app.workbench = Workbench(target=target, draft_context=ContextSettings(n_gpu_layers=0))
        go_to(screen, SMALL)
        await pilot.press("d")
        await quiet(pilot)
        assert asked[-1][1:] == (target.path, models / f"{SMALL}.gguf", ContextSettings(), app.workbench.draft_context)
        assert "The draft would run on the processor." in notices(app)
        await pilot.press("d")
        await quiet(pilot)
        assert len(asked) == 1, "without a draft there is nothing to ask"


async def test_candidates_come_with_verdict_cost_and_refusal_and_enter_takes_one(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await settled(pilot)
        go_to(screen, BIG)
        screen = await settled(pilot, drafts=True)
        by_label = {one.label: str(candidate_content(one)) for one in screen.drafts.candidates}
        assert "✓ pair" in by_label[SMALL] and "cost 0.07" in by_label[SMALL]
        assert "✗ no pair" in by_label[EVIL] and "[/b] in the draft" in by_label[EVIL]
        drafts = screen.query_one(ModelsDrafts)
        drafts.focus()
        drafts.highlighted = [one.label for one in screen.drafts.candidates].index(SMALL)
        await pilot.press("enter")
        await quiet(pilot)
        assert app.workbench.target is not None and app.workbench.target.name == BIG
        assert app.workbench.draft is not None and app.workbench.draft.name == SMALL


async def test_the_hub_out_of_reach_says_so_and_local_candidates_stay(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        go_to(screen, BIG)
        await settled(pilot, drafts=True)
        await pilot.press("p")
        await quiet(pilot)
        assert "There is no network." in notices(app)
        assert [one.label for one in screen.drafts.candidates if one.source == "local"]
        await pilot.press("h", *"qwen3", "enter")
        await until(pilot, lambda: isinstance(app.screen, HubScreen) and app.screen.browsing.failure)
        hub = app.screen
        assert isinstance(hub, HubScreen) and hub.browsing.failure == "There is no network."
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is screen


async def test_removal_asks_first_and_clears_the_workbench(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        app.workbench = Workbench(target=ChosenModel(BIG, models / f"{BIG}.gguf"))
        go_to(screen, BIG)
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ModelsQuestion))
        await pilot.press("enter")
        await quiet(pilot)
        assert (models / f"{BIG}.gguf").exists() and app.workbench.target is not None
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ModelsQuestion))
        await pilot.press("y")
        await quiet(pilot)
        await settled(pilot)
        assert not (models / f"{BIG}.gguf").exists() and app.workbench.target is None
        assert screen.table.row_count == 2


async def test_a_file_of_the_user_is_not_removed(make_app: Made, models: Path, tmp_path: Path) -> None:
    (models / "elsewhere.gguf").symlink_to(tmp_path / "mine.gguf")
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        go_to(screen, "elsewhere")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ModelsQuestion))
        await pilot.press("y")
        await quiet(pilot)
        assert (tmp_path / "mine.gguf").exists()


async def test_without_models_it_says_what_to_do_and_the_network_is_left_alone(make_app: Made, folder: Path) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        assert screen.has_class("-empty")
        assert "Press h" in str(screen.query_one("#empty").render())


async def test_g_prepares_the_demo_and_chooses_its_models(
    make_app: Made, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localspec.session.demo.find_smollm2", lambda: Path("/embedded.gguf"))
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("g")
        await until(pilot, lambda: app.workbench.target is not None)
        await settled(pilot)
        assert app.workbench.target is not None and app.workbench.draft is not None
        assert app.workbench.speculation.method == "draft"
        names = {row.name for row in app.screen.query_one(ModelsTable)._rows}
        assert {app.workbench.target.name, app.workbench.draft.name} <= names


async def test_a_missing_demo_says_why(make_app: Made, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from localspec.errors import ModelFileError

    def none() -> Path:
        raise ModelFileError("The demo's model [/] is not installed.", "Install it.")

    monkeypatch.setattr("localspec.session.demo.find_smollm2", none)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        await pilot.press("g")
        await quiet(pilot)
        assert "[/] is not installed" in notices(app) and not screen.activity


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:12])
async def test_foreign_text_stays_text(make_app: Made, folder: Path, text: str) -> None:
    foreign = entry(text, facts(title=text, bases=(text,)), repo=text)
    broken = replace(entry(f"{text}2", None, failure=text), hint=text)
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        screen.library = Library((foreign, broken), (), (text,), "")
        screen.drafts = Drafts(text, notes=(text,), failure=text)
        await pilot.pause()
        listing = RepoListing(text, "main", "c" * 40, (), (), text, False, 1)
        offer = Offer(text, "model", (RepoFile(text, 10, ""),))
        app.transfers = (Transfer(1, text, listing, offer, "failed", None, text, text),)
        await pilot.pause()
        await pilot.press("i", "down")
        await pilot.pause()
        for row in map(row_of, (foreign, broken)):
            shown = details_content(row).plain
            assert "\x1b" not in shown and "\u202e" not in shown
            assert text.replace("\x1b", "").replace("\x07", "").replace("\u202e", "") in shown
        assert screen.table.row_count == 2


async def test_resizing_in_mid_work_keeps_everything(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await settled(pilot)
        go_to(screen, BIG)
        for size in ((60, 20), (140, 40), (80, 24), (200, 60), (60, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert screen.current is not None and screen.current.name == BIG
            assert screen.has_class("-narrow") == (size[0] < 110)
            table = screen.table
            assert sum(column.get_render_width(table) for column in table.columns.values()) <= table.size.width
        assert screen.query_one(ModelsDetails).row is not None


async def test_the_side_can_be_turned_on_a_narrow_screen(make_app: Made, models: Path) -> None:
    async with make_app().run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        shown = []
        for _ in range(4):
            shown.append([screen.query_one(name).display for name in ("#side", "#details-panel", "#drafts-panel")])
            await pilot.press("i")
            await pilot.pause()
        assert [side for side, _, _ in shown] == [True, True, False, True]
        assert shown[0][1:] == [True, False] and shown[1][1:] == [False, True]


async def test_downloads_show_bar_speed_and_time_to_go_for_each_file(make_app: Made, models: Path) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        assert not screen.query_one("#downloads-panel").display
        listing = RepoListing("a/b", "main", "c" * 40, (), (), "", False, 1)
        names = ("q4/big-00001-of-00002.gguf", "q4/big-00002-of-00002.gguf")
        offer = Offer("Q4_K_M", "model", tuple(RepoFile(name, 4 << 30, "") for name in names))
        files = (FileProgress(names[0], 4 << 30, 4 << 30), FileProgress(names[1], 1 << 30, 4 << 30))
        progress = TransferProgress(
            names[1], 1, 2, "fetching", 1 << 30, 4 << 30, 5 << 30, 8 << 30, 10 * 2**20, 600.0, files
        )
        done = Transfer(1, "a/b:Q2_K", listing, offer, "done", progress)
        app.transfers = (done, Transfer(2, "a/b:Q4_K_M", listing, offer, "running", progress))
        await pilot.pause()
        downloads = screen.query_one(ModelsDownloads)
        head, total, *each = str(downloads.get_option_at_index(1).prompt).splitlines()
        assert head.endswith("a/b:Q4_K_M")
        for words in (" 62 %", "5.0 of 8.0 GiB", "10 MiB/s", "10 min left", "file 2 of 2"):
            assert words in total
        assert [line.split("  ")[-1] for line in each] == ["part 1 of 2", "part 2 of 2"]
        assert "100 %" in each[0] and " 25 %" in each[1]
        assert downloads.highlighted == 1, "the one that moves is in view"
        assert "1 of 2 here" in str(screen.query_one("#downloads-panel").border_subtitle)
        height = downloads.size.height
        downloads.focus()
        await pilot.pause()
        await pilot.pause()
        assert downloads.size.height > height
        assert "x cancels" in str(screen.query_one("#downloads-panel").border_subtitle)
        await pilot.press("f4", "f2")
        await pilot.pause()
        assert app.transfers and downloads.option_count == 2


async def test_a_download_of_many_files_shows_the_one_that_comes(make_app: Made, folder: Path) -> None:
    files = tuple(FileProgress(f"m-{index:05}-of-00009.gguf", 0, 1 << 30) for index in range(1, 10))
    progress = TransferProgress(files[6].name, 6, 9, "fetching", 0, 1 << 30, 6 << 30, 9 << 30, None, None, files)
    listing = RepoListing("a/b", "main", "c" * 40, (), (), "", False, 1)
    offer = Offer("Q8_0", "model", tuple(RepoFile(file.name, 1 << 30, "") for file in files))
    app = make_app()
    async with app.run_test(size=(60, 20)) as pilot:
        screen = await settled(pilot)
        app.transfers = (Transfer(1, "a/b:Q8_0", listing, offer, "paused", progress),)
        await pilot.pause()
        shown = str(screen.query_one(ModelsDownloads).get_option_at_index(0).prompt)
        assert "part 7 of 9" in shown and len(shown.splitlines()) == 3


async def test_escape_stops_the_reading_at_once(make_app: Made, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr("localspec.session.library.read_library", never)
    async with make_app().run_test(size=(80, 24)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ModelsScreen)
        for _ in range(100):
            await pilot.pause(0.01)
            if screen.library.entries:
                break
        assert screen.table.row_count == 3 and screen.library.activity
        await pilot.press("escape")
        await pilot.pause()
        assert not screen.library.activity
        assert not [worker for worker in screen.workers if worker.group == "library" and worker.is_running]
