"""Offers that are taken, and plans that are laid on the workbench."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.values import ContextSettings
from localspec.tui.app import LocalspecApp
from localspec.tui.state import ChosenModel, EngineState
from localspec.tui.widgets.fit_knob import FitKnob
from tests.plan_kit import MIXTURE
from tests.tui.fit_kit import (
    BENCH,
    MeasuringEngine,
    fit_screen,
    loaded_for,
    opened,
    planned,
)
from tests.tui.looking import screen_text

pytestmark = pytest.mark.slow


class TestOffers:
    async def test_a_key_takes_one_and_u_undoes_it(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await opened(app, pilot)
            before, answer = await planned(pilot)
            codes = [offer.code for offer in answer.plan.offers]
            place = codes.index("kv_q8_0")
            await pilot.press(str(place + 1))
            knobs, after = await planned(pilot)
            assert knobs.placement.type_k == "q8_0"
            assert app.screen.query_one("#kv", FitKnob).value == "q8_0"
            assert after.plan.n_ctx >= answer.plan.n_ctx
            await pilot.press("u")
            knobs, _ = await planned(pilot)
            assert knobs == before

    async def test_every_offer_keeps_its_promise(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            _, answer = await planned(pilot)
            assert answer.plan.offers
            for number, offer in enumerate(answer.plan.offers[:4], 1):
                await pilot.press(str(number))
                _, after = await planned(pilot)
                assert after.plan.fits and after.plan.n_ctx >= offer.n_ctx, offer
                await pilot.press("u")
                await planned(pilot)

    async def test_enter_and_the_mouse_take_one(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await opened(app, pilot)
            before, _ = await planned(pilot)
            app.screen.query_one("#fit-offers").focus()
            await pilot.press("enter")
            knobs, _ = await planned(pilot)
            assert knobs != before

    async def test_keys_without_an_offer_do_nothing(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            before, answer = await planned(pilot)
            assert len(answer.plan.offers) < 9
            await pilot.press("9")
            await pilot.pause()
            assert fit_screen(app).knobs == before


class TestTheWorkbench:
    async def test_a_applies_the_plan(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot, replace(BENCH, context=ContextSettings(n_ctx=8192, n_threads=3)))
            await planned(pilot)
            await pilot.press("left", "down", "down", "right", "right")
            knobs, answer = await planned(pilot)
            await pilot.press("a")
            await pilot.pause()
            bench = app.workbench
        assert answer.plan.fits
        assert (bench.context.n_ctx, bench.context.type_k) == (answer.plan.n_ctx, "q8_0")
        assert bench.context.n_threads == 3 and bench.draft == knobs.draft

    async def test_a_plan_without_the_draft_takes_it_off_the_bench(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.press("down", "left")
            await planned(pilot)
            await pilot.press("a")
            await pilot.pause()
            assert app.workbench.draft is None

    async def test_what_does_not_fit_is_not_applied(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].target = replace(MIXTURE, num_blocks=2000)
            await opened(app, pilot)
            _, answer = await planned(pilot)
            assert not answer.plan.fits
            await pilot.press("left")
            await planned(pilot)
            await pilot.press("a")
            await pilot.pause()
            assert app.workbench == BENCH
            assert "too much" in screen_text(app)

    async def test_without_a_target_the_screen_leads_to_the_models(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert "No model is chosen" in screen_text(app)
            await pilot.press("enter")
            await pilot.pause()
            assert app.current_mode == "models"

    async def test_another_target_forgets_the_past(self, app: LocalspecApp) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.press("left")
            other = ChosenModel("Other", Path("/models/other.gguf"))
            app.workbench = replace(BENCH, target=other)
            await pilot.pause()
            knobs, _ = await planned(pilot)
            assert knobs.target == other
            await pilot.press("u")
            await pilot.pause()
            assert fit_screen(app).knobs == knobs

    async def test_what_is_loaded_is_shown_beside_its_plan(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(140, 40)) as pilot:
            await opened(app, pilot)
            _, answer = await planned(pilot)
            assert "Loaded now" not in screen_text(app)
            app.engine_state = EngineState(loaded=loaded_for(answer))
            await pilot.pause()
            text = screen_text(app)
            assert "Loaded now" in text and "really taken" in text
            await pilot.press("home")
            await planned(pilot)
            assert "Loaded now" not in screen_text(app)
