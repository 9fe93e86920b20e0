"""The Tune screen, on an engine whose speeds are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Button, Input, SelectionList, Static

from localspec.engine.requests import Configure
from localspec.engine.values import SpeculationSettings
from localspec.errors import UsageError
from localspec.hardware.throttling import ClockReading
from localspec.session.figures import DASH
from localspec.session.tuning import tuner
from localspec.session.tuning.reporter import OnProgress
from localspec.session.tuning.values import (
    HeatCell,
    TuningPlan,
    TuningProgress,
    TuningResult,
    TuningTrial,
    WarmSetting,
)
from localspec.settings import Settings
from localspec.store.database import Database
from localspec.store.profiles import Profiles
from localspec.store.runs import Runs
from localspec.tui.screens.compare import CompareScreen
from localspec.tui.screens.compare_profile import CompareProfile
from localspec.tui.screens.tune import TuneScreen
from localspec.tui.screens.tune_wish import TuneWish
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.tune_choice import TuneChoice, drafts_words, make_plan, obstacle
from localspec.tui.tuning_state import TuneSnapshot, Way, best_cell, snapshot_of
from localspec.tui.widgets.tune_heat import heat_lines, ratio_text
from localspec.tui.widgets.tune_result import TuneResult
from localspec.tui.widgets.tune_standing import standing_lines
from localspec.tui.widgets.tune_ways import MOST, way_lines
from tests.tui.looking import notices
from tests.tui.two_models import TwoModels
from tests.tui.waiting import until
from tests.tuning_kit import CORES, SpeedyEngine, workload

HOSTILE = "[/] [/path] [bold [type=x, v={'a[0]'}] \x1b[31mred \u202eright " + "long" * 2500
CELLS = (HeatCell(1, 0.0, 0.91, 1), HeatCell(4, 0.3, 1.42, 4), HeatCell(16, 0.85, 12.3, 2))


def truth(settings: SpeculationSettings, prompt: str) -> float:
    if settings.method == "draft":
        return 1.6 - 0.05 * abs(settings.n_max - 4) - 0.2 * settings.p_min
    return 0.9 if settings.method in ("ngram", "suffix") else 1.1


def nothing_pays(settings: SpeculationSettings, prompt: str) -> float:
    return 0.8


class Bench(TwoModels[SpeedyEngine]):
    """Has a search be run, on the clock of an engine whose speeds are known."""

    @property
    def screen(self) -> TuneScreen:
        return cast("TuneScreen", self.app.screen)

    async def open(self, pilot: Pilot[int], **choice: object) -> None:
        self.app.workbench = self.models
        await pilot.press("f5")
        await pilot.pause()
        await pilot.press("u")
        await pilot.pause()
        given = {"budget": "60s", "workloads": ("edit",), **choice}
        self.screen.choice = replace(self.screen.choice, **given)  # type: ignore[arg-type]

    async def run(self, pilot: Pilot[int]) -> None:
        await pilot.press("r")
        await until(pilot, lambda: not self.screen.is_at_work)


@pytest.fixture
def make_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    def make(
        how: Callable[[SpeculationSettings, str], float] = truth, pause_s: float = 0.0, target: str = "big"
    ) -> Bench:
        engine = SpeedyEngine(truth=how, pause_s=pause_s)
        real = tuner.tune

        async def tune(engine_: object, plan: TuningPlan, on_progress: OnProgress) -> TuningResult:
            return await real(
                engine_,  # type: ignore[arg-type]
                plan,
                on_progress,
                clock=engine.clock,
                read_clock=lambda: ClockReading(None, None, None),
                read_energy=lambda: None,
                cores=CORES,
            )

        monkeypatch.setattr("localspec.tui.tune_run.tune", tune)
        return Bench(tmp_path, engine, target, SpeculationSettings("draft", n_max=4, remembers=True))

    return make


# What is shown.


def test_the_map_shows_figures_and_marks() -> None:
    shown = TuneSnapshot(cells=CELLS, best_cell=(4, 0.3), running_cell=(2, 0.5))
    lines = [line.plain for line in heat_lines(shown, 70)]
    header, *rows = lines
    assert header.split() == ["p_min", "1", "2", "3", "4", "6", "8", "12", "16"]
    assert rows[0].split()[:3] == ["0", "0.91", "·"] and "◆   1.42" in rows[1]
    assert "▸" in rows[2] and rows[4].rstrip().endswith("12")
    # A column is under its heading.
    assert rows[1].index("1.42") + 3 == header.index("4")


@pytest.mark.parametrize("width", [8, 20, 40, 56, 74, 200])
def test_the_map_is_never_wider_than_its_place(width: int) -> None:
    shown = TuneSnapshot(cells=CELLS, best_cell=best_cell(CELLS))
    assert all(cell_len(line.plain) <= max(width, 11) for line in heat_lines(shown, width))


def test_a_map_that_only_loses_has_no_best() -> None:
    assert best_cell((HeatCell(1, 0.0, 0.99, 3),)) is None and best_cell(()) is None
    assert best_cell(CELLS) == (16, 0.85)


@pytest.mark.parametrize(("ratio", "text"), [(0.4, "0.40"), (9.99, "9.99"), (9.999, "10"), (1e9, "9999")])
def test_a_ratio_fits_into_its_cell(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text


def test_ways_are_listed_with_hostile_names_as_text() -> None:
    ways = (
        Way("draft n_max 4", 1.5, 3, is_best=True),
        Way(HOSTILE, 0.7, 1, is_running=True),
        Way("auto", None, reason="no [bold draft"),
        *(Way(f"way {number}", 0.5, 1) for number in range(MOST)),
    )
    for width in (30, 56, 90):
        lines = [line.plain for line in way_lines(ways, width)]
        assert all(cell_len(line) <= width and "\x1b" not in line for line in lines)
        assert lines[0].startswith("◆  1.50x") and "3 pairs" in lines[0] and lines[1].startswith("▸  0.70x")
        assert DASH in lines[2] and lines[-1] == "and 3 more"
    assert "┃" in way_lines(ways, 70)[0].plain
    assert "Nothing is known" in way_lines((), 40)[0].plain


def test_the_standing_tells_stage_and_time() -> None:
    draft = WarmSetting(SpeculationSettings("draft", n_max=6, p_min=0.3), Path("d.gguf"))
    trials = (TuningTrial(draft, (("edit", (1.2, 1.3)),)),)
    progress = TuningProgress(
        "search", 65.0, 300.0, (("search", 165.0),), setting=draft, best=trials[0], cells=CELLS, trials=trials
    )
    shown = snapshot_of(progress, (Path("d.gguf"),))
    assert shown.running_cell == (6, 0.3) and shown.ways[0].is_best and shown.ways[0].is_running
    stages, doing, time = (line.plain for line in standing_lines(shown, "", 78))
    assert stages.split() == ["✓", "load", "✓", "threads", "▸", "drafting", "·", "confirm"]
    assert doing == "draft n_max 6, p_min 0.3 runs"
    assert "1m5s of 5m, 3m55s left; this stage 1m40s" in time
    assert standing_lines(shown, "r begins", 78)[1].plain == "r begins"


def test_what_stands_in_the_way() -> None:
    target = Workbench(ChosenModel("t", Path("t.gguf")))
    assert "No target" in str(obstacle(TuneChoice(), Workbench()))
    assert "no text" in str(obstacle(TuneChoice(workloads=()), target))
    assert obstacle(TuneChoice(workloads=(), is_own=True), target) is None
    assert drafts_words(TuneChoice(), target) == "no draft model"
    with pytest.raises(UsageError, match="is no time"):
        make_plan(TuneChoice(budget="soon", workloads=("open",)), target, Settings(), (workload(),))


def test_the_plan_is_the_bench_with_all_candidates() -> None:
    bench = Workbench(ChosenModel("t", Path("t.gguf")), speculation=SpeculationSettings("auto", remembers=True))
    drafts = (ChosenModel("a", Path("a.gguf")), ChosenModel("b", Path("b.gguf")))
    own = (workload("my_chat"),)
    plan = make_plan(TuneChoice(("open",), True, "90s", drafts), bench, Settings(), (workload(),), own)
    assert (plan.drafts, plan.budget_s) == ((Path("a.gguf"), Path("b.gguf")), 90.0)
    assert [one.name for one in plan.workloads] == ["open", "my_chat"]
    assert not plan.speculation.remembers


# The screen.


@pytest.mark.slow
async def test_a_search_fills_the_map_and_its_winner_is_used_and_kept(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.run(pilot)
        screen = bench.screen
        assert screen.outcome is not None and screen.outcome.tone == "won" and screen.snapshot.cells
        said = str(screen.query_one(TuneResult).render())
        assert "▲ Best here: draft n_max" in said
        assert [state for _, state in screen.snapshot.stages] == ["done"] * 4
        assert screen.check_action("use", ()) and screen.check_action("keep_profile", ())
        await pilot.press("w")
        used = bench.app.workbench
        assert used.speculation.method == "draft" and used.speculation.remembers and used.draft == bench.models.draft
        await pilot.press("p")
        await until(pilot, lambda: isinstance(bench.app.screen, CompareProfile))
        assert bench.app.screen.query_one("#field-name", Input).value == "tuned big"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "is kept" in notices(bench.app))
    with Database(bench.database) as database:
        (profile,) = Profiles(database).all()
        (summary,) = Runs(database).summaries()
    assert profile.name == "tuned big" and summary.kind == "tune"


@pytest.mark.slow
async def test_esc_keeps_what_is_known(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(pause_s=0.002)
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, budget="10m")
        await pilot.press("r")
        await until(pilot, lambda: len(bench.screen.snapshot.ways) > 1)
        assert bench.app.engine_state.busy == "tuning" and bench.app.engine_state.loaded is not None
        await pilot.resize_terminal(60, 20)
        await pilot.press("escape")
        await until(pilot, lambda: not bench.screen.is_at_work)
        outcome = bench.screen.outcome
        assert outcome is not None and outcome.tone == "open" and outcome.advice is None
        assert "Ended early" in outcome.sentences[0] and bench.screen.snapshot.ways
        assert bench.app.engine_state.busy == "" and not bench.screen.check_action("use", ())
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(bench.app.screen, CompareScreen)


@pytest.mark.slow
async def test_where_nothing_pays_the_advice_is_off(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(nothing_pays)
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.open(pilot)
        await bench.run(pilot)
        outcome = bench.screen.outcome
        assert outcome is not None and outcome.tone == "off" and not outcome.arm
        assert outcome.advice is not None and outcome.advice.speculation.method == "off"
        assert not bench.screen.check_action("keep_profile", ())


@pytest.mark.slow
async def test_afterwards_the_chat_loads_its_own_models_anew(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await bench.run(pilot)
        num_loads, room = bench.engine.num_loads, bench.app.room
        state = bench.app.engine_state
        assert state.loaded is not None and state.loaded_for is None
        last = [one for one in bench.engine.requests if isinstance(one, Configure)][-1]
        assert state.speculation is not None and state.speculation.settings == last.speculation
        async with room.occupied("loading"):
            await room.load(bench.models, lambda event: None)
        assert bench.engine.num_loads == num_loads + 1


@pytest.mark.slow
async def test_what_cannot_be_is_said(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(target=HOSTILE)
    bench.engine.step_s = 1.0
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await pilot.press("r")
        await until(pilot, lambda: not bench.screen.is_at_work and "budget is too small" in notices(bench.app))
        assert bench.screen.outcome is None
        bench.app.workbench = Workbench()
        await pilot.pause()
        assert "No target model is chosen" in bench.screen.remark
        async with bench.app.room.occupied("answering"):
            bench.app.workbench = bench.models
            await pilot.press("r")
            assert "The engine is busy" in notices(bench.app) and not bench.screen.is_at_work


@pytest.mark.slow
async def test_texts_drafts_and_time_are_chosen(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench()
    monkeypatch.setattr("localspec.session.library.local_models", lambda settings: ())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(bench.app.screen, TuneWish))
        dialog = bench.app.screen
        dialog.query_one("#field-budget", Input).value = "soon [/]"
        await pilot.press("ctrl+s")
        assert "is no time" in str(dialog.query_one(".wrong", Static).render())
        dialog.query_one("#field-budget", Input).value = "90s"
        dialog.query_one("#drafts", SelectionList).deselect_all()
        dialog.query_one("#texts", SelectionList).select("own")
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert bench.screen.choice == TuneChoice(("edit",), True, "90s", ())
        label = str(bench.screen.query_one("#tune-choice", Button).label)
        assert "90s for edit, my chats; no draft model" in label
        assert not bench.screen.query_one("#tune-heat").display


async def test_keys_that_come_at_once_begin_and_stop(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    async with bench.app.run_test(size=(100, 30)) as pilot:
        await bench.open(pilot)
        bench.screen.action_run()
        bench.screen.action_stop()
        await until(pilot, lambda: not bench.screen.is_at_work)
        assert bench.screen.outcome is None and bench.app.room.is_free
