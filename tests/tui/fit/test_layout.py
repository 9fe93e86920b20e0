"""The Fit screen at any size and with any text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.tui.app import LocalspecApp
from localspec.tui.fit_knobs import read_machine
from localspec.tui.state import ChosenModel
from localspec.tui.widgets.fit_bars import FitBars
from localspec.tui.widgets.fit_context import ContextScale, FitContext
from localspec.tui.widgets.fit_dialog import ChoiceDialog
from tests.tui.fit_kit import (
    BENCH,
    DRAFT_PATH,
    TARGET_PATH,
    MeasuringEngine,
    fit_screen,
    opened,
    planned,
)
from tests.tui.looking import screen_text
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred\x1b[0m", "\u202eabc שלום", "x" * 10_000)


class TestLayout:
    async def test_everything_can_be_reached_at_any_size(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            for size in ((60, 20), (80, 24), (140, 40), (160, 50)):
                await pilot.resize_terminal(*size)
                app.screen.query_one("#context").focus()
                await pilot.pause()
                app.screen.query_one("#fit-body").scroll_home(animate=False)
                await until(
                    pilot, lambda: all(words in screen_text(app) for words in ("T target weights", "K target KV"))
                )
                assert app.screen.query_one(FitBars).size.width >= size[0] - 6
                app.screen.query_one("#machine").focus(scroll_visible=True)
                await until(pilot, lambda: "this machine" in screen_text(app))

    async def test_at_80_by_24_nothing_of_the_page_scrolls(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            assert app.screen.query_one("#fit-body").max_scroll_y == 0
            assert app.screen.query_one("#fit-knobs").max_scroll_y == 0

    async def test_resizing_while_measuring(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            engines[0].delay_s = 0.02
            await pilot.press("left")
            await pilot.resize_terminal(60, 20)
            await pilot.resize_terminal(150, 45)
            engines[0].delay_s = 0.0
            await planned(pilot)
            assert app.screen.query_one(FitBars).size.width > 130

    async def test_foreign_text_stays_text(self, app: LocalspecApp) -> None:
        name = ChosenModel(" ".join(HOSTILE), DRAFT_PATH)
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot, replace(BENCH, target=replace(name, path=TARGET_PATH), draft=name))
            await planned(pilot)
            screen = fit_screen(app)
            drafts = tuple(ChosenModel(text, Path(f"/models/{index}")) for index, text in enumerate(HOSTILE))
            screen.snapshot = replace(screen.snapshot, drafts=drafts)
            screen.query_one("#draft").focus()
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(app.screen, ChoiceDialog)
            shown = screen_text(app)
            assert "\x1b" not in shown and "\u202e" not in shown
            assert all(text in shown for text in HOSTILE[:4])
            for _ in range(2):
                await pilot.press("escape", "right", "enter")
            await pilot.press("escape")
            await planned(pilot)

    async def test_the_limit_of_a_shared_memory_is_marked(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await opened(app, pilot)
            knobs, _ = await planned(pilot)
            fit_screen(app).knobs = replace(knobs, machine=read_machine("M3 Pro:36GiB,unified"))
            await planned(pilot)
            line = next(line for line in screen_text(app).splitlines() if "the GPU's limit, 24.0 GiB" in line)
        assert 85 <= line.index("^") <= 95

    async def test_the_slider_says_where_what_fits_ends(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            slider = app.screen.query_one(FitContext)
            slider.scale = ContextScale(n_ctx=32768, planned=16384, largest=16384, trained=40960)
            text = slider.render().plain
        assert text.index("┃") < text.index("●") and text.endswith(" 32768")
