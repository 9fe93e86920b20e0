"""Pictures of speed: speedup with intervals, tokens per second over time, and where the time of a token goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from localspec.session.reporting.canvas import sheet, spread
from localspec.session.reporting.palette import GRID, INK, MUTED, PAPER, ArmColour
from localspec.session.reporting.rate_traces import RateTraces
from localspec.session.reporting.series import ArmSpeed, TimeSplit

_LINE_IN: Final = 0.3
"""Inches that one bar or point of a list takes."""

_TINTS: Final = {"verify": 1.0, "draft": 0.55, "sample": 0.3, "own": 0.15}
"""How strong the arm's colour is for each use of its time."""


def speedup_chart(title: str, subtitle: str, speeds: Sequence[ArmSpeed], colours: Mapping[str, ArmColour]) -> Figure:
    """Return a line for each workload and arm: its speedup with the interval, and "off" at 1."""
    rows = [speed for speed in speeds if speed.speedup is not None]
    groups = list(dict.fromkeys(speed.workload for speed in rows))
    places: list[float] = []
    place = 0.0
    for previous, speed in zip([None, *rows], rows, strict=False):
        place += 0.0 if previous is None else 1.0 if previous.workload == speed.workload else 1.6
        places.append(place)
    figure, (plot,) = sheet(title, _LINE_IN * (place + 1.4), left_in=1.75, right_in=1.6, subtitle=subtitle)
    edge = _speedup_edge(rows)
    plot.set_xlim(0.0, edge)
    plot.set_ylim(place + 0.7, -0.7)
    plot.grid(True, axis="x")
    plot.grid(False, axis="y")
    plot.axvline(1.0, color=colours["off"].mark.light if "off" in colours else MUTED.light, linewidth=1.6)
    for speed, at in zip(rows, places, strict=True):
        found = speed.speedup
        if found is None:
            continue
        mark = colours[speed.arm].mark.light
        if found.low is not None and found.high is not None:
            plot.plot([found.low, found.high], [at, at], color=mark, linewidth=3.0, alpha=0.45, solid_capstyle="butt")
            if found.high > edge:
                plot.plot([edge], [at], ">", color=mark, markersize=6.0, clip_on=False)
        plot.plot([found.median], [at], "o", color=mark, markersize=8.0, markeredgecolor=PAPER.light)
        words = colours[speed.arm].words.light
        _beside(plot, at, speed.arm, words)
        span = "no interval" if found.low is None else f"{found.low:.2f} to {found.high:.2f}"
        plot.text(1.03, at, f"{found.median:.2f}x", color=words, weight="bold", va="center", **_in_margin(plot))
        plot.text(1.03 + 0.56 / _width_in(plot), at, span, color=MUTED.light, size=8.0, va="center", **_in_margin(plot))
    for group in groups:
        first = next(at for speed, at in zip(rows, places, strict=True) if speed.workload == group)
        label = group if len(group) <= 13 else f"{group[:12]}…"
        plot.text(-1.63 / _width_in(plot), first, label, weight="bold", va="center", **_in_margin(plot))
    plot.set_yticks([])
    plot.set_xlabel("speedup: decode tokens per second, with drafts / without (line at 1: off)")
    return figure


def rate_chart(title: str, subtitle: str, found: RateTraces, colours: Mapping[str, ArmColour]) -> Figure:
    """Return the arms' speed in the course of an answer, with a thin line at the median of each."""
    figure, (plot,) = sheet(title, 2.5, left_in=0.62, right_in=1.25, subtitle=subtitle)
    top = max(max((*trace.tps, trace.median_tps or 0.0)) for trace in found.traces)
    plot.set_ylim(0.0, top * 1.08)
    plot.set_xlim(0.0, max(trace.at_s[-1] for trace in found.traces) + found.window_s / 2.0)
    ends = []
    for trace in found.traces:
        colour = colours[trace.arm]
        plot.plot(trace.at_s, trace.tps, color=colour.mark.light, solid_capstyle="round")
        if trace.median_tps is not None:
            plot.axhline(trace.median_tps, color=colour.mark.light, linewidth=0.9, linestyle=(0, (4, 3)))
        ends.append(trace.tps[-1] if trace.median_tps is None else trace.median_tps)
    places = spread(ends, top * 1.08 * 0.31 / 2.5)
    for trace, at in zip(found.traces, places, strict=True):
        words = colours[trace.arm].words.light
        rate = "" if trace.median_tps is None else f"{trace.median_tps:.1f} tok/s"
        plot.text(1.015, at, f"{_short(trace.arm)}\n", color=words, weight="bold", va="center", **_in_margin(plot))
        plot.text(1.015, at, f"\n{rate}", color=words, size=8.5, va="center", **_in_margin(plot))
    plot.set_xlabel("seconds since the first token")
    plot.set_ylabel("tokens per second")
    return figure


def time_chart(title: str, subtitle: str, splits: Sequence[TimeSplit], colours: Mapping[str, ArmColour]) -> Figure:
    """Return a bar for each arm: milliseconds per token, split into verifying, drafting, sampling and the rest."""
    figure, (plot,) = sheet(title, 0.46 * len(splits) + 0.1, left_in=1.05, right_in=1.0, subtitle=subtitle)
    most = max(split.total_s for split in splits) * 1000.0
    plot.set_xlim(0.0, most * 1.01)
    plot.set_ylim(len(splits) - 0.45, -0.55)
    plot.grid(True, axis="x")
    plot.grid(False, axis="y")
    for row, split in enumerate(splits):
        colour = colours[split.arm]
        _beside(plot, row, split.arm, colour.words.light)
        start = 0.0
        for use, tint in _TINTS.items():
            width = getattr(split, f"{use}_s") * 1000.0
            plot.barh(row, width, left=start, height=0.62, color=PAPER.light, edgecolor="none")
            plot.barh(
                row, width, left=start, height=0.62, color=colour.mark.light, alpha=tint, edgecolor="none", linewidth=0
            )
            label = f"{use} {_milliseconds(width)}"
            if width / most * _width_in(plot) > 0.066 * len(label):
                inside = PAPER.light if tint == 1.0 else INK.light
                plot.text(start + width / 2.0, row, label, ha="center", va="center", size=8.0, color=inside)
            start += width
            plot.plot([start, start], [row - 0.31, row + 0.31], color=PAPER.light, linewidth=1.2)
        total = f"{_milliseconds(start)} ms"
        plot.text(start + most * 0.012, row, total, color=colour.words.light, weight="bold", va="center")
    plot.set_yticks([])
    plot.spines["bottom"].set_color(GRID.light)
    plot.set_xlabel("milliseconds per token, after the prompt was read")
    return figure


def _speedup_edge(rows: Sequence[ArmSpeed]) -> float:
    """Return where the axis ends: after the last interval, but not so far that the medians cannot be told apart."""
    found = [speed.speedup for speed in rows if speed.speedup is not None]
    furthest = max(speedup.median for speedup in found)
    widest = max(max(speedup.median, speedup.high or 0.0) for speedup in found)
    return max(1.25, 1.06 * min(widest, 2.0 * max(furthest, 1.0)))


def _beside(plot: Axes, at: float, words: str, colour: str) -> None:
    plot.text(-0.08 / _width_in(plot), at, _short(words), color=colour, va="center", ha="right", **_in_margin(plot))


def _short(words: str) -> str:
    return words if len(words) <= 16 else f"{words[:15]}…"


def _milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


def _in_margin(plot: Axes) -> dict[str, Any]:
    """Return how to place a text by the plot's width across, and by the data up and down."""
    return {"transform": plot.get_yaxis_transform(), "clip_on": False}


def _width_in(plot: Axes) -> float:
    figure = plot.get_figure(root=True)
    width = plot.get_position().width
    return float(width * (figure.get_figwidth() if figure is not None else 1.0))
