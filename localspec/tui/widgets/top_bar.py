"""The bar of screens: which there are, which one this is, the key of each, and whether speculation is on."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.events import Click, Resize
from textual.widgets import Static

from localspec.session.plain_text import one_line
from localspec.tui.key_names import key_text
from localspec.tui.state import EngineState
from localspec.tui.widgets.speculation_badge import SpeculationBadge

NAMES = (
    ("models", "Models", "f2"),
    ("fit", "Fit", "f3"),
    ("chat", "Chat", "f4"),
    ("compare", "Compare", "f5"),
    ("runs", "Runs", "f6"),
)

_BRAND_COLUMNS = 80
"""With fewer, the screens and the state of speculation need the room."""


class ScreenTab(Static):
    """One name in the bar; a click goes there."""

    def __init__(self, mode: str, name: str, key: str, is_current: bool) -> None:
        """Take a mode's name and key."""
        super().__init__(classes="-current" if is_current else "")
        self.mode, self._name_shown, self._usual_key = mode, name, key
        self.show_key({})

    def show_key(self, keys: Mapping[str, str]) -> None:
        """Show the key in force.

        Args:
            keys: those that are not the usual ones, by the names of what they do.
        """
        key = key_text(keys, f"mode.{self.mode}", self._usual_key)
        key = key.upper() if key[:1] == "f" and key[1:].isdigit() else key
        self.update(Content.assemble((key, "dim"), " ", one_line(self._name_shown)))

    async def on_click(self, event: Click) -> None:
        """Go to the screen."""
        event.stop()
        self.app.switch_mode(self.mode)


class TopBar(Horizontal):
    """Always one line."""

    DEFAULT_CSS = """
    TopBar {
        height: 1;
        background: $surface;
        & > .brand { width: auto; padding: 0 1; text-style: bold; color: $primary; }
        & > ScreenTab { width: auto; padding: 0 1; color: $text-muted; }
        & > ScreenTab.-current { background: $primary; color: $background; text-style: bold; }
        & > ScreenTab:hover { text-style: underline; }
        &.-tight > .brand { display: none; }
        &.-tight > ScreenTab { padding: 0 1 0 0; }
        &.-tight > ScreenTab.-current { padding: 0; margin: 0 1 0 0; }
    }
    """

    def __init__(self, mode: str) -> None:
        """Take the mode of the screen that the bar belongs to."""
        super().__init__()
        self._mode = mode

    def compose(self) -> ComposeResult:
        """Yield the names."""
        yield Static("localspec", classes="brand", markup=False)
        for mode, name, key in NAMES:
            yield ScreenTab(mode, name, key, mode == self._mode)
        yield SpeculationBadge()

    def on_mount(self) -> None:
        """Follow the engine and the keys."""
        self.watch(self.app, "engine_state", self._follow_engine_state)
        self.watch(self.app, "key_map", self._follow_keys)

    def on_resize(self, event: Resize) -> None:
        """Leave out what matters least."""
        self.set_class(event.size.width < _BRAND_COLUMNS, "-tight")

    def _follow_keys(self, keys: Mapping[str, str]) -> None:
        for tab in self.query(ScreenTab):
            tab.show_key(keys)

    def _follow_engine_state(self, state: EngineState) -> None:
        self.query_one(SpeculationBadge).engine_state = state
