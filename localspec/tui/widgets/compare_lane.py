"""One arm's lane: what it writes, how far it is and how fast."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.reactive import reactive
from textual.widgets import ProgressBar, Static

from localspec.session.figures import rate_text
from localspec.session.plain_text import one_line
from localspec.tui.plain import plain, plain_line
from localspec.tui.race import LaneSnapshot

_SHOWN_CHARACTERS = 4000
"""Of the text, its end: more than any lane has room for."""

_STATES = {
    "waiting": "waits",
    "warming_up": "warms up",
    "reading": "reads the prompt",
    "live": "● live",
    "replayed": "◌ ghost",
    "done": "done",
    "not_run": "not run",
}


class CompareLane(Vertical):
    """Shows a LaneSnapshot, the ghost's with a dashed border."""

    DEFAULT_CSS = """
    CompareLane {
        border: round $surface-lighten-2;
        border-title-color: $text;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        &.-live { border: heavy $accent; }
        &.-replayed { border: dashed $secondary; }
        & > ProgressBar { width: 1fr; height: 1; & Bar { width: 1fr; } }
        & > VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
        & > VerticalScroll > Static { height: auto; }
        &.-replayed Static { color: $text-muted; }
    }
    """

    lane: reactive[LaneSnapshot] = reactive(LaneSnapshot)
    """What is shown."""

    def __init__(self, letter: str, id: str) -> None:  # noqa: A002
        """Take the letter that the lane is called by."""
        super().__init__(id=id)
        self._letter = letter

    def compose(self) -> ComposeResult:
        """Yield bar and text."""
        yield ProgressBar(total=1, show_percentage=False, show_eta=False)
        with VerticalScroll(can_focus=False):
            yield Static("", markup=False)

    def on_mount(self) -> None:
        """Keep the newest text in sight."""
        self.query_one(VerticalScroll).anchor()
        self._show(self.lane)

    def watch_lane(self, lane: LaneSnapshot) -> None:
        """Show what is new."""
        if self.is_mounted:
            self._show(lane)

    def _show(self, lane: LaneSnapshot) -> None:
        for state in ("live", "replayed"):
            self.set_class(lane.state == state or (state == "live" and lane.state == "reading"), f"-{state}")
        self.border_title = plain_line(f"{self._letter}: {lane.title}")
        self.border_subtitle = plain_line(lane_words(lane))
        self.query_one(ProgressBar).update(total=max(1, lane.max_tokens), progress=lane.num_tokens)
        text = one_line(lane.reason) if lane.state == "not_run" else lane.text[-_SHOWN_CHARACTERS:]
        self.query_one(Static).update(plain(text))


def lane_words(lane: LaneSnapshot) -> str:
    """Return how far a lane is, such as `● live · 57 of 128 tokens · 41.3 tokens/s`."""
    parts = [_STATES[lane.state] if lane.title else ""]
    if lane.state == "replayed":
        parts = [f"{_STATES['replayed']} of pair {lane.pair + 1}"]
    if lane.num_tokens:
        parts.append(f"{lane.num_tokens} of {lane.max_tokens} tokens")
        if lane.decode_tps is not None:
            parts.append(f"{rate_text(lane.decode_tps)} tokens/s")
    return " · ".join(part for part in parts if part)
