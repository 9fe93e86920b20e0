"""The end of an answer while it is being written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

_ROOMS = 5
"""Lines are kept free for a fifth of the screen's height: each time that room is made, everything is laid out anew."""

_FAST_ROOMS = 2
"""For half of it where the lines of the next second fill that."""

_SHORT_S = 0.1
"""A shorter time says nothing of how fast lines come."""


class ChatTail(Widget):
    """Shows a text as plain lines, and draws only those that have changed.

    A model may need every core meanwhile, so that a text that grows all the time must cost next to nothing. Lines
    for what comes next are kept free below it; where there are none, the first ones make way until there is time to lay
    everything out anew.
    """

    DEFAULT_CSS = """
    ChatTail { height: auto; padding: 0 1 0 2; }
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing.

        Args:
            clock: seconds.
        """
        super().__init__()
        self._clock = clock
        self.text = ""
        """Without control characters."""
        self._lines: list[str] = []
        self._settled = ("", 0)
        self._room = 0
        self._width = 0
        self._had_room = (clock(), 0)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines with those that are kept free."""
        return self._room

    def grow(self, text: str, has_time: bool = True) -> bool:
        """Show what a text is now, and return whether everything is laid out anew for it.

        Args:
            text: without control characters; it has grown at its end, or is another one.
            has_time: whether room may be made for its lines.
        """
        # Another one follows what has become Markdown, for which everything is laid out in any case.
        is_other = not text.startswith(self.text)
        self.text = text
        return self._show(has_time, is_other)

    def end(self) -> None:
        """Show nothing any more, and keep nothing free."""
        self.text, self._lines, self._settled = "", [], ("", 0)
        if self._room:
            self._room = 0
            self.refresh(layout=True)

    def is_full_with(self, text: str) -> bool:
        """Say whether room is needed for a text that begins as this one does; a little too early, if in doubt."""
        added = text[len(self.text) :]
        num_lines = len(self._lines) + added.count("\n") + len(added) // max(1, self._width)
        return num_lines + 1 > self._room and bool(text)

    def on_resize(self, event: Resize) -> None:
        """Break the lines anew."""
        width = event.size.width - self.gutter.width
        if width != self._width:
            self._width = width
            self._settled = ("", 0)
            self._show(has_time=True)

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width, style = self._width, self.rich_style
        y += max(0, len(self._lines) - self._room)
        if y >= len(self._lines):
            return Strip.blank(width, style)
        return Strip([Segment(self._lines[y], style)]).adjust_cell_length(width, style)

    def _show(self, has_time: bool, is_other: bool = False) -> bool:
        # Not content_size: while something is to be laid out, that would do it, and all of it.
        width = self._width
        if not width:
            # The first lines make room, and with it comes the width.
            return bool(self.text) and self._make_room(1)
        before = self._shown
        self._lines = self._wrapped(width)
        if is_other or (has_time and len(self._lines) > self._room):
            return self._make_room(len(self._lines))
        shown = self._shown
        for y in range(max(len(before), len(shown))):
            if before[y : y + 1] != shown[y : y + 1]:
                self.refresh(Region(0, y, width, 1))
        return False

    @property
    def _shown(self) -> list[str]:
        return self._lines[max(0, len(self._lines) - self._room) :]

    def _make_room(self, num_lines: int) -> Literal[True]:
        now_s, height = self._clock(), self.screen.size.height
        (before_s, num_before), self._had_room = self._had_room, (now_s, num_lines)
        per_s = (num_lines - num_before) / max(now_s - before_s, _SHORT_S)
        self._room = num_lines + max(height // _ROOMS, min(height // _FAST_ROOMS, round(per_s)))
        self.refresh(layout=True)
        return True

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
