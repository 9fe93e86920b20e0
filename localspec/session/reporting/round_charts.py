"""Pictures of rounds: acceptance by position, what a verification costs, and how many tokens were accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from localspec.session.reporting.canvas import sheet, spread
from localspec.session.reporting.figures import share as percent
from localspec.session.reporting.palette import GRID, INK, MUTED, PAPER, ArmColour
from localspec.session.reporting.series import AcceptedLengths, PositionAcceptance, VerifyPoint

_HEIGHT_IN = 2.3


def acceptance_chart(
    title: str, subtitle: str, found: Sequence[PositionAcceptance], colours: Mapping[str, ArmColour]
) -> Figure:
    """Return acceptance by position twice: of all rounds, and of those that had accepted everything before."""
    figure, (left, right) = sheet(
        title, _HEIGHT_IN, columns=2, left_in=0.55, right_in=0.85, gap_in=1.3, has_headings=True, subtitle=subtitle
    )
    longest = max(len(arm.of_all_rounds) for arm in found)
    ways: tuple[tuple[Axes, str, list[Sequence[float | None]]], ...] = (
        (left, "accepted, of all rounds with drafts", [arm.of_all_rounds for arm in found]),
        (right, "accepted, if all before it were", [arm.given_earlier for arm in found]),
    )
    for plot, heading, lines in ways:
        plot.set_title(heading, loc="left", size=9.0, color=INK.light, pad=7.0)
        plot.set_ylim(0.0, 1.03)
        plot.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        plot.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
        _count_axis(plot, 1, max(longest, 2))
        plot.set_xlabel("position in the draft")
        ends: list[tuple[str, float, float]] = []
        for arm, shares in zip(found, lines, strict=True):
            known = [(index + 1, share) for index, share in enumerate(shares) if share is not None]
            if not known:
                continue
            places, values = [place for place, _ in known], [share for _, share in known]
            mark = colours[arm.arm].mark.light
            plot.plot(places, values, "o-", color=mark, markeredgecolor=PAPER.light, clip_on=False, zorder=3)
            if plot is right:
                thin = [place for place in places if not arm.is_sure(place - 1)]
                hollow = [values[places.index(place)] for place in thin]
                plot.plot(thin, hollow, "o", color=mark, markerfacecolor=PAPER.light, clip_on=False, zorder=4)
            ends.append((arm.arm, places[-1], values[-1]))
        heights = spread([max(value, 0.045) for _, _, value in ends], 0.155 / _HEIGHT_IN * 1.03)
        for (label, place, _), height in zip(ends, heights, strict=True):
            words = colours[label].words.light
            label = label if len(label) <= 12 else f"{label[:11]}…"
            offset = 0.12 * (max(longest, 2) - 1 + 0.6) / 2.2
            plot.text(place + offset, height, label, color=words, weight="bold", va="center")
    return figure


def verify_chart(title: str, subtitle: str, points: Sequence[VerifyPoint], colour: ArmColour) -> Figure:
    """Return the cost of a target pass by the draft tokens that it checks, beside what single steps would cost."""
    figure, (plot,) = sheet(title, _HEIGHT_IN, right_in=1.5, subtitle=subtitle)
    most = points[-1].num_checked
    highest = max(point.high for point in points)
    top = max(1.1 * highest, min(most + 1.3, 1.7 * highest), 2.0)
    plot.set_ylim(0.0, top)
    plot.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    _count_axis(plot, 0, max(most, 2))
    plot.plot([0, top - 1.0], [1.0, top], color=MUTED.light, linewidth=1.0, linestyle=(0, (1, 2)))
    plot.axhline(1.0, color=MUTED.light, linewidth=1.0)
    places = [point.num_checked for point in points]
    plot.vlines(
        places,
        [point.low for point in points],
        [point.high for point in points],
        color=colour.mark.light,
        linewidth=5.0,
        alpha=0.3,
    )
    plot.plot(places, [point.cost for point in points], "o-", color=colour.mark.light, markeredgecolor=PAPER.light)
    edge = plot.get_xlim()[1]
    labels = [("measured", points[-1].cost, colour.words.light), ("one plain step", 1.0, MUTED.light)]
    single = "a plain step for\neach token"
    if edge + 1.0 <= top:
        labels.append((single, edge + 1.0, MUTED.light))
    else:
        plot.text(top - 1.0 + 0.02 * edge, 0.985 * top, single, color=MUTED.light, va="top", linespacing=1.15)
    heights = spread([height for _, height, _ in labels], 0.28 / _HEIGHT_IN * top)
    for (label, _, look), height in zip(labels, heights, strict=True):
        weight = "bold" if label == "measured" else "normal"
        plot.text(edge + 0.012 * edge, height, label, color=look, weight=weight, va="center", linespacing=1.15)
    plot.set_xlabel("draft tokens checked in one pass (0: a plain step)")
    plot.set_ylabel("time of the pass, in plain steps")
    return figure


def length_chart(
    title: str, subtitle: str, found: Sequence[AcceptedLengths], colours: Mapping[str, ArmColour]
) -> Figure:
    """Return for each arm how often a round accepted 0, 1, 2 … tokens."""
    longest = max(len(arm.counts) for arm in found)
    figure, plots = sheet(title, 1.9, columns=len(found), gap_in=0.25, has_headings=True, subtitle=subtitle)
    top = max(max(arm.counts) / arm.num_rounds for arm in found)
    for index, (plot, arm) in enumerate(zip(plots, found, strict=True)):
        colour = colours[arm.arm]
        shares = [count / arm.num_rounds for count in arm.counts]
        plot.bar(range(len(shares)), shares, width=0.72, color=colour.mark.light)
        if longest <= 9 and len(found) <= 3:
            for length, share in enumerate(shares):
                if share:
                    label = percent(share) if share >= 0.005 else "<1 %"
                    plot.text(length, share + top * 0.02, label, ha="center", va="bottom", size=7.5, color=MUTED.light)
        plot.set_ylim(0.0, top * 1.13)
        plot.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
        plot.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        if index:
            plot.tick_params(labelleft=False)
        _count_axis(plot, 0, longest - 1)
        plot.set_title(arm.arm, loc="left", size=9.0, weight="bold", color=colour.words.light, pad=8.0)
        plot.set_title(f"{arm.num_rounds} rounds", loc="right", size=8.0, color=MUTED.light, pad=8.0)
        plot.set_xlabel("draft tokens accepted")
        plot.spines["bottom"].set_color(GRID.light)
    plots[0].set_ylabel("of rounds with drafts")
    return figure


def _count_axis(plot: Axes, first: int, last: int) -> None:
    plot.set_xlim(first - 0.6, last + 0.6)
    plot.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
