"""A table of an answer as lines: cells are broken to fit the width; where that has no room, row stands below row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from textual.content import Content

from localspec.tui.plain import MUTED

_BETWEEN = " \N{BOX DRAWINGS LIGHT VERTICAL} "
_LINE = "\N{BOX DRAWINGS LIGHT HORIZONTAL}"
_CROSSING = "\N{BOX DRAWINGS LIGHT VERTICAL AND HORIZONTAL}"
_FAINT = "$foreground 30%"

_LEAST = 8
"""Cells. A column that is broken into narrower pieces cannot be read."""
_WORD = 20
"""No longer word keeps a column from being made narrower."""

Row = tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """What a table holds."""

    headers: Row = ()
    rows: tuple[Row, ...] = ()
    """Each as long as the headers, or shorter."""
    are_right: tuple[bool, ...] = ()
    """Which columns are aligned to the right; those beyond are not."""


def table_lines(table: Table, width: int) -> list[Content]:
    """Return a table in lines of at most `width` cells.

    Args:
        table: what is shown.
        width: cells, at least 1.
    """
    num_columns = len(table.headers)
    if not num_columns:
        return []
    rows = [(*row, *(Content(""),) * (num_columns - len(row)))[:num_columns] for row in table.rows]
    columns = list(zip(table.headers, *rows, strict=True))
    natural = [max(1, *(cell.cell_length for cell in column)) for column in columns]
    least = [min(whole, _WORD, max(map(_longest_word, column))) for whole, column in zip(natural, columns, strict=True)]
    room = width - len(_BETWEEN) * (num_columns - 1)
    sizes = column_widths(natural, least, room)
    is_narrow = any(size < min(whole, _LEAST) for size, whole in zip(sizes, natural, strict=True))
    if is_narrow or sum(sizes) > room:
        return _records(table.headers, rows, width)
    are_right = (*table.are_right, *(False,) * num_columns)[:num_columns]
    blocks = [_row(row, sizes, are_right) for row in rows]
    lines = _row(tuple(header.stylize("bold") for header in table.headers), sizes, are_right)
    lines.append(_rule(sizes, MUTED))
    # Without a rule nobody could tell where a row of several lines ends.
    is_ruled = any(len(block) > 1 for block in blocks)
    for place, block in enumerate(blocks):
        if place and is_ruled:
            lines.append(_rule(sizes, _FAINT))
        lines += block
    return lines


def column_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns, together at most `room` cells, but each at least 1.

    The widest give way first. No column is made narrower than its longest word, as long as that is possible.

    Args:
        natural: cells that each would take unbroken.
        least: cells of its longest word.
        room: cells for all.
    """
    if sum(natural) <= room:
        return list(natural)
    floor = list(least) if sum(least) <= room else [1] * len(natural)
    low, high = 1, max(natural)
    while low < high:
        level = (low + high + 1) // 2
        low, high = (level, high) if sum(_levelled(natural, floor, level)) <= room else (low, level - 1)
    sizes = _levelled(natural, floor, low)
    for place, whole in enumerate(natural):
        if sum(sizes) < room and sizes[place] < whole and sizes[place] == low:
            sizes[place] += 1
    return sizes


def _levelled(natural: Sequence[int], floor: Sequence[int], level: int) -> list[int]:
    return [max(low, min(whole, level)) for whole, low in zip(natural, floor, strict=True)]


def _longest_word(cell: Content) -> int:
    return max((Content(word).cell_length for word in cell.plain.split()), default=1)


def _row(cells: Row, sizes: Sequence[int], are_right: Sequence[bool]) -> list[Content]:
    """Return a row of the table, as many lines as its highest cell has."""
    broken = [cell.wrap(size) if cell else [Content("")] for cell, size in zip(cells, sizes, strict=True)]
    between = Content.styled(_BETWEEN, MUTED)
    return [
        between.join(
            _padded(lines[y] if y < len(lines) else Content(""), size, is_right)
            for lines, size, is_right in zip(broken, sizes, are_right, strict=True)
        )
        for y in range(max(map(len, broken)))
    ]


def _padded(cell: Content, size: int, is_right: bool) -> Content:
    shown = cell.rstrip().truncate(size)
    missing = max(0, size - shown.cell_length)
    return shown.pad_left(missing) if is_right else shown.pad_right(missing)


def _rule(sizes: Sequence[int], style: str) -> Content:
    return Content.styled(f"{_LINE}{_CROSSING}{_LINE}".join(_LINE * size for size in sizes), style)


def _records(headers: Row, rows: Sequence[Row], width: int) -> list[Content]:
    """Return the rows one below the other, each cell behind the name of its column.

    The first row has all names whole; without a row there are only they.
    """
    bold = [header.stylize("bold") for header in headers]
    if not rows:
        return [line for name in bold if name for line in _broken(name, width)]
    margin = min(max(header.cell_length for header in headers), max(1, width // 3))
    lines: list[Content] = []
    for place, row in enumerate(rows):
        if lines:
            lines.append(Content.styled(_LINE * min(width, margin + 2), _FAINT))
        for name, cell in zip(bold, row, strict=True):
            if not (cell or (name and not place)):
                continue
            names = [name.truncate(margin, ellipsis=True)] if place else _broken(name, margin)
            for first, line in zip_longest(names, _broken(cell, max(1, width - margin - 2)), fillvalue=Content("")):
                lines.append((first.pad_right(margin + 2 - first.cell_length) + line).truncate(width))
    return lines


def _broken(cell: Content, width: int) -> list[Content]:
    return [line.rstrip().truncate(width) for line in cell.wrap(width)]
