"""The repositories that a search of the Hub found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.events import Resize
from textual.widgets import DataTable

from localspec.session.figures import count_text
from localspec.session.plain_text import one_line

if TYPE_CHECKING:
    from localspec.catalog.hub.values import RepoHit

_PARAMS_WIDTH, _DOWNLOADS_WIDTH = 6, 9


class HubRepos(DataTable[Text]):
    """A row for each repository, in the Hub's order: what is fetched most comes first."""

    def __init__(self, id: str) -> None:  # noqa: A002
        """Make an empty table."""
        super().__init__(id=id, cursor_type="row")
        self._hits: tuple[RepoHit, ...] = ()

    @property
    def current(self) -> RepoHit | None:
        """The repository under the cursor."""
        return self._hits[self.cursor_row] if 0 <= self.cursor_row < len(self._hits) else None

    def show(self, hits: tuple[RepoHit, ...]) -> None:
        """Show these repositories, if they are others than now."""
        if hits != self._hits or not self.columns:
            self._hits = hits
            self._fill()

    def on_resize(self, event: Resize) -> None:
        """Give the names the room that there is."""
        place = self.cursor_row
        self._fill()
        self.move_cursor(row=place)

    def _fill(self) -> None:
        self.clear(columns=True)
        room = self.size.width - _PARAMS_WIDTH - _DOWNLOADS_WIDTH - 7
        self.add_column(Text("Repository"), width=max(8, room))
        self.add_column(Text("Params", justify="right"), width=_PARAMS_WIDTH)
        self.add_column(Text("Downloads", justify="right"), width=_DOWNLOADS_WIDTH)
        for hit in self._hits:
            name = one_line(hit.repo) + (" (gated)" if hit.is_gated else "")
            self.add_row(
                Text(name, no_wrap=True, overflow="ellipsis"),
                Text(count_text(hit.num_params), justify="right", no_wrap=True),
                Text(count_text(hit.downloads), justify="right", no_wrap=True),
            )
