"""The live panel beside a chat: speed over time above, figures below."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.reactive import var
from textual.widgets import Static

from localspec.metrics.live import LiveFigures
from localspec.session.baseline import Baseline
from localspec.session.figures import rate_text, speed_unit, speed_value
from localspec.tui.braille import Point
from localspec.tui.state import EngineState
from localspec.tui.widgets.chat_figures import ChatFigures
from localspec.tui.widgets.line_chart import LineChart, Series


class ChatPanel(VerticalScroll, can_focus=False):
    """Takes the figures, and hands them down."""

    live: var[LiveFigures] = var(LiveFigures)
    """Of the answer that comes, or came last."""
    baseline: var[Baseline | None] = var(None)
    """Measured speed without drafts."""
    engine_state: var[EngineState] = var(EngineState)
    """What the engine has."""

    def compose(self) -> ComposeResult:
        """Yield chart and figures."""
        yield Static(self._title, markup=False, classes="chart-title")
        yield LineChart()
        yield ChatFigures().data_bind(ChatPanel.live, ChatPanel.baseline, ChatPanel.engine_state)

    def on_mount(self) -> None:
        """Set what does not change."""
        chart = self.query_one(LineChart)
        chart.x_label = "s"
        chart.has_legend = False

    def watch_live(self, live: LiveFigures) -> None:
        """Draw the speeds."""
        if self.is_mounted:
            self._show_title()
            chart = self.query_one(LineChart)
            chart.x_range = (0.0, max(1.0, live.speed[-1][0])) if live.speed else None
            chart.series = (Series("decode", _shown(live.speed)),)

    def watch_baseline(self, baseline: Baseline | None) -> None:
        """Draw the baseline."""
        if self.is_mounted:
            self._show_title()
            self.query_one(LineChart).baseline = None if baseline is None else speed_value(baseline.decode_tps)

    @property
    def _title(self) -> str:
        """What is drawn. What it is just now stands in the line below the transcript, however narrow the screen is."""
        off = "" if self.baseline is None else f"   ╌╌ off {rate_text(self.baseline.decode_tps)}"
        return f"decode, {speed_unit()}{off}"

    def _show_title(self) -> None:
        title = self.query_one(".chart-title", Static)
        if title.content != self._title:
            title.update(self._title, layout=False)


def _shown(speeds: tuple[Point, ...]) -> tuple[Point, ...]:
    """Return speeds over time in the unit in force."""
    return tuple((at_s, None if rate is None else speed_value(rate)) for at_s, rate in speeds)
