"""What the highlighted repository offers: quantisations with size, what is here, and what fits."""

from __future__ import annotations

from rich.text import Text
from textual.events import Resize
from textual.widgets import DataTable

from localspec.session.figures import bytes_text
from localspec.session.plain_text import one_line
from localspec.tui.hub_browsing import BADGES, OfferRow

_SIZE_WIDTH, _HERE_WIDTH, _FIT_WIDTH = 9, 7, 15


class HubOffers(DataTable[Text]):
    """A row for each offer, the smallest first."""

    def __init__(self, id: str) -> None:  # noqa: A002
        """Make an empty table."""
        super().__init__(id=id, cursor_type="row")
        self._rows: tuple[OfferRow, ...] = ()

    @property
    def current(self) -> OfferRow | None:
        """The offer under the cursor."""
        return self._rows[self.cursor_row] if 0 <= self.cursor_row < len(self._rows) else None

    def show(self, rows: tuple[OfferRow, ...]) -> None:
        """Show these offers; where they are the same as before, the cursor stays."""
        is_same = [row.offer for row in rows] == [row.offer for row in self._rows]
        place = self.cursor_row if is_same else 0
        if rows != self._rows or not self.columns:
            self._rows = rows
            self._fill()
            self.move_cursor(row=place)

    def on_resize(self, event: Resize) -> None:
        """Give the labels the room that there is."""
        place = self.cursor_row
        self._fill()
        self.move_cursor(row=place)

    def _fill(self) -> None:
        self.clear(columns=True)
        room = self.size.width - _SIZE_WIDTH - _HERE_WIDTH - _FIT_WIDTH - 9
        self.add_column(Text("Quantisation"), width=max(8, room))
        self.add_column(Text("Size", justify="right"), width=_SIZE_WIDTH)
        self.add_column(Text("Here"), width=_HERE_WIDTH)
        self.add_column(Text("Memory"), width=_FIT_WIDTH)
        for row in self._rows:
            label = one_line(row.offer.quantisation)
            if row.offer.kind != "model":
                label += f" ({row.offer.kind} draft only)"
            self.add_row(
                Text(label, no_wrap=True, overflow="ellipsis"),
                Text(bytes_text(row.offer.size_bytes or None), justify="right", no_wrap=True),
                Text(row.presence, no_wrap=True),
                Text(_badge(row), no_wrap=True),
            )


def _badge(row: OfferRow) -> str:
    if row.failure:
        return "? unknown"
    return "" if row.fit is None else BADGES[row.fit.verdict][0]
