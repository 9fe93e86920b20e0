"""Horizontal bars of shares, with the number beside each."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.reactive import reactive

from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.widgets.flowing_lines import FlowingLines

_EIGHTHS = " ▏▎▍▌▋▊▉"
_MAX_BAR = 40
_MIN_BAR = 12
"""With less room for the bars the remarks are left out."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar."""

    label: str
    share: float
    """From 0 to 1."""
    remark: str = ""
    """Stands after the number."""


class BarRows(FlowingLines):
    """A title and a bar in each line, all on one scale from 0 to 100 %, or to the longest of them."""

    bars: reactive[tuple[Bar, ...]] = reactive(tuple, layout=True)
    """The bars; texts may come from files."""

    def __init__(self, title: str, bars: tuple[Bar, ...], top: float = 1.0, style: str = "$primary") -> None:
        """Take what is shown.

        Args:
            title: of the whole.
            bars: in order.
            top: the share that fills the width.
            style: of the bars.
        """
        super().__init__()
        self._title = title
        self._top = top
        self._style = style
        self.set_reactive(BarRows.bars, bars)

    def lines_for(self, width: int) -> list[Content]:
        """Return the title and the bars."""
        title = Content.styled(one_line(self._title), MUTED).truncate(width, ellipsis=True)
        return [title, *bar_lines(self.bars, width, self._top, self._style)]


def bar_lines(bars: tuple[Bar, ...], width: int, top: float = 1.0, style: str = "") -> list[Content]:
    """Return a line of at most `width` cells for each bar."""
    labels = [Content(one_line(bar.label)) for bar in bars]
    margin = min(max((label.cell_length for label in labels), default=0), max(1, width // 3))
    room = max(1, min(_MAX_BAR, width - margin - 8))
    longest = max((Content(one_line(bar.remark)).cell_length + 2 for bar in bars if bar.remark), default=0)
    has_remarks = width - margin - 8 - longest >= _MIN_BAR
    if has_remarks:
        room = min(room, width - margin - 8 - longest)
    lines = []
    for bar, label in zip(bars, labels, strict=True):
        text = bar_text(bar.share / top if top > 0.0 else 0.0, room)
        shown = label.truncate(margin, ellipsis=True)
        remark = f"  {one_line(bar.remark)}" if bar.remark and has_remarks else ""
        lines.append(
            Content.assemble(
                (" " * (margin - shown.cell_length) + shown.plain, MUTED),
                " ",
                (f"{text:<{room}}", style),
                f" {percent_text(bar.share):>5}",
                (remark, MUTED),
            ).truncate(width)
        )
    return lines


def bar_text(share: float, width: int) -> str:
    """Return a bar for a share of the width, fine to an eighth of a cell; anything above 0 is visible."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    if share > 0.0:
        eighths = max(1, eighths)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
