"""The picture of a probe: what steps cost, and the acceptance that drafts need."""

from __future__ import annotations

import io

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from localspec.session.plain_text import one_line
from localspec.session.probe_words import PUBLISHED, finding
from localspec.session.probing import ProbeReport
from localspec.session.reporting.canvas import drawing, png_of, sheet
from localspec.session.reporting.palette import INK, MUTED, PAPER, Colour, arm_colours
from localspec.session.reporting.writing import SVG_MARK
from localspec.session.step_curve import StepCurve

_HEIGHT_IN = 2.5
_LEAST_EDGE = 0.6
"""Costs are drawn up to here at least."""

_NUM_COSTS = 121


def probe_chart(report: ProbeReport) -> Figure:
    """Return time by width with its middle halves, and beside it the acceptance needed by the draft's cost."""
    title = finding(report.curves[0])
    target = report.loaded.target
    subtitle = one_line(f"{target.name or 'target'} {target.quantisation}, {target.n_threads} threads")
    figure, (left, right) = sheet(
        title, _HEIGHT_IN, columns=2, left_in=0.55, right_in=0.25, gap_in=0.75, has_headings=True, subtitle=subtitle
    )
    colours = [colour.mark for colour in arm_colours(("draft", "ngram")).values()]
    for index, curve in enumerate(report.curves):
        colour = colours[index % len(colours)]
        _draw_steps(left, curve, colour, len(report.curves) > 1)
        _draw_needed(right, curve, colour)
    _finish_steps(left, report.curves)
    _finish_needed(right, report.curves)
    return figure


def probe_png(report: ProbeReport) -> bytes:
    """Return the picture as a PNG file."""
    return png_of(lambda: probe_chart(report))


def probe_svg(report: ProbeReport) -> bytes:
    """Return the picture as an SVG file of its own, with text as text."""
    with drawing():
        target = io.StringIO()
        probe_chart(report).savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    declaration, _, rest = target.getvalue().partition("\n")
    return f"{declaration}\n{SVG_MARK}\n{rest}".encode()


def _draw_steps(plot: Axes, curve: StepCurve, colour: Colour, is_labelled: bool) -> None:
    widths = [step.width for step in curve.steps]
    single = curve.single_s
    lows, highs = [step.low_s / single for step in curve.steps], [step.high_s / single for step in curve.steps]
    plot.vlines(widths, lows, highs, color=colour.light, linewidth=5.0, alpha=0.3)
    costs = [curve.costs[width] for width in widths]
    label = f"{curve.depth} positions" if is_labelled else "measured; bars: middle half"
    plot.plot(widths, costs, "o-", color=colour.light, markeredgecolor=PAPER.light, label=label)


def _finish_steps(plot: Axes, curves: tuple[StepCurve, ...]) -> None:
    widest = max(step.width for curve in curves for step in curve.steps)
    top = 1.15 * max(step.high_s / curve.single_s for curve in curves for step in curve.steps)
    plot.set_title("time of a step, in steps of one token", loc="left", size=9.0, color=INK.light, pad=7.0)
    plot.plot([1, top], [1, top], color=MUTED.light, linewidth=1.0, linestyle=(0, (1, 2)), label="single steps instead")
    plot.set_ylim(0.0, top)
    plot.set_xlim(0.4, widest + 0.6)
    plot.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    plot.set_xlabel("tokens of the step")
    plot.legend(frameon=False, fontsize=8.0, loc="best")


def _draw_needed(plot: Axes, curve: StepCurve, colour: Colour) -> None:
    edge = _edge((curve,))
    found = [(cost, curve.needed(cost).best) for cost in (edge * i / (_NUM_COSTS - 1) for i in range(_NUM_COSTS))]
    paying = [(cost, need) for cost, need in found if need is not None and need.acceptance is not None]
    costs = [cost for cost, _ in paying]
    plot.fill_between(
        costs,
        [need.low or 0.0 for _, need in paying],
        [1.0 if need.high is None else need.high for _, need in paying],
        color=colour.light,
        alpha=0.2,
        linewidth=0.0,
    )
    plot.plot(costs, [need.acceptance or 0.0 for _, need in paying], color=colour.light)
    own = curve.needed_by_draft()
    if own is not None:
        acceptance = 1.0 if own.best is None or own.best.acceptance is None else own.best.acceptance
        plot.plot([own.draft_cost], [acceptance], "o", color=colour.light, markersize=8.0, markeredgecolor=PAPER.light)
        plot.annotate(
            "this draft" if own.best is not None else "this draft never pays",
            (own.draft_cost, acceptance),
            xytext=(-6 if own.draft_cost > edge / 2.0 else 6, -12),
            textcoords="offset points",
            ha="right" if own.draft_cost > edge / 2.0 else "left",
            color=INK.light,
            size=8.5,
            weight="bold",
        )


def _finish_needed(plot: Axes, curves: tuple[StepCurve, ...]) -> None:
    edge = _edge(curves)
    low, high = PUBLISHED
    plot.set_title("acceptance from which drafts pay", loc="left", size=9.0, color=INK.light, pad=7.0)
    plot.axhspan(low, high, color=MUTED.light, alpha=0.12, linewidth=0.0)
    plot.text(0.99 * edge, low + 0.01, "published, small drafts", color=MUTED.light, size=8.0, ha="right", va="bottom")
    plot.set_ylim(0.0, 1.03)
    plot.set_xlim(0.0, edge)
    plot.set_xlabel("a drafted token's time / a step of the target")


def _edge(curves: tuple[StepCurve, ...]) -> float:
    return max(_LEAST_EDGE, *(1.15 * (curve.draft_cost or 0.0) for curve in curves))
