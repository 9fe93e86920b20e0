"""Facts with their names, one below the other."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from localspec.session.plain_text import one_line
from localspec.tui.widgets.flowing_lines import FlowingLines, wrapped

Fact = tuple[str, str]
"""A name and a text."""

_MAX_LABEL = 18


class FactList(FlowingLines):
    """Names at the left; a text that is too long goes on below itself."""

    facts: reactive[tuple[Fact, ...]] = reactive(tuple, layout=True)
    """What is shown. Its texts may come from files."""

    def __init__(self, facts: tuple[Fact, ...] = (), classes: str = "") -> None:
        """Take the facts."""
        super().__init__(classes=classes)
        self.set_reactive(FactList.facts, facts)

    def lines_for(self, width: int) -> list[Content]:
        """Return the lines."""
        margin = min(max((len(label) for label, _ in self.facts), default=0), _MAX_LABEL, max(1, width // 3))
        lines: list[Content] = []
        for label, fact in self.facts:
            shown = Content(one_line(label)).truncate(margin, ellipsis=True)
            first = shown.plain + " " * (margin - shown.cell_length + 2)
            lines += wrapped(one_line(fact), width, first, " " * (margin + 2))
        return lines
