"""The ways of drafting that a search has tried, the best first."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from localspec.session.figures import DASH
from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.tuning_state import TuneSnapshot, Way
from localspec.tui.widgets.flowing_lines import FlowingLines
from localspec.tui.widgets.tune_heat import BEST, RUNNING, ratio_text

MOST = 14
_BAR = 12
_ROOMY = 56
"""From so many cells on there is a bar."""


class TuneWays(FlowingLines):
    """A line for each way."""

    snapshot: reactive[TuneSnapshot] = reactive(TuneSnapshot, layout=True)
    """The search."""

    def lines_for(self, width: int) -> list[Content]:
        """Return the lines."""
        return way_lines(self.snapshot.ways, width)


def way_lines(ways: tuple[Way, ...], width: int) -> list[Content]:
    """Return a line of at most `width` cells for each of the best ways, and one for how many more there are."""
    if not ways:
        return [Content.styled("Nothing is known yet.".ljust(1), MUTED).truncate(width)]
    top = max((way.ratio for way in ways if way.ratio is not None), default=1.0)
    lines = [_line(way, max(top, 1.0), width) for way in ways[:MOST]]
    if len(ways) > MOST:
        lines.append(Content.styled(f"and {len(ways) - MOST} more", MUTED).truncate(width))
    return lines


def _line(way: Way, top: float, width: int) -> Content:
    mark = RUNNING if way.is_running else BEST if way.is_best else " "
    figure = DASH if way.ratio is None else f"{ratio_text(way.ratio)}x"
    style = "" if way.ratio is None else "$text-success" if way.ratio > 1.0 else "$text-error"
    parts: list[tuple[str, str]] = [(f"{mark} ", "bold"), (f"{figure:>6} ", f"{style} bold" if way.is_best else style)]
    if width >= _ROOMY:
        parts += [*_bar(way.ratio, top), (" ", "")]
    pairs = f"{way.num_pairs} pair{'' if way.num_pairs == 1 else 's'}" if way.ratio is not None else ""
    words = one_line(f"{way.name}: {way.reason}" if way.reason else way.name)
    used = sum(len(text) for text, _ in parts) + len(pairs) + 1
    shown = Content(words).truncate(max(4, width - used), ellipsis=True)
    gap = " " * max(1, width - used - shown.cell_length + 1)
    return Content.assemble(*parts, (shown.plain, "bold" if way.is_best else ""), gap, (pairs, MUTED)).truncate(width)


def _bar(ratio: float | None, top: float) -> list[tuple[str, str]]:
    """Return a bar on which a line marks the speed without drafts."""
    at = min(_BAR - 1, round(_BAR / top) - 1)
    filled = 0 if ratio is None else min(_BAR, round(ratio / top * _BAR))
    cells = ["█" if place < filled else "·" for place in range(_BAR)]
    style = "$success" if (ratio or 0.0) > 1.0 else "$error"
    return [("".join(cells[:at]), style), ("┃", ""), ("".join(cells[at + 1 :]), style)]
