"""The plan on the Fit screen: when it is made, stopped and made anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localspec.engine.values import ContextSettings
from localspec.tui.app import LocalspecApp
from localspec.tui.state import EngineState
from localspec.tui.widgets.fit_bars import FitBars
from localspec.tui.widgets.fit_context import FitContext
from localspec.tui.widgets.fit_knob import FitKnob
from tests.plan_kit import GIB
from tests.tui.fit_kit import (
    BENCH,
    GPU,
    MeasuringEngine,
    fit_screen,
    loaded_for,
    opened,
    planned,
)
from tests.tui.looking import screen_text
from tests.tui.waiting import until, until_briefly

pytestmark = pytest.mark.slow


class TestThePlan:
    async def test_is_made_when_the_screen_is_shown(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot)
            _, answer = await planned(pilot)
            text = screen_text(app)
        assert answer.plan.sentence.split(":")[0] in text
        assert "Card [/] [bold (CUDA0)" in text
        assert len(engines) == 1 and engines[0].measured

    async def test_nothing_is_measured_on_another_screen(
        self, app: LocalspecApp, engines: list[MeasuringEngine]
    ) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            await pilot.press("f2")
            count = len(engines[0].measured)
            app.workbench = replace(BENCH, context=ContextSettings(n_ctx=2048))
            await pilot.pause(0.2)
            assert len(engines[0].measured) == count
            await pilot.press("f3")
            await pilot.pause()
            knobs, answer = await planned(pilot)
        assert knobs.placement.n_ctx == answer.plan.n_ctx == 2048

    async def test_layers_of_both_models_are_shown_apart(self, app: LocalspecApp) -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await opened(app, pilot, replace(BENCH, context=ContextSettings(n_ctx=16384, n_gpu_layers=20)))
            _, answer = await planned(pilot)
            layers, own = (app.screen.query_one(f"#{name}", FitKnob).value for name in ("layers", "draft-layers"))
            text = screen_text(app)
        assert (layers, own) == ("20/37", "auto 29/29")
        assert layers in text and own in text
        assert answer.plan.draft is not None and answer.plan.draft.n_gpu_layers != answer.plan.target.n_gpu_layers

    async def test_failures_are_said_and_never_escape(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].failure = "No [/path] \x1b[31m model."
            await opened(app, pilot)
            screen = fit_screen(app)
            await until(pilot, lambda: bool(screen.snapshot.failure))
            await pilot.pause()
            text = screen_text(app)
        assert "No [/path] [31m model. Do [/] something." in text
        assert app.return_code in (None, 0)

    async def test_escape_stops_measuring_at_once(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].delay_s = 30.0
            await opened(app, pilot)
            screen = fit_screen(app)
            await until(pilot, lambda: any(request.type == "probe" for request in engines[0].requests))
            assert screen.is_measuring
            await pilot.press("escape")
            await pilot.pause()
            assert not screen.is_measuring
            assert "r measures again" in screen.snapshot.failure
            engines[0].delay_s = 0.0
            await pilot.press("r")
            await planned(pilot)

    async def test_the_old_plan_stays_dimmed_while_typing_goes_on(
        self, app: LocalspecApp, engines: list[MeasuringEngine]
    ) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            _, first = await planned(pilot)
            engines[0].delay_s = 0.05
            await pilot.press("right", "right", "right")
            screen = fit_screen(app)
            assert screen.is_measuring and screen.snapshot.answer is first
            assert screen.knobs is not None and screen.knobs.placement.n_ctx == 16384 + 3 * 1024
            engines[0].delay_s = 0.0
            knobs, answer = await planned(pilot)
        assert answer.knobs == knobs

    async def test_the_verdict_comes_before_the_offers(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].delay_s = 0.01
            await opened(app, pilot)
            screen = fit_screen(app)
            await until_briefly(lambda: screen.snapshot.answer is not None)
            assert screen.snapshot.answer is not None and not screen.snapshot.answer.is_complete
            assert screen.is_measuring and not screen.query_one(FitBars).has_class("-measuring")
            _, answer = await planned(pilot)
            asked = [(request.target, request.draft) for request in engines[0].measured]
        assert answer.is_complete and answer.plan.offers
        assert len(set(asked)) == len(asked)

    async def test_fast_turns_are_one_plan(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            await opened(app, pilot)
            await planned(pilot)
            before = sum(request.type == "probe" for request in engines[0].requests)
            for _ in range(8):
                app.screen.query_one(FitContext).action_step(-1)
            await pilot.pause()
            knobs, _ = await planned(pilot)
            assert knobs.placement.n_ctx == 8192
            assert sum(request.type == "probe" for request in engines[0].requests) - before <= 2

    async def test_loaded_models_count_as_free(self, app: LocalspecApp, engines: list[MeasuringEngine]) -> None:
        async with app.run_test() as pilot:
            app.room.probe  # noqa: B018 (makes the engine)
            engines[0].reported = (replace(GPU, free_bytes=1 * GIB, total_bytes=80 * GIB),)
            await opened(app, pilot)
            _, before = await planned(pilot)
            assert before.plan.devices[0].free_bytes == 1 * GIB
            loaded = loaded_for(before)
            assert loaded.footprint is not None and loaded.footprint.draft is not None
            rows = (*loaded.footprint.target.rows, *loaded.footprint.draft.rows)
            held = sum(row.total_bytes for row in rows if row.device == "CUDA0")
            app.engine_state = EngineState(loaded=loaded)
            await pilot.press("r")
            await until(pilot, lambda: fit_screen(app).snapshot.answer is not before)
            _, after = await planned(pilot)
            assert after.plan.devices[0].free_bytes == 1 * GIB + held
