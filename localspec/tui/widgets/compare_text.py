"""The end of a text that grows."""

from __future__ import annotations

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region
from textual.reactive import var
from textual.strip import Strip
from textual.widget import Widget

from localspec.tui.plain import plain

_STEP = 1024
"""Characters by which the beginning of what is wrapped moves on, so that lines do not break anew with each of them."""


class CompareText(Widget):
    """Shows as many of the last lines as there is room for, and draws only those that have changed.

    The models may need every core meanwhile, so that a text that grows all the time must cost next to nothing.
    """

    DEFAULT_CSS = """
    CompareText { height: 1fr; }
    """

    text: var[str] = var("")
    """Foreign, as it came."""

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        self._lines: tuple[str, ...] = ()

    def watch_text(self) -> None:
        """Draw what is new."""
        self._wrap()

    def on_resize(self, event: Resize) -> None:
        """Wrap to the new width."""
        self._wrap()

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width = self.content_size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        return Strip([Segment(self._lines[y], self.rich_style)]).adjust_cell_length(width, self.rich_style)

    def _wrap(self) -> None:
        width, height = self.content_size
        if not (width and height):
            return
        before, self._lines = self._lines, last_lines(self.text, width, height)
        for y in range(max(len(before), len(self._lines))):
            if before[y : y + 1] != self._lines[y : y + 1]:
                self.refresh(Region(0, y, width, 1))


def last_lines(text: str, width: int, height: int) -> tuple[str, ...]:
    """Return a text's last lines, wrapped to a width in cells and without what is no text."""
    start = max(0, len(text) - width * height) // _STEP * _STEP
    lines = [
        line for part in plain(text[start:]).split("\n", allow_blank=True)[-height:] for line in _wrapped(part, width)
    ]
    return tuple(lines[-height:])


def _wrapped(line: Content, width: int) -> list[str]:
    return [part.plain for part in line.expand_tabs(4).wrap(width)] if line.plain else [""]
