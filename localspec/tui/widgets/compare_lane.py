"""One arm's lane: what it writes, how far it is and how fast."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.reactive import var

from localspec.session.plain_text import one_line
from localspec.tui.plain import plain_line
from localspec.tui.race import LaneSnapshot
from localspec.tui.widgets.compare_gauge import CompareGauge
from localspec.tui.widgets.compare_text import CompareText


class CompareLane(Vertical):
    """Shows a LaneSnapshot, the ghost's with a dashed border."""

    DEFAULT_CSS = """
    CompareLane {
        border: round $foreground 25%;
        border-title-color: $text;
        padding: 0 1;
        &.-live { border: heavy $accent; }
        &.-replayed { border: dashed $secondary; }
        &.-replayed CompareText { color: $text-muted; }
    }
    """

    lane: var[LaneSnapshot] = var(LaneSnapshot)
    """What is shown."""

    def __init__(self, letter: str, id: str) -> None:  # noqa: A002
        """Take the letter that the lane is called by."""
        super().__init__(id=id)
        self._letter = letter
        self._title: str | None = None

    def compose(self) -> ComposeResult:
        """Yield gauge and text."""
        yield CompareGauge().data_bind(CompareLane.lane)
        yield CompareText()

    def on_mount(self) -> None:
        """Show what there is."""
        self._show(self.lane)

    def watch_lane(self, lane: LaneSnapshot) -> None:
        """Show what is new."""
        if self.children:
            self._show(lane)

    def _show(self, lane: LaneSnapshot) -> None:
        self.set_class(lane.state in ("live", "reading"), "-live")
        self.set_class(lane.state == "replayed", "-replayed")
        if lane.title != self._title:
            # Setting it draws the whole lane anew.
            self._title = lane.title
            self.border_title = plain_line(f"{self._letter}: {lane.title}")
        self.query_one(CompareText).text = one_line(lane.reason) if lane.state == "not_run" else lane.text
