"""The line of keys: what can be pressed now, in one widget."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, Static

from localspec.tui.widgets.key_line import KeyLine, ShownKey, placed_keys

HOSTILE = "[/] [bold \x1b[31m\u202e"


class KeyedApp(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r,ctrl+r", "count", "Run", tooltip="Runs"),
        Binding("s", "off", "Stop", tooltip="Stops"),
        Binding("x", "gone", "Gone"),
        Binding("h", "count", "Hidden", show=False),
        Binding("e", "edge", HOSTILE, tooltip=HOSTILE),
    ]
    num_runs = 0
    is_on = False

    def compose(self) -> ComposeResult:
        yield Static("body")
        yield Input()
        yield KeyLine()

    def action_count(self) -> None:
        self.num_runs += 1

    def action_edge(self) -> None:
        """Does nothing."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "off":
            return True if self.is_on else None
        return action != "gone"

    @property
    def line(self) -> KeyLine:
        return self.query_one(KeyLine)

    def words(self) -> str:
        return self.line.render_line(0).text


def shown(words: str) -> ShownKey:
    return ShownKey(words[0], words[0], words)


def test_keys_stand_apart_and_the_last_one_at_the_end() -> None:
    placed = placed_keys([shown("aa"), shown("bb"), shown("cc")], shown("zz"), 30)
    assert [(one.start, one.shown.words) for one in placed] == [(0, "aa"), (6, "bb"), (12, "cc"), (26, "zz")]


@pytest.mark.parametrize("width", range(0, 40))
def test_only_whole_keys_are_shown(width: int) -> None:
    placed = placed_keys([shown("first"), shown("second"), shown("third")], shown("last"), width)
    assert placed[-1].shown.words == "last"
    for before, after in pairwise(placed):
        assert before.end + 2 <= after.start
    if width >= placed[-1].shown.width:
        assert placed[-1].end == width


async def test_what_can_be_done_is_shown_and_what_cannot_is_dimmed_or_missing() -> None:
    app = KeyedApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.query_one(Input).focus()
        await pilot.pause()
        # Letters are typed there.
        assert app.words().startswith("^r Run") and "Stop" not in app.words()
        app.set_focus(None)
        await pilot.pause()
        assert "r Run" in app.words() and "s Stop" in app.words()
        assert "Gone" not in app.words() and "Hidden" not in app.words()
        assert "\x1b" not in app.words() and "[/] [bold [31m" in app.words()
        enabled = {key.words: key.is_enabled for key in app.line.keys}
        assert (enabled["Run"], enabled["Stop"]) == (True, False)
        app.is_on = True
        app.refresh_bindings()
        await pilot.pause()
        assert {key.words: key.is_enabled for key in app.line.keys}["Stop"]


async def test_a_click_presses_the_key_under_the_pointer() -> None:
    app = KeyedApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.set_focus(None)
        await pilot.pause()
        column = app.words().index("Run")
        await pilot.click(KeyLine, offset=(column + 1, 0))
        await pilot.pause()
        assert app.num_runs == 1
        await pilot.click(KeyLine, offset=(app.words().index("Stop") + 1, 0))
        await pilot.click(KeyLine, offset=(70, 0))
        assert app.num_runs == 1


async def test_the_pointer_tells_what_a_key_does() -> None:
    app = KeyedApp()
    async with app.run_test(size=(80, 10)) as pilot:
        app.set_focus(None)
        await pilot.pause()
        await pilot.hover(KeyLine, offset=(app.words().index("Run") + 1, 0))
        assert (app.line.hovered, app.line.tooltip) == ("r", "Runs")
        await pilot.hover(KeyLine, offset=(app.words().index("[/]") + 1, 0))
        assert app.line.tooltip == "[/] [bold [31m"
        await pilot.hover(Static)
        assert app.line.hovered == ""


async def test_on_a_narrow_screen_the_palette_stays() -> None:
    app = KeyedApp()
    async with app.run_test(size=(24, 10)) as pilot:
        await pilot.pause()
        assert app.words().rstrip().endswith("palette")
        assert len(app.words()) == app.line.content_size.width
