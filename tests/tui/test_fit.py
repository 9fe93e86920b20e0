from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from localspec.engine.values import ContextSettings
from localspec.tui.app import LocalspecApp
from localspec.tui.fit_knobs import read_machine, stepped_context
from localspec.tui.services import AppServices
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.widgets.fit_bars import FitBars
from localspec.tui.widgets.fit_context import ContextScale, FitContext
from localspec.tui.widgets.fit_dialog import ChoiceDialog, EntryDialog
from localspec.tui.widgets.fit_knob import FitKnob
from tests.plan_kit import GIB, MIXTURE
from tests.tui.fit_kit import (
    DRAFT_PATH,
    GPU,
    TARGET_PATH,
    MeasuringEngine,
    fit_screen,
    loaded_for,
    planned,
    screen_text,
    until,
)

pytestmark = pytest.mark.slow

BENCH = Workbench(
    target=ChosenModel("Target 8B", TARGET_PATH),
    draft=ChosenModel("Draft 0.6B", DRAFT_PATH),
    context=ContextSettings(n_ctx=16384),
    draft_context=ContextSettings(n_ctx=16384),
)
HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred\x1b[0m", "\u202eabc שלום", "x" * 10_000)


@pytest.fixture
def engines() -> list[MeasuringEngine]:
    """All that were made, in order."""
    return []


@pytest.fixture
def make(engines: list[MeasuringEngine]) -> Callable[[], MeasuringEngine]:
    def make() -> MeasuringEngine:
        engines.append(MeasuringEngine())
        return engines[-1]

    return make


@pytest.fixture
def app(make: Callable[[], MeasuringEngine], services: AppServices, monkeypatch: pytest.MonkeyPatch) -> LocalspecApp:
    # Begins with the screen under test, and so without what the others do.
    monkeypatch.setattr(LocalspecApp, "DEFAULT_MODE", "fit")
    own = AppServices(
        make_engine=make,
        open_hub=services.open_hub,
        open_database=services.open_database,
    )
    return LocalspecApp(own)


async def opened(app: LocalspecApp, pilot: Pilot[int], bench: Workbench = BENCH) -> None:
    app.workbench = bench
    await pilot.pause()


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
            await until(lambda: bool(screen.snapshot.failure))
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
            await until(lambda: any(request.type == "probe" for request in engines[0].requests))
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
            await until(lambda: screen.snapshot.answer is not None)
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
            await until(lambda: fit_screen(app).snapshot.answer is not before)
            _, after = await planned(pilot)
            assert after.plan.devices[0].free_bytes == 1 * GIB + held


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
            await until(lambda: "stands alone" in screen.snapshot.failure)

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
                await until(lambda: all(words in screen_text(app) for words in ("T target weights", "K target KV")))
                assert app.screen.query_one(FitBars).size.width >= size[0] - 6
                app.screen.query_one("#machine").focus(scroll_visible=True)
                await until(lambda: "this machine" in screen_text(app))

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
