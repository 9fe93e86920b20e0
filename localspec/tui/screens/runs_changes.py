"""Two kept runs beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from localspec.store.values import RunSummary
from localspec.tui.plain import MUTED, plain_line
from localspec.tui.runs.changes import RunChanges
from localspec.tui.runs.rows import run_row
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.key_line import KeyLine


class RunsChanges(ModalScreen[None]):
    """What differs between two runs, and what became of every arm's speed."""

    CSS_PATH = "runs_changes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back", id="changes.back", tooltip="Back to the runs"),
    ]

    def __init__(self, changes: RunChanges) -> None:
        """Take what is shown."""
        super().__init__()
        self._changes = changes

    def compose(self) -> ComposeResult:
        """Yield the box."""
        box = VerticalScroll(id="box")
        box.border_title = f"Run {self._changes.before.id} against run {self._changes.after.id}"
        with box:
            yield from self._blocks()
        yield KeyLine()

    def on_mount(self) -> None:
        """Let the keys scroll."""
        self.query_one("#box").focus()

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)

    def _blocks(self) -> Iterator[Widget]:
        changes = self._changes
        yield Static(_line(changes.before), markup=False)
        yield Static(_line(changes.after), markup=False)
        if changes.differences:
            yield Static("What differs", markup=False, classes="heading")
            for difference in changes.differences:
                yield Static(plain_line(difference), markup=False)
        else:
            text = "Settings, build, device, power and files are the same, as far as they are known."
            yield Static(text, markup=False, classes="spaced muted")
        for workload in changes.workloads:
            yield Static(plain_line(workload.title), markup=False, classes="heading")
            if workload.note:
                yield Static(Content.assemble(("! ", "bold $text-warning"), plain_line(workload.note)), markup=False)
            yield FigureTable(workload.figures)
        for place, sentence in enumerate(changes.unmatched):
            yield Static(plain_line(sentence), markup=False, classes="" if place else "spaced")


def _line(summary: RunSummary) -> Content:
    row = run_row(summary)
    return Content.assemble((f"run {row.id}", "bold"), f"  {row.at}  {row.models}  ", (row.state, MUTED))
