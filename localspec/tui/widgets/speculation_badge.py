"""Whether speculation is on, in as many words as there is room for: the end of the bar of screens."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.engine.values import SpeculationState
from localspec.session.figures import DASH
from localspec.session.plain_text import one_line
from localspec.tui.state import EngineState


class SpeculationBadge(Widget):
    """Reads the engine's own state, like the status line. ON and OFF differ in word, mark and colour."""

    DEFAULT_CSS = """
    SpeculationBadge { height: 1; width: 1fr; min-width: 7; padding: 0 1; text-align: right; }
    """

    engine_state: reactive[EngineState] = reactive(EngineState)
    """What the engine has."""

    def render(self) -> Content:
        """Return the longest wording that fits, or the shortest cut."""
        width = max(1, self.content_size.width)
        wordings = [Content.assemble((text, style)) for text, style in badge_wordings(self.engine_state.speculation)]
        fitting = next((words for words in wordings if words.cell_length <= width), wordings[-1])
        return fitting.truncate(width, ellipsis=True)


def badge_wordings(speculation: SpeculationState | None) -> list[tuple[str, str]]:
    """Return wordings with their style, the longest first."""
    if speculation is None:
        return [(f"speculation {DASH}", "dim"), (DASH, "dim")]
    if not speculation.is_on:
        reason = one_line(speculation.reason) or "switched off"
        return [(f"○ {words}", "$text-warning") for words in (f"speculation OFF ({reason})", "speculation OFF", "OFF")]
    drafter, n_max = one_line(speculation.drafter), speculation.settings.n_max
    brief = drafter.partition(" ")[0]
    wordings = (
        f"speculation ON ({drafter}, n_max {n_max})",
        f"ON {drafter}, n_max {n_max}",
        f"ON {brief}, n_max {n_max}",
        f"ON {brief} {n_max}",
        "ON",
    )
    return [(f"● {words}", "$text-success") for words in wordings]
