"""Every token of an answer, marked by origin; one round at a time is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from localspec.engine.events import RoundFinished
from localspec.tui.token_marks import Line, first_line_of, token_lines


class ChatTokens(ScrollView, can_focus=True):
    """Draws line by line, so that its cost does not grow with the answer."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "tokens--draft",
        "tokens--suffix",
        "tokens--n-gram",
        "tokens--correction",
        "tokens--bonus",
        "tokens--plain",
        "tokens--chosen",
    }
    DEFAULT_CSS = """
    ChatTokens {
        height: 1fr; padding: 0 1; background: $background;
        & > .tokens--draft { color: $text-success; text-style: underline; }
        & > .tokens--suffix { color: $text-accent; text-style: italic; }
        & > .tokens--n-gram { color: $text-primary; text-style: underline italic; }
        & > .tokens--correction { color: $text-error; text-style: bold; }
        & > .tokens--bonus { text-style: dim; }
        & > .tokens--plain { text-style: none; }
        & > .tokens--chosen { text-style: reverse; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", "Round before", id="xray.previous", tooltip="The round before"),
        Binding("right", "step(1)", "Next round", id="xray.next", tooltip="The next round"),
        Binding("home", "step(-1000000)", "First", id="xray.first", tooltip="The first round", show=False),
        Binding("end", "step(1000000)", "Last", id="xray.last", tooltip="The last round", show=False),
    ]

    chosen: reactive[int] = reactive(0)
    """Index of the chosen round."""

    class Chosen(Message):
        """Another round is chosen."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, rounds: Sequence[RoundFinished]) -> None:
        """Take the rounds of one answer."""
        super().__init__()
        self._rounds = tuple(rounds)
        self._lines: tuple[Line, ...] = ()

    def on_resize(self, event: Resize) -> None:
        """Break the lines anew."""
        width = max(2, self.scrollable_content_region.width)
        self._lines = token_lines(self._rounds, width)
        self.virtual_size = Size(width, len(self._lines))
        self.refresh()

    def validate_chosen(self, index: int) -> int:
        """Keep to the rounds that there are."""
        return max(0, min(index, len(self._rounds) - 1))

    def watch_chosen(self, index: int) -> None:
        """Show the round, and tell of it."""
        self.refresh()
        self.scroll_to_region(Region(0, first_line_of(self._lines, index), 1, 2), animate=False)
        self.post_message(self.Chosen(index))

    def action_step(self, count: int) -> None:
        """Choose another round."""
        self.chosen += count

    def on_click(self, event: Click) -> None:
        """Choose the round under the pointer."""
        x, y = event.x - self.styles.padding.left, event.y + self.scroll_offset.y
        if not 0 <= y < len(self._lines):
            return
        for piece in self._lines[y]:
            x -= Segment(piece.text).cell_length
            if x < 0:
                self.chosen = piece.round_index
                return

    def render_line(self, y: int) -> Strip:
        """Return one line of what is visible."""
        number = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        background = self.rich_style
        if not 0 <= number < len(self._lines):
            return Strip.blank(width, background)
        segments = []
        for piece in self._lines[number]:
            style = background + self.get_component_rich_style(f"tokens--{piece.mark}", partial=True)
            if piece.round_index == self.chosen:
                style += self.get_component_rich_style("tokens--chosen", partial=True)
            segments.append(Segment(piece.text, style))
        return Strip(segments).adjust_cell_length(width, background)
