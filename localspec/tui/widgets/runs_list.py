"""The table of kept runs, with a filter above and the trend of the highlighted pair below."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import DataTable, Input, Static

from localspec.store.values import RunSummary
from localspec.tui.runs.rows import RunTable, filtered, pair_speedups, run_row, run_table
from localspec.tui.widgets.runs_trend import RunsTrend

MARK = "\N{CHECK MARK}"


class RunsList(Vertical):
    """Shows the runs that it is given; which is highlighted and which are marked are told by messages."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="runs.filter", tooltip="Show only some runs", key_display="/"),
    ]

    runs: reactive[tuple[RunSummary, ...]] = reactive(tuple, init=False)
    """Newest first."""
    marked: reactive[tuple[int, ...]] = reactive(tuple, init=False)
    """Numbers of the marked runs, in the order of marking."""

    class Highlighted(Message):
        """Another run is highlighted; None for none."""

        def __init__(self, run: RunSummary | None) -> None:
            super().__init__()
            self.run = run

        def can_replace(self, message: Message) -> bool:
            """The newest counts."""
            return isinstance(message, RunsList.Highlighted)

    class Opened(Message):
        """The highlighted run is to be read."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._shown: tuple[RunSummary, ...] = ()
        self._wanted: int | None = None
        self._drawn: tuple[RunTable, tuple[RunSummary, ...], tuple[int, ...]] | None = None

    def compose(self) -> ComposeResult:
        """Yield filter, table and trend."""
        yield Input(placeholder="/ filter: model, workload, arm, state, date …", compact=True, id="filter")
        table: DataTable[Text] = DataTable(cursor_type="row", zebra_stripes=False, id="runs")
        yield table
        yield Static("", id="no-match", markup=False, classes="muted")
        yield RunsTrend()

    @property
    def table(self) -> DataTable[Text]:
        """The table."""
        return self.query_one("#runs", DataTable)

    @property
    def highlighted(self) -> RunSummary | None:
        """The run under the cursor."""
        place = self.table.cursor_row
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def select(self, run_id: int) -> None:
        """Highlight a run, as soon as it is shown."""
        self._wanted = run_id
        self._fill()

    def watch_runs(self) -> None:
        """Show other runs."""
        known = {run.id for run in self.runs}
        self.marked = tuple(run_id for run_id in self.marked if run_id in known)
        self._fill()

    def watch_marked(self) -> None:
        """Show other marks."""
        self._fill()

    @on(events.Resize)
    def _resized(self) -> None:
        self._fill()

    @on(Input.Changed, "#filter")
    def _filtered(self, event: Input.Changed) -> None:
        event.stop()
        self._fill()

    @on(Input.Submitted, "#filter")
    def _filter_done(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()

    @on(DataTable.RowHighlighted, "#runs")
    def _moved(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self._tell()

    @on(DataTable.RowSelected, "#runs")
    def _chosen(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.post_message(self.Opened())

    def on_key(self, event: events.Key) -> None:
        """Lead from the filter down into the table."""
        if event.key == "down" and self.query_one(Input).has_focus:
            event.stop()
            self.table.focus()

    def action_filter(self) -> None:
        """Go to the filter."""
        self.query_one(Input).focus()

    def clear_filter(self) -> bool:
        """Empty the filter, go back to the table, and return whether there was anything to do."""
        field = self.query_one(Input)
        if not field.value and not field.has_focus:
            return False
        field.value = ""
        self.table.focus()
        return True

    def toggle_mark(self) -> None:
        """Mark the highlighted run, or take its mark away."""
        run = self.highlighted
        if run is not None:
            others = tuple(run_id for run_id in self.marked if run_id != run.id)
            self.marked = others if run.id in self.marked else (*others, run.id)

    def _fill(self) -> None:
        if not self.is_mounted:
            return
        table, before = self.table, self.highlighted
        here = None if before is None else before.id
        wanted = here if self._wanted is None else self._wanted
        if wanted == here:
            self._wanted = None
        place = table.cursor_row
        self._shown = filtered(self.runs, self.query_one(Input).value)
        # The mark's column and the bar for scrolling take their share.
        found = run_table(tuple(map(run_row, self._shown)), table.size.width - 5)
        drawn = found, self._shown, self.marked
        if drawn == self._drawn and wanted == here:
            return
        self._drawn = drawn
        with self.app.batch_update():
            table.clear(columns=True)
            table.add_column(Text(""), width=1)
            # With widths of their own: the table would measure its cells when it is idle, and be seen before that.
            for column in zip(found.headers, *found.rows, strict=True):
                table.add_column(Text(column[0]), width=max(map(cell_len, column)))
            for run, cells in zip(self._shown, found.rows, strict=True):
                mark = MARK if run.id in self.marked else " "
                table.add_row(Text(mark, style="bold"), *map(Text, cells), key=str(run.id))
            ids = [run.id for run in self._shown]
            if wanted in ids:
                place = ids.index(wanted)
                if wanted == self._wanted:
                    self._wanted = None
            if ids:
                table.move_cursor(row=min(max(0, place), len(ids) - 1), animate=False)
            note = self.query_one("#no-match", Static)
            note.display = bool(self.runs) and not ids
            note.update("No run has all these words." if note.display else "")
        self._tell()

    def _tell(self) -> None:
        run = self.highlighted
        self.query_one(RunsTrend).speedups = () if run is None else pair_speedups(self.runs, run)
        self.post_message(self.Highlighted(run))
