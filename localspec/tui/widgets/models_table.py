"""The table of local models: which there are, and which of them is the target and which the draft."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import DataTable

from localspec.session.plain_text import one_line
from localspec.tui.model_rows import COLUMNS, NUMERIC, Column, ModelRow
from localspec.tui.state import Workbench

WIDTHS: dict[Column, int] = {
    "architecture": 12,
    "parameters": 6,
    "quantisation": 8,
    "size": 9,
    "context": 7,
    "where": 9,
}
_MARK_WIDTH = 2
_LEAST_NAME_WIDTH = 28
_LEAVING: tuple[Column, ...] = ("where", "architecture", "context", "quantisation", "parameters")
"""What goes first where there is no room."""


class ModelsTable(DataTable[Text]):
    """Shows rows that are filtered and sorted already. The name gets whatever width the other columns leave."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Target", id="models.choose", show=False, tooltip="Take it as the target")
    ]

    workbench: reactive[Workbench] = reactive(Workbench, init=False)
    """Whose target and draft are marked."""

    class Chosen(Message):
        """A model was chosen by Enter or a double click."""

    def __init__(self, id: str) -> None:  # noqa: A002
        """Make an empty table."""
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=1)
        self._rows: tuple[ModelRow, ...] = ()
        self._sorting: tuple[Column, bool] = ("name", False)
        self._laid_out: tuple[tuple[Column, ...], int] = ((), 0)

    @property
    def current(self) -> ModelRow | None:
        """The model under the cursor."""
        return self._rows[self.cursor_row] if 0 <= self.cursor_row < len(self._rows) else None

    def show(self, rows: Sequence[ModelRow], column: Column, is_descending: bool) -> None:
        """Show these rows, with the cursor on the same model as before if it is still there."""
        current = self.current
        self._rows = tuple(rows)
        self._sorting = (column, is_descending)
        self._fill(None if current is None else current.path)

    def watch_workbench(self) -> None:
        """Move the marks."""
        if self.columns:
            for row in self._rows:
                self.update_cell(row.name, "mark", self._mark(row))

    def on_resize(self, event: Resize) -> None:
        """Give the name the room that there is."""
        if self._layout_for(event.size.width) != self._laid_out:
            current = self.current
            self._fill(None if current is None else current.path)

    def on_click(self, event: Click) -> None:
        """A single click looks at a model, a double click takes it."""
        if event.chain == 2 and self.current is not None:
            self.post_message(self.Chosen())

    def action_choose(self) -> None:
        """Take the model under the cursor."""
        if self.current is not None:
            self.post_message(self.Chosen())

    def _layout_for(self, width: int) -> tuple[tuple[Column, ...], int]:
        """Return the columns that fit, and the width of the name."""
        columns = list(COLUMNS)
        leaving = list(_LEAVING)

        def room() -> int:
            others = [column for column in columns if column != "name"]
            # One cell of padding on each side of each column; one for the scroll bar.
            return width - _MARK_WIDTH - 2 - 2 - sum(WIDTHS[column] + 2 for column in others) - 1

        while leaving and room() < _LEAST_NAME_WIDTH:
            columns.remove(leaving.pop(0))
        return tuple(columns), max(8, room())

    def _fill(self, current: Path | None) -> None:
        columns, name_width = self._laid_out = self._layout_for(self.size.width)
        position = self.scroll_offset
        self.clear(columns=True)
        self.add_column(Text(""), key="mark", width=_MARK_WIDTH)
        for column in columns:
            width = name_width if column == "name" else WIDTHS[column]
            self.add_column(self._heading(column), key=column, width=width)
        for row in self._rows:
            self.add_row(self._mark(row), *(self._cell(row, column) for column in columns), key=row.name)
        place = next((index for index, row in enumerate(self._rows) if row.path == current), None)
        if place is not None:
            self.move_cursor(row=place, scroll=False)
            self.scroll_to(y=position.y, animate=False)

    def _heading(self, column: Column) -> Text:
        sorted_by, is_descending = self._sorting
        arrow = ("▼" if is_descending else "▲") if column == sorted_by else ""
        return Text(f"{COLUMNS[column]}{arrow}", justify=_side(column), no_wrap=True)

    def _mark(self, row: ModelRow) -> Text:
        bench = self.workbench
        is_target = bench.target is not None and bench.target.path == row.path
        is_draft = bench.draft is not None and bench.draft.path == row.path
        return Text(("T" if is_target else "") + ("D" if is_draft else ""), style="bold")

    def _cell(self, row: ModelRow, column: Column) -> Text:
        style = "dim" if row.entry.failure or column == "where" else ""
        text = one_line(row.cells[column])
        if column == "name" and row.entry.failure:
            text = f"! {text}"
        return Text(text, style=style, justify=_side(column), no_wrap=True, overflow="ellipsis")


def _side(column: Column) -> Literal["left", "right"]:
    return "right" if column in NUMERIC else "left"
