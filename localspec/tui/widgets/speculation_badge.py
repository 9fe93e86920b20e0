"""Whether speculation is on, in as many words as there is room for: the end of the bar of screens."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.engine.values import SpeculationState
from localspec.methods import is_adaptive, longest_draft
from localspec.session.drafting_text import drafter_phrase
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
    settings = speculation.settings
    method = settings.method
    longest = longest_draft(method, settings.n_max)
    drafter = one_line(speculation.drafter)
    # Of several drafters the method says more than the first one's name.
    brief = method if method in ("cascade", "auto") else drafter.partition(" ")[0]
    phrase = phrase_of(speculation)
    is_paced = is_adaptive(method, settings.pacing)
    wordings = (
        f"speculation ON ({phrase})",
        f"ON {phrase}",
        f"ON {brief}, up to {longest}" if is_paced else f"ON {brief}, n_max {longest}",
        f"ON {brief} \N{LESS-THAN OR EQUAL TO}{longest}" if is_paced else f"ON {brief} {longest}",
        "ON",
    )
    return [(f"● {words}", "$text-success") for words in wordings]


def phrase_of(speculation: SpeculationState) -> str:
    """Return how the engine drafts, such as `draft X, n_max 4`; the name in it is one line."""
    settings = speculation.settings
    return drafter_phrase(
        one_line(speculation.drafter), settings.method, settings.n_max, settings.pacing, settings.verification
    )
