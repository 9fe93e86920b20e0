"""The dialog for what is generated from: workloads, or a prompt of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.widgets import Static, TextArea

from localspec.catalog.workloads import Workload
from localspec.errors import UsageError
from localspec.session.plain_text import printable
from localspec.tui.compare_choice import CompareChoice
from localspec.tui.screens.compare_dialog import CompareDialog
from localspec.tui.widgets.text_choice import TextChoice


class CompareText(CompareDialog[CompareChoice]):
    """A prompt counts before workloads."""

    HEADING = "Text to generate from"

    def __init__(self, choice: CompareChoice, workloads: Sequence[Workload]) -> None:
        """Take what is chosen now, and all workloads that there are."""
        super().__init__()
        self._choice = choice
        self._workloads = workloads

    def compose_fields(self) -> ComposeResult:
        """Yield the list and the entry."""
        yield TextChoice(self._workloads, self._choice.workloads, self._choice.is_own)
        yield Static("or a prompt of your own, which then counts alone:", classes="hint", markup=False)
        yield TextArea(printable(self._choice.prompt), tab_behavior="focus")

    def read(self) -> CompareChoice:
        """Return the choice with other texts."""
        texts = self.query_one(TextChoice)
        prompt = self.query_one(TextArea).text.strip()
        if not (texts.workloads or texts.is_own or prompt):
            raise UsageError("There is no text to generate from.", "Choose a workload, or write a prompt.")
        return replace(self._choice, workloads=texts.workloads, is_own=texts.is_own, prompt=prompt)
