"""The line of a recorded session that says what to try next: a tour of a minute, at the visitor's own pace."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.tui.keyed import keyed
from localspec.tui.state import EngineState

_WORDS = {
    "chat": (
        "{chat.send} asks what was asked when this was recorded",
        "recorded, too: each round, each figure, and the pace of it",
        "{chat.xray}: where each token came from; {chat.send} asks on. Then {mode.compare}",
    ),
    "compare": (
        "{compare.run} races off against the draft: three pairs on two texts",
        "one arm at a time; the other's last run goes along as a ghost",
        "the run is kept: {mode.runs}. Or race n-grams: {compare.right}, choose ngram, {compare.dialog.accept}, "
        "{compare.run}",
    ),
    "runs": ("every round of it is kept; {runs.report} writes a report. Then {mode.fit}", "", ""),
    "fit": (
        "{fit.context.less} and {fit.context.more} change the context, and the plan follows. Then {mode.models}",
        "",
        "",
    ),
    "models": ("what may draft for what, and why. {app.help} lists the keys, {app.quit} leaves", "", ""),
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
    return keyed(afterwards if has_worked and afterwards else before)
