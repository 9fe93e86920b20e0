"""The end of an answer while it is being written."""

from __future__ import annotations

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

_ROOMS = 5
"""Lines are kept free for a fifth of the screen's height: each time that room is made, everything is laid out anew."""


class ChatTail(Widget):
    """Shows a text as plain lines, and draws only those that have changed.

    A model may need every core meanwhile, so that a text that grows all the time must cost next to nothing. Lines
    for what comes next are kept free below it.
    """

    DEFAULT_CSS = """
    ChatTail { height: auto; padding: 0 1 0 2; }
    """

    text: var[str] = var("")
    """Without control characters."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self._lines: list[str] = []
        self._settled = ("", 0)
        self._room = 0
        self._width = 0

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines with those that are kept free."""
        return self._room

    def watch_text(self) -> None:
        """Draw what is new."""
        self._show()

    def on_resize(self, event: Resize) -> None:
        """Break the lines anew."""
        width = event.size.width - self.gutter.width
        if width != self._width:
            self._width = width
            self._settled = ("", 0)
            self._show()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width, style = self._width, self.rich_style
        if y >= len(self._lines):
            return Strip.blank(width, style)
        return Strip([Segment(self._lines[y], style)]).adjust_cell_length(width, style)

    def _show(self) -> None:
        # Not content_size: while something is to be laid out, that would do it, and all of it.
        width = self._width
        if not width:
            # The first lines make room, and with it comes the width.
            self._make_room(1 if self.text else 0)
            return
        before = self._lines
        self._lines = self._wrapped(width)
        if len(self._lines) > self._room or not self._lines:
            self._make_room(len(self._lines))
            return
        for y in range(max(len(before), len(self._lines))):
            if before[y : y + 1] != self._lines[y : y + 1]:
                self.refresh(Region(0, y, width, 1))

    def _make_room(self, num_lines: int) -> None:
        self._room = num_lines + self.screen.size.height // _ROOMS if num_lines else 0
        self.refresh(layout=True)

    def _wrapped(self, width: int) -> list[str]:
        """Return all lines; those of paragraphs that were there before are not broken again."""
        settled, num_lines = self._settled
        if not self.text.startswith(settled):
            settled, num_lines = "", 0
        lines = self._lines[:num_lines]
        *whole, last = self.text[len(settled) :].split("\n")
        for paragraph in whole:
            lines += _broken(paragraph, width)
        self._settled = (self.text[: len(self.text) - len(last)], len(lines))
        return lines + _broken(last, width) if last else lines


def _broken(paragraph: str, width: int) -> list[str]:
    if len(paragraph) <= width and paragraph.isascii() and "\t" not in paragraph:
        return [paragraph]
    return [line.plain for line in Content(paragraph).expand_tabs(4).wrap(width)]
