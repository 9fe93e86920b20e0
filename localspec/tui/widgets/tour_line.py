"""The line of a recorded session that says what to try next: a tour of a minute, at the visitor's own pace."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.tui.state import EngineState

_WORDS = {
    "chat": (
        "Enter asks what was asked when this was recorded",
        "recorded, too: each round, each figure, and the pace of it",
        "ctrl+t: where each token came from; Enter asks on. Then F5",
    ),
    "compare": (
        "r races off against the draft: three pairs on two texts",
        "one arm at a time; the other's last run goes along as a ghost",
        "the run is kept: F6. Or race n-grams: b, choose ngram, ctrl+s, r",
    ),
    "runs": ("every round of it is kept; p writes a report. Then F3", "", ""),
    "fit": ("left and right change the context, and the plan follows. Then F2", "", ""),
    "models": ("what may draft for what, and why. F1 lists the keys, ctrl+q leaves", "", ""),
}
"""Of each screen: to begin with, while the engine is at work, and afterwards."""

_STOPS = {"chat": 1, "compare": 2, "runs": 3, "fit": 4, "models": 5}


class TourLine(Widget):
    """Always one line. It follows what the engine does while its own screen is shown."""

    DEFAULT_CSS = """
    TourLine { height: 1; padding: 0 1; background: $primary 20%; color: $text; }
    """

    engine_state: reactive[EngineState] = reactive(EngineState)
    """What the engine does."""

    def __init__(self, mode: str) -> None:
        """Take the mode of the screen that the line belongs to."""
        super().__init__()
        self._mode = mode
        self._has_worked = False

    def watch_engine_state(self, state: EngineState) -> None:
        """Remember that something was tried here."""
        self._has_worked = self._has_worked or (bool(state.busy) and self.screen.is_current)

    def render(self) -> Content:
        """Return the stop of the tour, and what to try."""
        words = tour_words(self._mode, bool(self.engine_state.busy), self._has_worked)
        line = Content.assemble((f"Tour {_STOPS.get(self._mode, 1)}/{len(_STOPS)}", "bold $text-primary"), f"  {words}")
        return line.truncate(max(1, self.content_size.width), ellipsis=True)


def tour_words(mode: str, is_busy: bool, has_worked: bool) -> str:
    """Return what to try on a screen, or what is to be seen there; empty for a screen that the tour leaves out."""
    before, meanwhile, afterwards = _WORDS.get(mode, ("", "", ""))
    if is_busy and meanwhile:
        return meanwhile
    return afterwards if has_worked and afterwards else before
