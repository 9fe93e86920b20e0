"""What a search found, in sentences."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from localspec.session.plain_text import one_line
from localspec.tui.tuning_state import TuneOutcome
from localspec.tui.widgets.flowing_lines import FlowingLines, wrapped

_TONES = {
    "won": ("\N{BLACK UP-POINTING TRIANGLE} ", "$text-success"),
    "off": ("= ", "$text-warning"),
    "open": ("? ", "$text-warning"),
}


class TuneResult(FlowingLines):
    """The verdict first, then what stood against it, then what to know of the figures."""

    outcome: reactive[TuneOutcome | None] = reactive(None, layout=True)
    """None before the first search has ended."""

    def lines_for(self, width: int) -> list[Content]:
        """Return the lines."""
        outcome = self.outcome
        if outcome is None:
            return []
        mark, style = _TONES[outcome.tone]
        lines: list[Content] = []
        for place, sentence in enumerate(outcome.sentences):
            lines += wrapped(one_line(sentence), width, "  " if place else mark, "  ", "" if place else style)
        for note in outcome.notes:
            lines += wrapped(f"note: {one_line(note)}", width, "  ", "  ", "dim")
        return lines
