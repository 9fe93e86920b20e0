"""How far one arm is, and how fast, in one line."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import speed_text
from localspec.tui.race import LaneSnapshot

_LEAST_BAR = 6
_WORDS = 46
"""Cells for the figures, the same in all lanes, so that their bars are equally long and can be compared."""

_STATES = {
    "waiting": "waits",
    "warming_up": "warms up",
    "reading": "● reads the prompt",
    "live": "● live",
    "replayed": "◌ ghost",
    "done": "done",
    "not_run": "not run",
}


class CompareGauge(Widget):
    """A bar over the tokens of a run, and its figures."""

    DEFAULT_CSS = """
    CompareGauge { height: 1; }
    """

    lane: reactive[LaneSnapshot] = reactive(LaneSnapshot)
    """What is shown."""

    def render(self) -> Content:
        """Return the line; what is still to come of the bar has another sign, not only another colour."""
        words = lane_words(self.lane)
        length = max(_LEAST_BAR, self.content_size.width - _WORDS)
        done = min(length, length * self.lane.num_tokens // max(1, self.lane.max_tokens))
        bar = (
            ("━" * done, "$text-accent" if self.lane.state == "live" else "$text-primary"),
            ("╌" * (length - done), "dim"),
        )
        return Content.assemble(*bar, "  ", words).truncate(max(1, self.content_size.width), ellipsis=True)


def lane_words(lane: LaneSnapshot) -> str:
    """Return how far a lane is, such as `● live · 57/128 · 41.3 tokens/s`."""
    parts = [_STATES[lane.state] if lane.title else ""]
    if lane.state == "replayed":
        parts = [f"{_STATES['replayed']} of pair {lane.pair + 1}"]
    if lane.num_tokens:
        parts.append(f"{lane.num_tokens}/{lane.max_tokens}")
        if lane.decode_tps is not None:
            parts.append(speed_text(lane.decode_tps))
    return " · ".join(part for part in parts if part)
