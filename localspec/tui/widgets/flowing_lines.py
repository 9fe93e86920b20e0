"""A widget that lays out its own lines for the width that it has, and is as high as they are many."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from localspec.tui.plain import MUTED


class FlowingLines(Widget):
    """Subclasses return their lines for a width; what changes them is a reactive with `layout=True`."""

    DEFAULT_CSS = """
    FlowingLines { height: auto; width: 1fr; }
    """

    def lines_for(self, width: int) -> list[Content]:
        """Return the lines, each at most `width` cells wide."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines there are at a width."""
        return len(self.lines_for(max(1, width)))

    def render(self) -> Content:
        """Return the lines for the width that the widget has."""
        return Content("\n").join(self.lines_for(max(1, self.content_size.width)))


def wrapped(text: str, width: int, first: str = "", rest: str = "", style: str = "") -> list[Content]:
    """Return a text of one paragraph, broken into lines.

    Args:
        text: safe and in one line.
        width: cells that a line may take, with what stands before it.
        first: stands before the first line; `rest` before the others, equally wide.
        style: of the text.
    """
    room = max(1, width - Content(first).cell_length)
    lines = Content(text).wrap(room) or [Content("")]
    return [
        Content.assemble((rest if place else first, MUTED), (line.plain.rstrip(), style)).truncate(width)
        for place, line in enumerate(lines)
    ]
