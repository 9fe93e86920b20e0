"""The probe behind a long context, beside the usual one."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from textual.widgets import Static

from localspec.tui.probe_run import DEPTH
from localspec.tui.screens.probe import ProbeScreen
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.line_chart import LineChart
from tests.probe_kit import ProbeEngine
from tests.tui.looking import screen_text
from tests.tui.two_models import TwoModels
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", [(60, 20), (140, 40)])
async def test_a_key_measures_behind_more_positions_too(tmp_path: Path, size: tuple[int, int]) -> None:
    bench = TwoModels(tmp_path, ProbeEngine())
    async with bench.app.run_test(size=size) as pilot:
        bench.app.workbench = bench.models
        await bench.app.push_screen(ProbeScreen(bench.target))
        screen = cast("ProbeScreen", bench.app.screen)
        await until(pilot, lambda: screen.snapshot.is_done and not screen.is_at_work)
        assert "d behind 2048 positions, too" in screen_text(bench.app)
        assert [line.name for line in screen.snapshot.cost] == ["this target"]
        await pilot.press("d")
        await until(pilot, lambda: len(bench.engine.measured) == 3 and not screen.is_at_work)
        first, deep = bench.engine.measured[1:]
        assert (first.depth, deep.depth) == (DEPTH, 2048)
        reached = min(2048, bench.models.context.n_ctx - 17)
        words = str(screen.query_one("#probe-verdict", Static).render())
        assert f"Behind {DEPTH} positions: With this target" in words
        assert f"Behind {deep.depth} positions: With this target" in words or f"Behind {reached} positions:" in words
        cost, needed = screen.query(LineChart)
        assert len(cost.series) == 2 and len(needed.series) == 4
        assert len({line.mark for line in needed.series}) == 4
        labels = [row[0] for row in screen.query_one(FigureTable).figures.rows]
        assert labels[0] == f"behind {DEPTH}:" and len([label for label in labels if label.startswith("behind")]) == 2
        # From now on it is measured with each time again.
        await pilot.press("r")
        await until(pilot, lambda: len(bench.engine.measured) == 5 and not screen.is_at_work)
