"""The comparisons of this session, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from localspec.session.plain_text import one_line
from localspec.tui.result_card import ResultCard


class CompareHistory(OptionList):
    """A few words of each, broken where they are too long for a line."""

    DEFAULT_CSS = """
    CompareHistory { background: transparent; }
    """

    def on_mount(self) -> None:
        """Give it its frame."""
        self.add_class("panel")
        self.border_title = "Here so far"

    def show(self, cards: Sequence[ResultCard]) -> None:
        """List cards in their order, and mark the first."""
        self.clear_options()
        self.add_options([Option(Content(one_line(card.summary))) for card in cards])
        if cards:
            self.highlighted = 0
