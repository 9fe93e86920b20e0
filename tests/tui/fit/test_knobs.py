"""The knobs of the Fit screen, by keys and mouse."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input, OptionList, Static

from localspec.tui.app import LocalspecApp
from localspec.tui.fit_knobs import read_machine, stepped_context
from localspec.tui.widgets.fit_dialog import ChoiceDialog, EntryDialog
from localspec.tui.widgets.fit_knob import FitKnob
from tests.plan_kit import GIB, MIXTURE
from tests.tui.fit_kit import (
    BENCH,
    GPU,
    MeasuringEngine,
    fit_screen,
    opened,
    planned,
)
from tests.tui.looking import screen_text
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


class TestKnobs:
    async def test_the_context(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            screen = fit_screen(app)
            for keys, expected in (
                (["left"], 15360),
                (["pagedown"], 7680),
                (["right"], 7936),
                (["pageup"], 15872),
                (["home"], 256),
                (["left"], 256),
                (["end"], 0),
            ):
                await pilot.press(*keys)
                await pilot.pause()
                assert screen.knobs is not None and screen.knobs.placement.n_ctx == expected, keys
            _, answer = await planned(pilot)
            assert answer.plan.n_ctx == answer.plan.max_n_ctx
            await pilot.press("left")
            await pilot.pause()
            assert screen.knobs is not None
            assert screen.knobs.placement.n_ctx == stepped_context(answer.plan.n_ctx, -1)

    async def test_the_context_is_typed(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            screen = fit_screen(app)
            await pilot.press("enter")
            await pilot.pause()
            assert isinstance(app.screen, EntryDialog)
            app.screen.query_one(Input).value = "[/] 3"
            await pilot.press("enter")
            await pilot.pause()
            assert "no number" in str(app.screen.query_one(".failure", Static).content)
            app.screen.query_one(Input).value = "12k"
            await pilot.press("enter")
            await pilot.pause()
            assert screen.knobs is not None and screen.knobs.placement.n_ctx == 12288

    async def test_escape_leaves_a_value_as_it_is(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            knobs, _ = await planned(pilot)
            await pilot.press("enter", "1", "escape")
            await pilot.pause()
            assert fit_screen(app).knobs == knobs

    async def test_arrows_walk_and_turn(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.press("down", "down", "right", "right", "down", "right")
            knobs, _ = await planned(pilot)
        assert (knobs.placement.type_k, knobs.draft_placement.type_k) == ("q8_0", "bf16")

    async def test_a_click_on_an_arrow_turns_and_on_the_value_opens(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.click("#kv", offset=(0, 0))
            await pilot.pause()
            screen = fit_screen(app)
            assert screen.knobs is not None and screen.knobs.placement.type_k == "f32"
            await pilot.click("#kv", offset=(3, 0))
            await pilot.pause()
            assert isinstance(app.screen, ChoiceDialog)
            assert app.screen.query_one(OptionList).highlighted == 0

    async def test_a_click_on_the_line_puts_the_context_there(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.click("#context", offset=(0, 0))
            await pilot.pause()
            knobs = fit_screen(app).knobs
        assert knobs is not None and knobs.placement.n_ctx == 256

    async def test_no_draft_and_back(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.press("down", "left")
            knobs, answer = await planned(pilot)
            assert knobs.draft is None and answer.plan.draft is None
            assert app.screen.query_one("#draft-kv", FitKnob).disabled
            await pilot.press("right")
            knobs, _ = await planned(pilot)
        assert knobs.draft == BENCH.draft

    async def test_a_described_machine_has_an_engine_of_its_own(
        self, app: LocalspecApp, engines: list[MeasuringEngine]
    ) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            screen = fit_screen(app)
            screen.query_one("#machine").focus()
            await pilot.press("right")
            _, answer = await planned(pilot)
            assert answer.plan.devices[0].description == "8 GB card"
            assert len(engines) == 2 and engines[1].registered and not engines[1].is_closed
            await pilot.press("left", "right")
            await planned(pilot)
            assert len(engines) == 2
            await pilot.press("enter", "end", "enter")
            await pilot.pause()
            app.screen.query_one(Input).value = "My [/] card:24GiB"
            await pilot.press("enter")
            await pilot.pause()
            await planned(pilot)
            assert "My [/] card" in screen_text(app)
        assert len(engines) == 3 and all(engine.is_closed for engine in engines[1:])

    async def test_devices_that_make_no_machine_are_refused_in_words(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            knobs, _ = await planned(pilot)
            screen = fit_screen(app)
            screen.knobs = replace(knobs, machine=read_machine("A:16GiB,unified; B:8GiB"))
            await until(pilot, lambda: "stands alone" in screen.snapshot.failure)

    async def test_experts_of_a_mixture(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].target = MIXTURE
            engines[0].reported = (replace(GPU, free_bytes=24 * GIB, total_bytes=24 * GIB),)
            await opened(app, pilot, replace(BENCH, draft=None))
            await planned(pilot)
            app.screen.query_one("#experts").focus()
            await pilot.press("enter")
            knobs, answer = await planned(pilot)
        assert knobs.placement.experts_on_cpu and answer.plan.target.experts_on_cpu
