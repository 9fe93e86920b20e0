"""The dialog for what is tuned: texts, draft models, and how long it may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.widgets import Input, Label, SelectionList
from textual.widgets.selection_list import Selection

from localspec.catalog.workloads import Workload
from localspec.errors import UsageError
from localspec.tui.plain import plain_line
from localspec.tui.screens.compare_dialog import CompareDialog, field
from localspec.tui.state import ChosenModel
from localspec.tui.tune_choice import TuneChoice
from localspec.tui.widgets.choice_marks import MarkedList
from localspec.tui.widgets.text_choice import TextChoice


class TuneWish(CompareDialog[TuneChoice]):
    """Gives another choice."""

    HEADING = "What to tune for"

    def __init__(
        self,
        choice: TuneChoice,
        workloads: Sequence[Workload],
        drafts: Sequence[ChosenModel],
        chosen: Sequence[ChosenModel],
    ) -> None:
        """Take what is chosen now, all workloads, the models that may draft, and those of them that are candidates."""
        super().__init__()
        self._choice = choice
        self._workloads = workloads
        self._drafts = tuple(drafts)
        self._chosen = {draft.path for draft in chosen}

    def compose_fields(self) -> ComposeResult:
        """Yield time and two lists."""
        yield field("time, loading included", "budget", self._choice.budget)
        yield Label("texts", classes="hint", markup=False)
        yield TextChoice(self._workloads, self._choice.workloads, self._choice.is_own)
        yield Label("draft models that may be used", classes="hint", markup=False)
        if self._drafts:
            yield MarkedList[int](
                *(
                    Selection(plain_line(draft.name), place, draft.path in self._chosen)
                    for place, draft in enumerate(self._drafts)
                ),
                id="drafts",
            )
        else:
            yield Label("none here goes with the target; the Models screen finds some", markup=False)

    def read(self) -> TuneChoice:
        """Return the choice."""
        from localspec.session.tuning.budget import parse_budget

        budget = self.query_one("#field-budget", Input).value.strip()
        parse_budget(budget)
        texts = self.query_one(TextChoice)
        if not (texts.workloads or texts.is_own):
            raise UsageError("There is no text to tune for.", "Choose at least one.")
        places = sorted(self.query_one("#drafts", SelectionList).selected) if self._drafts else []
        return replace(
            self._choice,
            budget=budget,
            workloads=texts.workloads,
            is_own=texts.is_own,
            drafts=tuple(self._drafts[place] for place in places),
        )
