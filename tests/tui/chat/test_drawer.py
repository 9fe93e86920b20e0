"""The chat's settings, and what becomes of the models and the figures with others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import Input, Select, Static

from localspec.engine.requests import Configure, LoadModels
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.screens.chat_settings import ChatSettings
from localspec.tui.widgets.key_line import KeyLine
from tests.scripted_engine import EchoEngine
from tests.tui.chat_kit import (
    ask,
    figures,
    opened,
    screen_of,
)
from tests.tui.looking import notices
from tests.tui.waiting import until

pytestmark = pytest.mark.slow


async def test_other_settings_count_without_loading_again(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert isinstance(app.screen, ChatSettings)
        app.screen.query_one("#n_min", Input).value = "9"
        await pilot.press("ctrl+s")
        assert "n_min 9 is over n_max 3" in str(app.screen.query_one("#refusal", Static).content)
        app.screen.query_one("#n_min", Input).value = "0"
        app.screen.query_one("#n_max", Input).value = "5"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.workbench.speculation.n_max == 5
        await ask(pilot, app, "two")
        assert app.engine_state.speculation is not None
        assert app.engine_state.speculation.settings.n_max == 5
    assert sum(isinstance(request, LoadModels) for request in engine.requests) == 1
    assert sum(isinstance(request, Configure) for request in engine.requests) == 1


async def test_escape_closes_an_open_list_and_keeps_the_drawer(app: LocalspecApp) -> None:
    async with opened(app, (80, 24)) as pilot:
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_max", Input).value = "7"
        app.screen.query_one("#method", Select).focus()
        await pilot.press("enter")
        assert app.screen.query_one("#method", Select).expanded
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatSettings) and not app.screen.query_one("#method", Select).expanded
        assert app.screen.query_one("#n_max", Input).value == "7"
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, ChatScreen)


async def test_the_footer_offers_to_stop_only_what_goes_on(app: LocalspecApp) -> None:
    async with opened(app, (80, 24)) as pilot:
        shown = [key.words for key in app.screen.query_one(KeyLine).keys]
        assert shown[:4] == ["Settings", "X-ray", "Panel", "Baseline"]
        await ask(pilot, app, "one")
        await pilot.press("ctrl+e")
        await pilot.pause()
        assert app.screen.query_one(KeyLine).keys[0].words == "Stop"


async def test_another_context_loads_again(app: LocalspecApp, engine: EchoEngine) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_ctx", Input).value = "2048"
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert "loaded anew" in notices(app)
        await ask(pilot, app, "two")
    loads = [request for request in engine.requests if isinstance(request, LoadModels)]
    assert [load.context.n_ctx for load in loads] == [4096, 2048]


async def test_a_drafter_that_is_refused_is_said_and_off(app: LocalspecApp) -> None:
    app.workbench = replace(app.workbench, draft=None)
    async with opened(app) as pilot:
        await ask(pilot, app, "one")
        assert "Speculation is OFF: there is no draft model" in notices(app)
        assert app.engine_state.speculation is not None and not app.engine_state.speculation.is_on
        assert "acceptance" not in figures(app)


async def test_no_multiple_without_a_measured_baseline(app: LocalspecApp) -> None:
    async with opened(app) as pilot:
        await ask(pilot, app, "one two three four five six seven eight nine ten")
        assert "x," not in figures(app) and "saved" not in figures(app)
        await pilot.press("ctrl+b")
        await until(pilot, lambda: not screen_of(app).is_working and screen_of(app).baseline is not None)
        await pilot.pause()
        assert "saved" in figures(app)
        assert "x," in figures(app)
        assert app.engine_state.speculation is not None and app.engine_state.speculation.is_on
        await pilot.press("ctrl+s")
        await pilot.pause()
        app.screen.query_one("#n_max", Input).value = "2"
        await pilot.press("ctrl+s")
        await ask(pilot, app, "with other settings nothing is measured yet")
        assert "saved" not in figures(app)
