"""A table of figures with a column for each arm; where they do not fit beside each other, one below the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.reactive import reactive

from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.runs.details import Figures
from localspec.tui.widgets.flowing_lines import FlowingLines

_GAP, _NARROW_GAP = 3, 2
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
    """Return a table in lines of at most `width` cells.

    Where not all columns fit beside each other, intervals go below their figures; what does not fit even then comes
    below, labels and all.
    """
    whole = _Grid.of(figures, width, _GAP, _whole)
    grid = whole if len(whole.groups) <= 1 else _Grid.of(figures, width, _NARROW_GAP, _broken)
    lines: list[Content] = []
    for group in grid.groups:
        if lines:
            lines.append(Content(""))
        for row, label in enumerate(grid.labels):
            cells = [grid.columns[place][row] for place in group]
            for y in range(max(map(len, cells), default=1)):
                parts = [_padded("" if y else label, grid.label_width, MUTED)]
                for place, cell in zip(group, cells, strict=True):
                    text = cell[y] if y < len(cell) else ""
                    style = "bold" if row == 0 else MUTED if y else _STYLES.get(text[:1], "")
                    parts += [Content(" " * grid.gap), _padded(text, grid.sizes[place], style)]
                lines.append(Content("").join(parts).truncate(width))
    return lines


@dataclass(frozen=True, slots=True)
class _Grid:
    """Cells with the room that they get."""

    labels: tuple[str, ...]
    """The head's is empty."""
    columns: tuple[tuple[tuple[str, ...], ...], ...]
    """Each from its head down; a cell is a line or more."""
    gap: int
    label_width: int
    sizes: tuple[int, ...]
    groups: list[list[int]]
    """Which columns stand beside each other."""

    @classmethod
    def of(cls, figures: Figures, width: int, gap: int, lines_of: Callable[[str], tuple[str, ...]]) -> _Grid:
        """Lay out a table.

        Args:
            figures: what it holds.
            width: cells in all.
            gap: cells between columns.
            lines_of: breaks a cell.
        """
        labels = ("", *(one_line(row[0]) for row in figures.rows))
        columns = tuple(
            tuple(lines_of(one_line(cell)) for cell in (name, *(row[place] for row in figures.rows)))
            for place, name in enumerate(figures.columns, start=1)
        )
        label_width = min(max(map(_cells, labels)), max(6, width // 2))
        widest = (max(_cells(line) for cell in column for line in cell) for column in columns)
        sizes = tuple(min(most, _MAX_CELL, max(1, width - label_width - gap)) for most in widest)
        return cls(labels, columns, gap, label_width, sizes, _groups(sizes, width - label_width, gap))


def _whole(cell: str) -> tuple[str, ...]:
    return (cell,)


def _broken(cell: str) -> tuple[str, ...]:
    """Return `2.10x (1.58 to 2.46)` in two lines."""
    figure, _, rest = cell.partition(" (")
    if not (figure and rest.endswith(")")):
        return (cell,)
    return figure, rest[:-1] if " to " in rest else f"({rest}"


def _groups(sizes: Sequence[int], room: int, gap: int) -> list[list[int]]:
    """Return which columns stand beside each other."""
    groups: list[list[int]] = []
    left = 0
    for place, size in enumerate(sizes):
        if not groups or size + gap > left:
            groups.append([])
            left = room
        groups[-1].append(place)
        left -= size + gap
    return groups


def _padded(text: str, width: int, style: str) -> Content:
    shown = Content.styled(text, style).truncate(width, ellipsis=True)
    return shown.pad_right(max(0, width - shown.cell_length))


def _cells(text: str) -> int:
    return Content(text).cell_length
