"""The speedups of all runs of one pair in a line, oldest first."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

_BLOCKS = "▁▂▃▄▅▆▇█"


class RunsTrend(Widget):
    """Blocks from 0 up, with the first and the last figure; empty where there is nothing to compare."""

    DEFAULT_CSS = """
    RunsTrend { height: 1; width: 1fr; color: $text-muted; display: none; }
    RunsTrend.-known { display: block; }
    """

    speedups: reactive[tuple[float, ...]] = reactive(tuple)
    """Oldest first."""

    def watch_speedups(self, speedups: tuple[float, ...]) -> None:
        """Come and go."""
        self.set_class(len(speedups) > 1, "-known")

    def render(self) -> Content:
        """Return the line."""
        return trend_line(self.speedups, self.content_size.width)


def trend_line(speedups: tuple[float, ...], width: int) -> Content:
    """Return the line in at most `width` cells; of many runs the newest."""
    if len(speedups) < 2:
        return Content("")
    label = f"this pair, {len(speedups)} runs "
    first, last = f"{speedups[0]:.2f}x ", f" {speedups[-1]:.2f}x"
    shown = speedups[-max(1, width - len(label) - len(first) - len(last)) :]
    return Content.assemble(label, first, (spark_text(shown), "$primary"), (last, "bold")).truncate(width)


def spark_text(values: tuple[float, ...]) -> str:
    """Return a block for each value; the largest one fills its cell, and 0 would be its lower edge."""
    top = max(values, default=0.0)
    if top <= 0.0:
        return ""
    return "".join(_BLOCKS[min(7, max(0, round(8 * max(0.0, value) / top) - 1))] for value in values)
