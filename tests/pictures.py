"""Screens of the terminal app as SVG: small, the same on every machine, and without fonts from the network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color, blend_rgb
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME as THEME
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

CELL_WIDTH, CELL_HEIGHT, BASELINE = 9.63, 19, 15
"""Pixels, for letters of 16: lines of the usual fonts then meet."""
MARGIN, HEAD = 8, 34

_FONTS = "ui-monospace,'Cascadia Mono','SF Mono',Menlo,'DejaVu Sans Mono',Consolas,monospace"
_BRAILLE = "\u2800", "\u28ff"
_DIM = 0.4
_QUIET_TURNS = 3
_TURN_S = 0.03


async def still(pilot: Pilot[Any], is_so: Callable[[], bool] = lambda: True) -> None:
    """Wait until something is so and the screen has stopped changing, with its cursors shown.

    Raises:
        TimeoutError: it did not come to that in half a minute.
    """
    quiet, before = 0, ""
    async with asyncio.timeout(30):
        while quiet < _QUIET_TURNS:
            await pilot.pause(_TURN_S)
            for widget in pilot.app.screen.query("Input, TextArea"):
                if isinstance(widget, Input | TextArea):
                    widget.cursor_blink = False
            now = svg_of(pilot.app) if is_so() else ""
            quiet = quiet + 1 if now and now == before else 0
            before = now


def svg_of(app: App[Any], title: str = "") -> str:
    """Return what is on the screen as an SVG, in a window with a title if there is one.

    Wide characters take two cells, and what a terminal would cut off at the right is not there.
    """
    width, height = app.size
    top = HEAD if title else MARGIN
    classes: dict[str, str] = {}
    rows = []
    for y, strip in enumerate(app.screen._compositor.render_strips()):
        pieces = list(_pieces(strip))
        backs = "".join(
            f'<rect x="{_x(x)}" y="{y * CELL_HEIGHT}" width="{_x(cells)}" height="{CELL_HEIGHT}" fill="{back}"/>'
            for x, cells, back in _backs(pieces)
        )
        texts = "".join(_text(x, y, text, style, classes) for x, text, style, _ in pieces)
        rows.append(backs + texts)
    size = f"{width * CELL_WIDTH + 2 * MARGIN:g} {height * CELL_HEIGHT + top + MARGIN}"
    rules = "".join(f".{name}{{{rule}}}" for rule, name in classes.items())
    back = THEME.background_color.hex if title else "none"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}">',
            f"<style>text{{font:16px {_FONTS};white-space:pre}}rect{{shape-rendering:crispEdges}}{rules}</style>",
            f'<rect width="100%" height="100%" rx="8" style="shape-rendering:auto" fill="{back}"/>{_head(title)}',
            f'<g transform="translate({MARGIN} {top})">',
            *rows,
            "</g></svg>\n",
        )
    )


_Piece = tuple[int, str, Style, str]
"""Column, text, style and background."""


def _pieces(segments: Iterable[Segment]) -> Iterator[_Piece]:
    x = 0
    for style, run in groupby(segments, key=lambda segment: segment.style or Style()):
        text = "".join(segment.text for segment in run)
        yield x, text, style, _colours(style)[1]
        x += cell_len(text)


def _backs(pieces: list[_Piece]) -> Iterator[tuple[int, int, str]]:
    for back, run in groupby(pieces, key=lambda piece: piece[3]):
        run_pieces = list(run)
        yield run_pieces[0][0], sum(cell_len(text) for _, text, _, _ in run_pieces), back


def _text(x: int, y: int, text: str, style: Style, classes: dict[str, str]) -> str:
    bare = text.strip(" ")
    if not bare:
        return ""
    x += len(text) - len(text.lstrip(" "))
    rule = _rule(style)
    name = classes.setdefault(rule, f"s{len(classes)}")
    words = escape(bare.replace(" ", "\N{NO-BREAK SPACE}"))
    place = f'x="{_x(x)}" textLength="{_x(cell_len(bare))}"'
    if any(_BRAILLE[0] <= letter <= _BRAILLE[1] for letter in bare):
        # Few fonts have these, and those that stand in are wider.
        place = f'x="{" ".join(_x(x + at) for at in range(len(bare)))}"'
    return f'<text class="{name}" {place} y="{y * CELL_HEIGHT + BASELINE}">{words}</text>'


def _rule(style: Style) -> str:
    rule = f"fill:{_colours(style)[0]}"
    for has, words in (
        (style.bold, ";font-weight:bold"),
        (style.italic, ";font-style:italic"),
        (style.underline, ";text-decoration:underline"),
        (style.strike, ";text-decoration:line-through"),
    ):
        rule += words if has else ""
    return rule


def _colours(style: Style) -> tuple[str, str]:
    def triplet(colour: Color | None, is_foreground: bool) -> Any:
        colour = colour or Color.default()
        return colour.get_truecolor(THEME, foreground=is_foreground)

    fore, back = triplet(style.color, True), triplet(style.bgcolor, False)
    if style.reverse:
        fore, back = back, fore
    if style.dim:
        fore = blend_rgb(fore, back, _DIM)
    return fore.hex, back.hex


def _head(title: str) -> str:
    if not title:
        return ""
    dots = "".join(f'<circle cx="{20 + 20 * at}" cy="17" r="6" fill="#6b6b6b"/>' for at in range(3))
    return f'{dots}<text x="50%" y="23" text-anchor="middle" fill="{THEME.foreground_color.hex}">{escape(title)}</text>'


def _x(cells: int) -> str:
    return f"{cells * CELL_WIDTH:g}"
