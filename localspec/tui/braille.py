"""Lines and marks in character cells. Pure: points and sizes in, rows of text out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Point = tuple[float, float | None]
"""x and y; None for y interrupts the line."""

_EMPTY = 0x2800
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bit of each dot of a braille cell: four rows of two."""

_STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def braille_rows(
    points: Sequence[Point], width: int, height: int, x_range: tuple[float, float], y_max: float
) -> tuple[str, ...]:
    """Return a line through points as `height` rows of `width` braille cells, a blank where there is no dot.

    Args:
        points: in order of x. What is not finite interrupts the line; what lies outside is drawn at the edge.
        x_range: x at the left and at the right edge; of a range without extent all lies at the left.
        y_max: y at the upper edge; the lower one is 0.
    """
    cells = [[_EMPTY] * width for _ in range(height)]
    for column, row in _dots(points, 2 * width, 4 * height, x_range, y_max):
        cells[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
    return tuple("".join(" " if cell == _EMPTY else chr(cell) for cell in row) for row in cells)


def mark_rows(
    points: Sequence[Point], mark: str, width: int, height: int, x_range: tuple[float, float], y_max: float
) -> tuple[str, ...]:
    """Return the same line as rows of a mark that is one cell wide, so that it is told apart without colour."""
    cells = [[" "] * width for _ in range(height)]
    for column, row in _dots(points, width, height, x_range, y_max):
        cells[row][column] = mark
    return tuple(map("".join, cells))


def level_row(value: float, height: int, y_max: float) -> int | None:
    """Return the row of cells that a horizontal line lies in, 0 at the top; None if it is not in the chart."""
    if height < 1 or not math.isfinite(value) or not 0.0 <= value <= y_max or y_max <= 0.0:
        return None
    return _place(1.0 - value / y_max, height)


def axis_top(values: Sequence[float]) -> float:
    """Return a round number at or just above the largest value; 1 if there is none above 0."""
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    if largest <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    if not 0.0 < power < math.inf:
        return largest
    return next((step * power for step in _STEPS if largest <= step * power * (1.0 + 1e-9)), 10.0 * power)


def _dots(
    points: Sequence[Point], width: int, height: int, x_range: tuple[float, float], y_max: float
) -> Iterator[tuple[int, int]]:
    """Yield column and row of every dot of the line."""
    if width < 1 or height < 1:
        return
    left, right = x_range
    extent = right - left
    before: tuple[int, int] | None = None
    for x, y in points:
        if y is None or not math.isfinite(x) or not math.isfinite(y):
            before = None
            continue
        column = _place((x - left) / extent, width) if extent > 0.0 else 0
        dot = column, _place(1.0 - y / y_max, height) if y_max > 0.0 else height - 1
        yield from _between(dot if before is None else before, dot)
        before = dot


def _between(start: tuple[int, int], end: tuple[int, int]) -> Iterator[tuple[int, int]]:
    num_steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
    for step in range(num_steps + 1):
        share = step / num_steps
        yield round(start[0] + share * (end[0] - start[0])), round(start[1] + share * (end[1] - start[1]))


def _place(share: float, size: int) -> int:
    return min(size - 1, max(0, round(min(1.0, max(0.0, share)) * (size - 1))))
