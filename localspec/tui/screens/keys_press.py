"""Waits for one key."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from localspec.tui.plain import plain_line


class KeyPress(ModalScreen[str | None]):
    """Gives the key that is pressed, by Textual's name; None for Esc."""

    CSS_PATH = "keys_press.tcss"

    def __init__(self, words: str) -> None:
        """Take what the key is to do."""
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """Yield what is asked for."""
        panel = Vertical(id="keys-press", classes="panel")
        panel.border_title = "A key for"
        with panel:
            yield Static(plain_line(self._words), markup=False)
            yield Static("Press it now. Esc leaves it as it is.", classes="muted", markup=False)

    def on_key(self, event: Key) -> None:
        """Take the key, whatever it usually does."""
        event.stop()
        event.prevent_default()
        self.dismiss(None if event.key == "escape" else event.key)
