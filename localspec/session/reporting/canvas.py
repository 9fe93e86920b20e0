"""The sheet that pictures are drawn on, and how one becomes an SVG for a page or a PNG by itself.

matplotlib draws without a screen and takes no look from the user's own configuration. Importing this module makes
matplotlib keep its caches in localspec's cache folder.
"""

from __future__ import annotations

import io
import logging
import os
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from localspec.errors import LocalspecError
from localspec.paths import cache_dir
from localspec.session.reporting.palette import COLOURS, GRID, INK, MUTED, PAPER
from localspec.session.reporting.writing import GENERATOR

if "MPLCONFIGDIR" not in os.environ:
    # Without a folder to write to, matplotlib takes a temporary one.
    with suppress(LocalspecError):
        os.environ["MPLCONFIGDIR"] = str(cache_dir() / "matplotlib")
# It would tell of building its cache of fonts, and of every font and character that this machine lacks.
logging.getLogger("matplotlib").setLevel(logging.ERROR)

import matplotlib.style  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

WIDTH_IN: Final = 7.0
"""Inches; with type of 9 points this reads well at 700 pixels."""

_PNG_DPI: Final = 200
"""Two pixels for each of the 700 that a page gives a picture."""

_FONTS: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', Arial, sans-serif"

_STYLE: Final[dict[str, Any]] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "text.color": INK.light,
    "text.parse_math": False,
    "axes.edgecolor": MUTED.light,
    "axes.facecolor": "none",
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": MUTED.light,
    "axes.labelpad": 5.0,
    "axes.linewidth": 0.8,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": PAPER.light,
    "grid.color": GRID.light,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "lines.markersize": 5.5,
    "xtick.color": MUTED.light,
    "xtick.major.size": 3.0,
    "ytick.color": MUTED.light,
    "ytick.major.size": 0.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "localspec",
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw within this: localspec's look, whatever a matplotlibrc says, and no warnings of absent glyphs."""
    with warnings.catch_warnings(), matplotlib.style.context(["default", _STYLE]):
        warnings.filterwarnings("ignore", category=UserWarning, module="matplotlib")
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def sheet(
    title: str,
    height_in: float,
    *,
    columns: int = 1,
    left_in: float = 0.68,
    right_in: float = 0.2,
    gap_in: float = 0.5,
    has_headings: bool = False,
    subtitle: str = "",
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a title and `columns` equal plots side by side.

    Args:
        title: states the finding; broken into lines as needed.
        height_in: inches of the plots alone, without title and the x axis' words.
        columns: how many plots.
        left_in, right_in, gap_in: inches beside and between the plots, for labels.
        has_headings: leave room for a line over each plot.
        subtitle: what is shown, in small type; may be empty.
    """
    lines = _broken(title, 74)
    below = _broken(subtitle, 100) if subtitle else []
    head_in = 0.3 + 0.215 * len(lines) + 0.17 * len(below) + (0.24 if has_headings else 0.0)
    foot_in = 0.55
    total_in = head_in + height_in + foot_in
    figure = Figure(figsize=(WIDTH_IN, total_in))
    place = 1.0 - 0.1 / total_in
    figure.text(0.012, place, "\n".join(lines), weight="bold", size=11.5, va="top", linespacing=1.3)
    if below:
        place -= (0.215 * len(lines) + 0.03) / total_in
        figure.text(0.012, place, "\n".join(below), color=MUTED.light, size=8.5, va="top", linespacing=1.35)
    width_in = (WIDTH_IN - left_in - right_in - gap_in * (columns - 1)) / columns
    plots = [
        figure.add_axes(
            (
                (left_in + column * (width_in + gap_in)) / WIDTH_IN,
                foot_in / total_in,
                width_in / WIDTH_IN,
                height_in / total_in,
            )
        )
        for column in range(columns)
    ]
    return figure, plots


def spread(places: list[float], gap: float) -> list[float]:
    """Return places, in the same order, moved as little as need be so that no two are nearer than `gap`."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    groups: list[tuple[float, list[int]]] = []
    for index in order:
        centre, members = places[index], [index]
        while groups and groups[-1][0] + gap * (len(groups[-1][1]) + len(members)) / 2.0 > centre:
            earlier, others = groups.pop()
            centre = (earlier * len(others) + centre * len(members)) / (len(others) + len(members))
            members = others + members
        groups.append((centre, members))
    found = list(places)
    for centre, members in groups:
        for rank, index in enumerate(members):
            found[index] = centre + gap * (rank - (len(members) - 1) / 2.0)
    return found


def svg_of(draw: Callable[[], Figure], prefix: str) -> str:
    """Return a picture as an <svg> element for a page: colours follow the page's, text is text, ids begin with prefix.

    The same picture gives the same text.
    """
    with drawing():
        figure = draw()
        figure.patch.set_visible(False)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None})
    return _for_a_page(target.getvalue(), prefix)


def png_of(draw: Callable[[], Figure]) -> bytes:
    """Return a picture as a PNG file, 1400 pixels wide, light."""
    with drawing():
        target = io.BytesIO()
        draw().savefig(target, format="png", dpi=_PNG_DPI, metadata={"Software": GENERATOR})
    return target.getvalue()


def _for_a_page(svg: str, prefix: str) -> str:
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    # A page needs no namespaces, and without them nothing in it looks like an address.
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href=", "href=")
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg)
    for colour in COLOURS:
        svg = re.sub(rf"((?:fill|stroke): ){colour.light}", rf"\g<1>var(--{colour.name})", svg)
    svg = re.sub(r"'DejaVu Sans'(?:, [^;\"]*)?", _FONTS, svg)
    return re.sub(r"\n\s*", "\n", svg)


def _broken(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, break_long_words=True, max_lines=3, placeholder=" …") or [""]
