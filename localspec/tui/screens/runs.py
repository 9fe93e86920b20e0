"""The screen `runs`."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from localspec.tui.screens.base import ModeScreen


class RunsScreen(ModeScreen):
    """Under construction in this commit."""

    MODE = "runs"

    def compose_body(self) -> ComposeResult:
        """Yield the body."""
        yield Static("", classes="empty", markup=False)
