"""The dialog for what is generated from: workloads, or a prompt of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.widgets import SelectionList, Static, TextArea
from textual.widgets.selection_list import Selection

from localspec.catalog.workloads import Workload
from localspec.errors import UsageError
from localspec.session.plain_text import printable
from localspec.tui.compare_choice import CompareChoice
from localspec.tui.plain import plain_line
from localspec.tui.screens.compare_dialog import CompareDialog
from localspec.tui.widgets.choice_marks import MarkedList


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
        yield MarkedList[str](
            *(
                Selection(
                    plain_line(f"{workload.title} ({workload.name})"),
                    workload.name,
                    workload.name in self._choice.workloads,
                )
                for workload in self._workloads
            )
        )
        yield Static("or a prompt of your own, which then counts alone:", classes="hint", markup=False)
        yield TextArea(printable(self._choice.prompt), tab_behavior="focus")

    def read(self) -> CompareChoice:
        """Return the choice with other texts."""
        chosen = set(self.query_one(SelectionList).selected)
        names = tuple(workload.name for workload in self._workloads if workload.name in chosen)
        prompt = self.query_one(TextArea).text.strip()
        if not names and not prompt:
            raise UsageError("There is no text to generate from.", "Choose a workload, or write a prompt.")
        return replace(self._choice, workloads=names, prompt=prompt)
