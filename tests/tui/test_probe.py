"""The probe panel, on a made-up target whose steps take stated times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from localspec.engine.events import Event
from localspec.engine.requests import LoadModels, MeasureSteps, Request
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.screens.probe import ProbeScreen
from localspec.tui.state import ChosenModel
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.line_chart import LineChart
from tests.probe_kit import STEEP, ProbeEngine
from tests.tui.looking import notices
from tests.tui.two_models import TwoModels
from tests.tui.waiting import until

pytestmark = pytest.mark.slow

HOSTILE = "[/] [/path] [bold \x1b[31mred \u202eright " + "long" * 2500


class Slow(ProbeEngine):
    """Takes its time between two reports."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        async for event in super().stream(request):
            if event.type == "steps_measured":
                await asyncio.sleep(30.0)
            yield event


class Bench(TwoModels[ProbeEngine]):
    """Has the probe be opened."""

    @property
    def screen(self) -> ProbeScreen:
        return cast("ProbeScreen", self.app.screen)

    async def open(self, pilot: Pilot[int], target: ChosenModel) -> None:
        self.app.workbench = self.models
        await self.app.push_screen(ProbeScreen(target))

    def text(self, name: str) -> str:
        return str(self.screen.query_one(f"#{name}", Static).render())


async def test_a_target_with_its_draft_is_probed_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProbeEngine())
    async with bench.app.run_test(size=(140, 40)) as pilot:
        await bench.open(pilot, bench.target)
        await until(pilot, lambda: bench.screen.snapshot.is_done)
        assert "this draft, of 10 % of its cost, pays from an acceptance of 0.57" in bench.text("probe-verdict")
        assert "a step of one token takes 10.0 ms" in bench.text("probe-verdict")
        cost, needed = bench.screen.query(LineChart)
        assert [x for x, _ in cost.series[0].points][:3] == [1.0, 2.0, 3.0]
        assert cost.series[0].points[1][1] == pytest.approx(1.6)
        # Told apart by marks, and not by colour alone.
        assert len({line.mark for line in needed.series}) == 2 and needed.series[1].name == "this draft"
        rows = bench.screen.query_one(FigureTable).figures.rows
        assert rows[0][:3] == ("0", "3", "0.47") and any("this draft" in row[0] for row in rows)
        assert bench.app.engine_state.busy == ""
        await pilot.press("r")
        await until(pilot, lambda: bench.screen.snapshot.is_done and not bench.screen.is_at_work)
        assert len(bench.engine.measured) == 2
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(bench.app.screen, ModelsScreen)


async def test_another_model_is_probed_without_the_bench_s_draft(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProbeEngine(STEEP), HOSTILE)
    async with bench.app.run_test(size=(60, 20)) as pilot:
        await bench.open(pilot, ChosenModel(HOSTILE, bench.draft.path))
        await until(pilot, lambda: bench.screen.snapshot.is_done)
        (load,) = [one for one in bench.engine.requests if isinstance(one, LoadModels)]
        assert (load.target_path, load.draft_path) == (str(bench.draft.path), "")
        assert "no draft pays" in bench.text("probe-verdict")
        assert "\x1b" not in bench.text("probe-standing") and "[/path]" in bench.text("probe-standing")
        assert bench.app.workbench == bench.models


async def test_esc_keeps_the_steps_that_were_timed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, Slow())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, bench.target)
        await until(pilot, lambda: bool(bench.screen.snapshot.cost))
        assert bench.app.engine_state.busy == "probing" and not bench.screen.snapshot.is_done
        await pilot.resize_terminal(140, 40)
        await pilot.press("escape")
        await until(pilot, lambda: not bench.screen.is_at_work)
        assert bench.screen.snapshot.is_done and "ended early" in " ".join(bench.screen.snapshot.notes)


async def test_a_failure_is_shown(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProbeEngine(failure=("UsageError", "[bold Too short."), num_reports=0))
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, bench.target)
        await until(pilot, lambda: not bench.screen.is_at_work and bool(notices(bench.app)))
        assert "[bold Too short." in notices(bench.app)
        assert not [one for one in bench.engine.requests if isinstance(one, MeasureSteps)][1:]
        assert not bench.screen.snapshot.verdict


async def test_keys_that_come_at_once_begin_and_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ProbeEngine())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await bench.open(pilot, bench.target)
        await until(pilot, lambda: bench.screen.snapshot.is_done and not bench.screen.is_at_work)
        bench.screen.action_run()
        bench.screen.action_stop()
        await until(pilot, lambda: not bench.screen.is_at_work)
        await pilot.press("r")
        await until(pilot, lambda: bench.screen.snapshot.is_done and not bench.screen.is_at_work)
