"""The figures of the live panel as text, bars included; told apart by words and shades, not by colour alone."""

from __future__ import annotations

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from localspec.metrics.live import LiveFigures
from localspec.metrics.speculation import SpeculationStats
from localspec.session.baseline import Baseline, speedup_over
from localspec.session.figures import DASH, bytes_text, milliseconds_text, number_text, percent_text, speed_text
from localspec.session.plain_text import one_line
from localspec.tui.keyed import keyed
from localspec.tui.state import EngineState
from localspec.tui.widgets.chat_drafting import drafter_lines, pacing_lines

Part = tuple[str, str] | str

_MAX_POSITIONS = 8
_SHADES = (
    ("draft", "█", "$primary"),
    ("verify", "▓", "$accent"),
    ("sample", "▒", "$warning"),
    ("own", "░", "dim"),
)


class ChatFigures(Widget):
    """Figures of the answer that comes, or came last."""

    DEFAULT_CSS = """
    ChatFigures { height: auto; width: 1fr; }
    """

    live: reactive[LiveFigures] = reactive(LiveFigures)
    """Of that answer."""
    baseline: reactive[Baseline | None] = reactive(None)
    """Measured speed without drafts; None if there is none for these models and settings."""
    engine_state: reactive[EngineState] = reactive(EngineState)
    """What the engine has."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._height = 0

    def render(self) -> Content:
        """Return all lines."""
        lines = self._lines(self.content_size.width)
        if len(lines) != self._height:
            # Measured anew only when it must be: a layout costs more than all the figures.
            self._height = len(lines)
            self.call_after_refresh(self.refresh, layout=True)
        return Content("\n").join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines; none is wider than the widget."""
        # Asked for while everything is laid out: a look at its own place then would have it laid out once more.
        return len(self._lines(width))

    def _lines(self, width: int) -> list[Content]:
        return figure_lines(self.live, self.baseline, self.engine_state, max(16, width))


def figure_lines(live: LiveFigures, baseline: Baseline | None, state: EngineState, width: int) -> list[Content]:
    """Return the lines; what is not known is a dash or left out."""
    stats, latency = live.stats, live.latency
    is_on = live.speculation is not None and live.speculation.is_on
    speedup = speedup_over(baseline, latency) if is_on else None
    lines = [
        _row("decode", speed_text(latency.decode_tps)),
        _row("baseline", speed_text(baseline.decode_tps) if baseline else keyed("not measured: {chat.probe}")),
    ]
    if baseline is not None:
        lines.append(_row("", f"{DASH if speedup is None else f'{speedup:.2f}x'}, {one_line(baseline.source)}"))
    lines += [
        _row("TTFT", milliseconds_text(latency.ttft_s)),
        _row("prefill", speed_text(latency.prefill_tps)),
        Content(""),
        _row("acceptance", f"{percent_text(stats.acceptance_rate)}{_of(stats)}"),
        _row("tau", f"{number_text(stats.mean_accepted_length)} tokens a round"),
        *drafter_lines(stats, width),
        *_position_lines(stats, width),
        Content(""),
        *([*paced, Content("")] if (paced := pacing_lines(stats.pacing, width)) else ()),
        *_time_lines(stats, width),
        Content(""),
        *_context_lines(live, state, width),
        *_memory_lines(live, state),
    ]
    return lines


def _row(name: str, value: str) -> Content:
    return Content.assemble((f"{name:<11}", "dim"), value)


def _of(stats: SpeculationStats) -> str:
    return f" of {stats.num_draft_tokens}" if stats.num_draft_tokens else ""


def _position_lines(stats: SpeculationStats, width: int) -> list[Content]:
    shares = stats.acceptance_by_position[:_MAX_POSITIONS]
    # Positions that were drafted and never accepted count as well.
    shares += (0.0,) * (min(_MAX_POSITIONS, len(stats.drafted_at)) - len(shares))
    return [
        Content.assemble(
            (f"{'position ' if index == 0 else ' ' * 9}{index + 1} ", "dim"),
            (bar(share, max(4, width - 17)), "$primary"),
            f" {percent_text(share):>5}",
        )
        for index, share in enumerate(shares)
    ]


def _time_lines(stats: SpeculationStats, width: int) -> list[Content]:
    times = (stats.draft_s, stats.verify_s, stats.sample_s, stats.own_s)
    total_s = sum(times)
    if total_s <= 0.0:
        return [_row("time", DASH)]
    cells = _apportioned([seconds / total_s for seconds in times], width)
    strip: list[Part] = [(mark * count, style) for (_, mark, style), count in zip(_SHADES, cells, strict=True) if count]
    entries = [
        Content.assemble((mark, style), (f" {name} ", "dim"), percent_text(seconds / total_s))
        for (name, mark, style), seconds in zip(_SHADES, times, strict=True)
    ]
    pairs = [Content("   ").join(entries[:2]), Content("   ").join(entries[2:])]
    return [Content.assemble(*strip), *pairs]


def _context_lines(live: LiveFigures, state: EngineState, width: int) -> list[Content]:
    n_ctx = None if state.loaded is None else state.loaded.target.n_ctx
    if n_ctx is None or live.n_past is None:
        return [_row("KV cache", DASH if n_ctx is None else f"{DASH} of {n_ctx}")]
    share = live.n_past / n_ctx if n_ctx else 0.0
    style = "$text-warning" if share > 0.9 else "$primary"
    return [
        _row("KV cache", f"{live.n_past} of {n_ctx}"),
        Content.assemble((bar(share, max(4, width - 6)), style), f" {percent_text(share):>5}"),
    ]


def _memory_lines(live: LiveFigures, state: EngineState) -> list[Content]:
    rows = []
    footprint = None if state.loaded is None else state.loaded.footprint
    if footprint is not None:
        parts = [footprint.target] if footprint.draft is None else [footprint.target, footprint.draft]
        rows.append(_row("models", bytes_text(sum(row.total_bytes for part in parts for row in part.rows))))
    if live.peak_rss_bytes:
        rows.append(_row("engine", f"{bytes_text(live.peak_rss_bytes)} at most"))
    if live.device_used_bytes:
        rows.append(_row("GPU", f"{bytes_text(live.device_used_bytes)} in use"))
    return rows or [_row("memory", DASH)]


def bar(share: float, width: int) -> str:
    """Return a bar of `width` cells, exact to an eighth of a cell, on a dotted ground."""
    eighths = round(min(1.0, max(0.0, share)) * 8 * width)
    whole, part = divmod(eighths, 8)
    filled = "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")
    return filled + "·" * (width - len(filled))


def _apportioned(shares: list[float], width: int) -> list[int]:
    """Return whole cells that add up to the width, by largest remainders."""
    exact = [share * width for share in shares]
    cells = [int(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda index: cells[index] - exact[index])
    for index in by_remainder[: width - sum(cells)]:
        cells[index] += 1
    return cells
