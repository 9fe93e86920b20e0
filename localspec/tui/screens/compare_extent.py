"""The dialog for how much is measured."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.widgets import Input, Static

from localspec.tui.compare_choice import MAX_PAIRS, CompareChoice
from localspec.tui.screens.compare_dialog import CompareDialog, decimal, field, whole_number

_MOST_TOKENS = 1_000_000


class CompareExtent(CompareDialog[CompareChoice]):
    """Tokens of a run, and when it is enough."""

    HEADING = "How much to measure"

    def __init__(self, choice: CompareChoice) -> None:
        """Take what is chosen now."""
        super().__init__()
        self._choice = choice

    def compose_fields(self) -> ComposeResult:
        """Yield three numbers."""
        yield field("tokens of each run", "tokens", str(self._choice.max_tokens))
        yield field("pairs at most", "pairs", str(self._choice.num_pairs))
        yield field("enough at \N{PLUS-MINUS SIGN} percent", "percent", f"{self._choice.percent:g}")
        yield Static(
            "A pair is one run of each arm. It ends early once the speedup is known that exactly, which takes three "
            "pairs at least; 0 percent always runs all pairs.",
            classes="hint",
            markup=False,
        )

    def read(self) -> CompareChoice:
        """Return the choice with another extent."""
        return replace(
            self._choice,
            max_tokens=whole_number(self._text("tokens"), "The number of tokens", 2, _MOST_TOKENS),
            num_pairs=whole_number(self._text("pairs"), "The number of pairs", 1, MAX_PAIRS),
            percent=decimal(self._text("percent"), "Percent", 0.0, 100.0),
        )

    def _text(self, name: str) -> str:
        return self.query_one(f"#field-{name}", Input).value
