"""A table of figures with a column for each arm; where they do not fit beside each other, one below the other."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive

from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.runs.details import Figures
from localspec.tui.widgets.flowing_lines import FlowingLines

_GAP = 3
_MAX_CELL = 40

_STYLES = {
    "\N{BLACK UP-POINTING TRIANGLE}": "$text-success",
    "\N{BLACK DOWN-POINTING TRIANGLE}": "$text-error",
}


class FigureTable(FlowingLines):
    """Labels at the left, the first column of figures always the same way aligned."""

    figures: reactive[Figures] = reactive(Figures((), ()), layout=True)
    """What is shown. Its texts may come from files."""

    def __init__(self, figures: Figures) -> None:
        """Take the figures."""
        super().__init__()
        self.set_reactive(FigureTable.figures, figures)

    def lines_for(self, width: int) -> list[Content]:
        """Return the lines."""
        return table_lines(self.figures, width)


def table_lines(figures: Figures, width: int) -> list[Content]:
    """Return a table in lines of at most `width` cells; columns that do not fit come below, labels and all."""
    labels = ["", *(one_line(row[0]) for row in figures.rows)]
    columns = [
        [one_line(cell) for cell in (name, *(row[place] for row in figures.rows))]
        for place, name in enumerate(figures.columns, start=1)
    ]
    label_width = min(max(map(_cells, labels)), max(6, width // 2))
    sizes = [min(max(map(_cells, column)), _MAX_CELL, max(1, width - label_width - _GAP)) for column in columns]
    lines: list[Content] = []
    for group in _groups(sizes, width - label_width):
        if lines:
            lines.append(Content(""))
        for row, label in enumerate(labels):
            parts = [_padded(label, label_width, MUTED)]
            for place in group:
                text = columns[place][row]
                style = "bold" if row == 0 else _STYLES.get(text[:1], "")
                parts += [Content(" " * _GAP), _padded(text, sizes[place], style)]
            lines.append(Content("").join(parts).truncate(width))
    return lines


def _groups(sizes: Sequence[int], room: int) -> list[list[int]]:
    """Return which columns stand beside each other."""
    groups: list[list[int]] = []
    left = 0
    for place, size in enumerate(sizes):
        if not groups or size + _GAP > left:
            groups.append([])
            left = room
        groups[-1].append(place)
        left -= size + _GAP
    return groups


def _padded(text: str, width: int, style: str) -> Content:
    shown = Content.styled(text, style).truncate(width, ellipsis=True)
    return shown.pad_right(max(0, width - shown.cell_length))


def _cells(text: str) -> int:
    return Content(text).cell_length
