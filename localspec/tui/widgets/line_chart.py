"""A small chart of lines over a common axis that begins at 0."""

from __future__ import annotations

import math
from dataclasses import dataclass

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.plain_text import one_line
from localspec.tui.braille import Point, axis_top, braille_rows, level_row, mark_rows
from localspec.tui.plain import MUTED

_DASH = "\N{BOX DRAWINGS LIGHT DOUBLE DASH HORIZONTAL}"
_LINE = "\N{BRAILLE PATTERN DOTS-25}\N{BRAILLE PATTERN DOTS-25}"
"""How a line without a mark is shown beside its name."""

Cell = tuple[str, str]
"""A character and its style."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart."""

    name: str
    """For the legend; may come from a file."""
    points: tuple[Point, ...]
    """x and y, in order of x; None for y interrupts the line."""
    style: str = "$primary"
    """A Textual style, such as a theme variable."""
    mark: str = ""
    """One character that the line is made of, so that it is told apart without colour; empty for a fine line."""


class LineChart(Widget):
    """Lines over x, from y = 0 up; a later line lies over an earlier one, and all lie over the baseline."""

    DEFAULT_CSS = """
    LineChart { height: 8; min-height: 3; width: 1fr; }
    """

    series: reactive[tuple[Series, ...]] = reactive(tuple)
    """The lines."""
    baseline: reactive[float | None] = reactive(None)
    """Height of a dashed horizontal line; None for none."""
    baseline_label: reactive[str] = reactive("baseline")
    """Its name in the legend."""
    y_label: reactive[str] = reactive("")
    """What is drawn, with its unit; first in the legend."""
    x_label: reactive[str] = reactive("")
    """Unit of x, after its last value."""
    x_range: reactive[tuple[float, float] | None] = reactive(None)
    """x at the left and the right edge; None for the extent of the lines."""
    has_legend: reactive[bool] = reactive(True)
    """Whether the first row names the lines."""
    has_x_axis: reactive[bool] = reactive(True)
    """Whether the last row tells the extent of x."""

    def render(self) -> Content:
        """Return the chart in the size that the widget has."""
        return Content("\n").join(self.chart_lines(self.content_size.width, self.content_size.height))

    def chart_lines(self, width: int, height: int) -> list[Content]:
        """Return `height` lines of at most `width` cells."""
        if width < 8 or height < 1:
            return []
        has_legend = self.has_legend and height > 2
        has_x_axis = self.has_x_axis and height > 3
        lines = [self._legend(width)] if has_legend else []
        lines += self._plot(width, height - has_legend - has_x_axis, has_x_axis)
        return lines

    def _legend(self, width: int) -> Content:
        parts: list[Content | str | Cell] = []
        if self.y_label:
            parts += [(one_line(self.y_label), MUTED)]
        for line in self.series:
            parts += ["  " if parts else "", (line.mark * 2 or _LINE, line.style), f" {one_line(line.name)}"]
        if self.baseline is not None:
            parts += ["  " if parts else "", (_DASH * 2, MUTED), f" {one_line(self.baseline_label)}"]
        return Content.assemble(*parts).truncate(width, ellipsis=True)

    def _plot(self, width: int, height: int, has_x_axis: bool) -> list[Content]:
        known = [(x, y) for line in self.series for x, y in line.points if y is not None and math.isfinite(x + y)]
        top = axis_top([y for _, y in known] + ([] if self.baseline is None else [self.baseline]))
        x_range = self.x_range
        if x_range is None:
            x_range = (min(x for x, _ in known), max(x for x, _ in known)) if known else (0.0, 0.0)
        labels = _y_labels(top, height)
        margin = max(map(len, labels))
        plot_width = width - margin - 1
        lines = []
        for label, row in zip(labels, self._cells(plot_width, height, x_range, top), strict=True):
            axis = "\N{BOX DRAWINGS LIGHT VERTICAL AND LEFT}" if label.strip() else "\N{BOX DRAWINGS LIGHT VERTICAL}"
            lines.append(Content.assemble((f"{label:>{margin}}{axis}", MUTED), *row))
        if has_x_axis:
            lines.append(_x_axis(x_range if known else None, self.x_label, margin + 1, plot_width))
        return lines

    def _cells(self, width: int, height: int, x_range: tuple[float, float], top: float) -> list[list[Cell]]:
        """Return the rows of the plot, from the baseline up to the last line."""
        rows: list[list[Cell]] = [[(" ", "")] * width for _ in range(height)]
        level = None if self.baseline is None else level_row(self.baseline, height, top)
        if level is not None:
            rows[level] = [(_DASH, MUTED)] * width
        for line in self.series:
            drawn = (
                mark_rows(line.points, line.mark[0], width, height, x_range, top)
                if line.mark
                else braille_rows(line.points, width, height, x_range, top)
            )
            for row, text in zip(rows, drawn, strict=True):
                for column, character in enumerate(text):
                    if character != " ":
                        row[column] = character, line.style
        return [_merged(row) for row in rows]


def axis_number(value: float) -> str:
    """Return a number on an axis: short, and with no more digits than it needs."""
    if abs(value) >= 10000.0:
        return f"{value:.2g}"
    return f"{value:.0f}" if abs(value) >= 100.0 or value == int(value) else f"{value:.3g}"


def _merged(row: list[Cell]) -> list[Cell]:
    """Join neighbours of one style, since each piece costs when it is drawn."""
    merged: list[Cell] = []
    for character, style in row:
        if merged and merged[-1][1] == style:
            merged[-1] = merged[-1][0] + character, style
        else:
            merged.append((character, style))
    return merged


def _y_labels(top: float, height: int) -> list[str]:
    labels = [""] * height
    if height > 4 and height % 2:
        labels[height // 2] = axis_number(top / 2.0)
    labels[-1] = "0"
    labels[0] = axis_number(top)
    return labels


def _x_axis(x_range: tuple[float, float] | None, unit: str, margin: int, width: int) -> Content:
    if x_range is None:
        return Content("")
    left, right = axis_number(x_range[0]), f"{axis_number(x_range[1])} {one_line(unit)}".rstrip()
    line = f"{left}{right:>{max(1, width - len(left))}}" if len(left) + len(right) < width else right[:width]
    return Content.styled(" " * margin + line, MUTED)
