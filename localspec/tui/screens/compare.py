"""The screen `compare`."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from localspec.tui.screens.base import ModeScreen


class CompareScreen(ModeScreen):
    """Under construction in this commit."""

    MODE = "compare"

    def compose_body(self) -> ComposeResult:
        """Yield the body."""
        yield Static("", classes="empty", markup=False)
