"""Everything that is known of one run: verdicts, tables, pictures of its rounds, and what it was measured with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from localspec.session.figures import DASH, percent_text, rate_text, speed_unit, speed_value
from localspec.tui.plain import MUTED, plain_line
from localspec.tui.runs.details import RunDetails, WorkloadDetails
from localspec.tui.runs.rows import FASTER, SLOWER, UNCLEAR, UNUSABLE, run_row
from localspec.tui.widgets.bar_rows import Bar, BarRows
from localspec.tui.widgets.fact_list import FactList
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.line_chart import LineChart, Series

if TYPE_CHECKING:
    from localspec.session.reporting.rate_traces import RateTraces
    from localspec.session.reporting.series import AcceptedLengths, PositionAcceptance, VerifyPoint
    from localspec.session.reporting.words import Sentence

_TONES = {
    "faster": (FASTER, "$text-success"),
    "slower": (SLOWER, "$text-error"),
    "no_clear_difference": (UNCLEAR, ""),
    "unusable": (UNUSABLE, "$text-warning"),
}

_LINES = (("$primary", ""), ("$accent", "x"), ("$warning", "+"), ("$success", "o"), ("$error", "*"))
"""Style and mark of the arms with drafts."""


class RunsDetails(VerticalScroll):
    """A run from its verdicts down to its receipt."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "screen.back", "Back", id="runs.leave_details", tooltip="Back to the list, or stop"),
        Binding("g,home", "scroll_home", "Top", id="runs.top", tooltip="To the top", show=False),
        Binding("G,end", "scroll_end", "End", id="runs.end", tooltip="To the end", show=False),
        Binding("j", "scroll_down", "Down", id="runs.down", tooltip="A line down", show=False),
        Binding("k", "scroll_up", "Up", id="runs.up", tooltip="A line up", show=False),
    ]

    _shown: RunDetails | None = None

    async def show(self, details: RunDetails | None) -> None:
        """Show a run; None for none. One that is shown already stays where it is scrolled to."""
        if details == self._shown and details is not None:
            return
        is_other = details is None or self._shown is None or details.summary.id != self._shown.summary.id
        self._shown = details
        # One repaint instead of two.
        with self.app.batch_update():
            await self.remove_children()
            if details is not None:
                await self.mount_all(_blocks(details))
        if is_other:
            self.scroll_home(animate=False)

    async def say(self, text: str) -> None:
        """Show a sentence in place of a run."""
        self._shown = None
        with self.app.batch_update():
            await self.remove_children()
            await self.mount(Static(plain_line(text), markup=False, classes="muted"))


def _blocks(details: RunDetails) -> Iterator[Widget]:
    row = run_row(details.summary)
    yield Static(
        Content.assemble(
            (f"run {row.id}", "bold"),
            "  ",
            (row.mark, _TONES_BY_MARK.get(row.mark, "")),
            f" {row.speedup}" if row.speedup != DASH else f"{row.state}, nothing was compared",
            f" with {row.best_arm}" if row.best_arm != DASH else "",
            (", not to be relied on: the baseline changed too much", "$text-warning") if row.mark == UNUSABLE else "",
        ),
        markup=False,
    )
    yield Static(plain_line(row.models), markup=False, classes="muted")
    for warning in details.warnings:
        yield Static(Content.assemble(("! ", "bold $text-warning"), plain_line(warning)), markup=False)
    if details.promises:
        yield _heading("suite auto: what auto promises")
    for promise in details.promises:
        yield Static(plain_line(promise), markup=False)
    if not details.workloads:
        yield Static("No run of it was complete, so there are no figures.", markup=False, classes="muted")
    for workload in details.workloads:
        yield from _workload_blocks(workload)
    if details.verify_costs:
        yield from _verify_blocks(details.verify_costs)
    if len(details.speedups) > 1:
        yield from _history_blocks(details.speedups)
    yield from _receipt_blocks(details)


_TONES_BY_MARK = {FASTER: "$text-success", SLOWER: "$text-error"}


def _workload_blocks(workload: WorkloadDetails) -> Iterator[Widget]:
    yield _heading(workload.title)
    for sentence in workload.sentences:
        yield Static(_sentence(sentence), markup=False)
    for note in workload.notes:
        yield Static(plain_line(f"  {note}"), markup=False, classes="muted")
    yield _spaced(FigureTable(workload.figures))
    for arm in workload.acceptance:
        yield _spaced(_acceptance(arm))
    for lengths in workload.lengths:
        yield _spaced(_lengths(lengths))
    if workload.traces is not None:
        yield from _trace_blocks(workload.traces)


def _sentence(sentence: Sentence) -> Content:
    mark, style = _TONES.get(sentence.tone, ("\N{BULLET}", MUTED))
    return Content.assemble((f"{mark} ", f"bold {style}".rstrip()), plain_line(sentence.words))


def _acceptance(arm: PositionAcceptance) -> BarRows:
    bars = []
    for place, share in enumerate(arm.of_all_rounds):
        given = arm.given_earlier[place] if place < len(arm.given_earlier) else None
        remark = "" if given is None or not place else f"{percent_text(given)} once reached"
        if remark and not arm.is_sure(place):
            remark += " (few)"
        bars.append(Bar(str(place + 1), share, remark))
    return BarRows(f"acceptance by position, {arm.arm} (of {arm.num_rounds} rounds)", tuple(bars))


def _lengths(found: AcceptedLengths) -> BarRows:
    total = found.num_rounds
    bars = tuple(Bar(str(length), count / total, f"{count}") for length, count in enumerate(found.counts))
    title = f"accepted tokens of a round, {found.arm} (tau {found.tokens_per_round:.2f})"
    return BarRows(title, bars, top=max(found.counts) / total, style="$secondary")


def _trace_blocks(traces: RateTraces) -> Iterator[Widget]:
    yield _subheading(f"{speed_unit()} in the course of an answer (mean over {traces.window_s:.2g} s)")
    styles = iter(_LINES * (1 + len(traces.traces) // len(_LINES)))
    lines = []
    for trace in traces.traces:
        style, mark = (MUTED, "\N{MIDDLE DOT}") if trace.arm == "off" else next(styles)
        figure = "" if trace.median_tps is None else f" {rate_text(trace.median_tps)}"
        points = tuple((at_s, speed_value(tps)) for at_s, tps in zip(trace.at_s, trace.tps, strict=True))
        lines.append(Series(f"{trace.arm}{figure}", points, style, mark))
    chart = LineChart(classes="chart")
    chart.series = tuple(lines)
    chart.x_label = "s"
    yield chart


def _verify_blocks(points: tuple[VerifyPoint, ...]) -> Iterator[Widget]:
    yield _heading("What checking costs")
    last = points[-1]
    yield Static(
        f"A target pass that checks {last.num_checked} draft tokens takes {last.cost:.2f} plain steps "
        f"(half of them {last.low:.2f} to {last.high:.2f}).",
        markup=False,
    )
    chart = LineChart(classes="chart")
    chart.series = (Series("a pass", tuple((float(point.num_checked), point.cost) for point in points)),)
    chart.y_label = "in plain steps"
    chart.baseline, chart.baseline_label = 1.0, "a plain step"
    chart.x_label = "tokens checked"
    yield chart


def _history_blocks(speedups: tuple[float, ...]) -> Iterator[Widget]:
    yield _heading("This pair so far")
    chart = LineChart(classes="chart")
    chart.series = (Series("speedup", tuple((float(place), value) for place, value in enumerate(speedups, 1))),)
    chart.baseline, chart.baseline_label = 1.0, "1.00x, no gain"
    chart.x_label = "runs, oldest first"
    yield chart


def _receipt_blocks(details: RunDetails) -> Iterator[Widget]:
    receipt, summary = details.receipt, details.summary
    yield _heading("Receipt")
    row = run_row(summary)
    facts = [("run", f"{row.id}, {row.kind}, begun {row.at}, {row.state}")]
    if summary.profile:
        facts.append(("profile", summary.profile))
    for group in (receipt.models, receipt.build, receipt.machine, receipt.settings):
        facts += [(found.label, found.fact) for found in group]
    facts += [
        (f"memory, {line.model}", f"{line.device}: planned {line.planned}, real {line.real}") for line in receipt.memory
    ]
    yield FactList(tuple(facts))


def _heading(text: str) -> Static:
    return Static(plain_line(text, "bold $primary"), markup=False, classes="heading")


def _subheading(text: str) -> Static:
    return Static(plain_line(text), markup=False, classes="muted spaced")


def _spaced(widget: Widget) -> Widget:
    widget.add_class("spaced")
    return widget
