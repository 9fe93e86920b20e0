"""The screen of local models: choose a target and a draft, see why they go together, fetch and remove."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import DescendantBlur, DescendantFocus
from textual.message import Message
from textual.reactive import var
from textual.widgets import DataTable, Input, Static

from localspec.errors import LocalspecError
from localspec.session.figures import bytes_text
from localspec.tui.download_queue import Transfers
from localspec.tui.keyed import keyed
from localspec.tui.model_library import Drafts, Library, load_library
from localspec.tui.model_rows import COLUMNS, NUMERIC, Column, matching, ordered, row_of
from localspec.tui.plain import plain, plain_line
from localspec.tui.screens.base import ModeScreen
from localspec.tui.screens.models_pairing import ModelsPairing
from localspec.tui.state import ChosenModel
from localspec.tui.widgets.models_details import ModelsDetails
from localspec.tui.widgets.models_downloads import ModelsDownloads
from localspec.tui.widgets.models_drafts import ModelsDrafts
from localspec.tui.widgets.models_table import ModelsTable

if TYPE_CHECKING:
    pass

EMPTY = (
    "There are no models here yet.\n\n"
    "Press {models.hub} to find models on the Hub,\n"
    "or {models.demo} for the embedded demo models, which need no network.\n\n"
    "Folders of your own go into the settings ({app.settings})."
)
_FILTER = "words to look for; {models.stop} shows all"


class ModelsScreen(ModelsPairing):
    """Table, details, drafts and downloads. What needs the network waits for a key."""

    MODE = "models"
    CSS_PATH = "models.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (28, "-tall")]  # noqa: RUF012
    AUTO_FOCUS = "#table"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "choose_target", "Target", id="models.target", tooltip="Take the model as the target"),
        Binding("d", "choose_draft", "Draft", id="models.draft", tooltip="Take it as the draft, if it is a pair"),
        Binding(
            "D", "choose_draft(True)", "Force", id="models.force", show=False, tooltip="Take it as the draft anyway"
        ),
        Binding("slash", "filter", "Filter", id="models.filter", tooltip="Show models whose texts hold some words"),
        Binding("h", "find", "Hub", id="models.hub", tooltip="Find models on the Hugging Face Hub"),
        Binding("p", "search_drafts", "Pairs", id="models.pairs", tooltip="Search the Hub for drafts of this model"),
        Binding("g", "demo", "Demo", id="models.demo", tooltip="Prepare and choose the embedded demo models"),
        Binding("b", "probe", "Probe", id="models.probe", tooltip="What its steps cost, and which drafts would pay"),
        Binding("u", "app.tune", "Tune", id="models.tune", tooltip="Search the best settings for it", show=False),
        Binding("i", "turn_side", "Side", id="models.side", tooltip="Details, drafts or neither below the table"),
        Binding("s", "sort", "Sort", id="models.sort", tooltip="Sort by the next column"),
        Binding("S", "sort_back", "Reverse", id="models.reverse", show=False, tooltip="Reverse the order"),
        Binding("r,ctrl+r", "refresh", "Refresh", id="models.refresh", tooltip="Look at all folders again"),
        Binding("x,delete", "remove", "Remove", id="models.remove", tooltip="Remove the model from this machine"),
        Binding(
            "escape", "stop", "Stop", id="models.stop", show=False, tooltip="Stop the work, the filter or downloads"
        ),
    ]

    words: var[str] = var("", init=False)
    """The filter."""
    sorting: var[tuple[Column, bool]] = var(("name", False), init=False)
    """Column, and whether it descends."""

    class LibraryRead(Message):
        """More is known of the models here."""

        def __init__(self, library: Library) -> None:
            """Take what is known."""
            super().__init__()
            self.library = library

        def can_replace(self, message: Message) -> bool:
            """A later state makes an earlier one worthless."""
            return isinstance(message, ModelsScreen.LibraryRead)

    def compose_body(self) -> ComposeResult:
        """Yield table, side and downloads."""
        with Vertical(id="body"):
            with Vertical(id="table-panel", classes="panel"):
                yield Input(placeholder=keyed(_FILTER), id="filter", compact=True)
                yield ModelsTable(id="table").data_bind(ModeScreen.workbench)
                yield Static(plain(keyed(EMPTY)), id="empty", markup=False)
                yield Static("", id="activity", markup=False)
            with Vertical(id="side"):
                details = VerticalScroll(id="details-panel", classes="panel")
                details.border_title = "Details"
                with details:
                    yield ModelsDetails()
                drafts = Vertical(id="drafts-panel", classes="panel")
                drafts.border_title = "What may draft for it"
                with drafts:
                    yield ModelsDrafts(id="drafts").data_bind(ModelsPairing.drafts)
        downloads = Vertical(id="downloads-panel", classes="panel")
        downloads.border_title = "Downloads"
        with downloads:
            yield ModelsDownloads(id="downloads")

    def on_mount(self) -> None:
        """Follow the downloads, and look at the folders."""
        self.query_one("#table-panel").border_title = "Models here"
        self.watch(self.app, "transfers", self._follow_transfers)
        # A person sees the screen first: looking starts a process, and imports what reads headers.
        self.call_after_refresh(self.look)

    def show_keys(self) -> None:
        """Say anew what names keys."""
        self.query_one("#filter", Input).placeholder = keyed(_FILTER)
        self.query_one("#empty", Static).update(plain(keyed(EMPTY)))
        self.show_download_keys()

    def _follow_transfers(self, old: Transfers, transfers: Transfers) -> None:
        self.show_downloads()
        done = {item.key for item in old if item.status == "done"}
        if any(item.status == "done" and item.key not in done for item in transfers):
            self.look()

    # What is here.

    @work(exclusive=True, group="library", exit_on_error=False)
    async def look(self) -> None:
        """Look at all folders and read what is new."""
        publish = self._publish_library
        await self.host.prepare_engines()
        try:
            publish(await load_library(self.host.services.settings, self.host.room.probe, publish))
        except LocalspecError as error:
            self.host.show_failure(error)
            publish(replace(self.library, activity=""))

    def _publish_library(self, library: Library) -> None:
        self.post_message(self.LibraryRead(library))

    @on(LibraryRead)
    def _take_library(self, message: LibraryRead) -> None:
        message.stop()
        self.library = message.library

    def watch_library(self, library: Library) -> None:
        """Show what is known."""
        self.set_class(library.is_empty, "-empty")
        self._show_rows()
        self._show_activity()
        self.show_downloads()
        if not library.activity:
            self.settle()

    def watch_words(self) -> None:
        """Show what matches."""
        self._show_rows()

    def watch_sorting(self) -> None:
        """Show the rows in the new order."""
        self._show_rows()

    def watch_activity(self) -> None:
        """Say what is going on."""
        self._show_activity()

    def _show_activity(self) -> None:
        text = self.activity or self.library.activity
        self.set_class(bool(text), "-active")
        self.query_one("#activity", Static).update(plain_line(f"{text} …" if text else ""))

    def _show_rows(self) -> None:
        rows = [row_of(entry) for entry in self.library.entries]
        column, is_descending = self.sorting
        shown = ordered(matching(rows, self.words), column, is_descending)
        self.table.show(shown, column, is_descending)
        size = bytes_text(sum(row.entry.found.file_bytes for row in shown))
        of = f" of {len(rows)}" if len(shown) != len(rows) else ""
        self.query_one("#table-panel").border_subtitle = f"{len(shown)}{of}, {size}" if rows else ""
        self.show_current()

    # The keys of the table.

    def action_filter(self) -> None:
        """Type words."""
        self.add_class("-filtering")
        self.query_one("#filter", Input).focus()

    @on(Input.Changed, "#filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.words = event.value

    @on(Input.Submitted, "#filter")
    def _filter_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.set_class(bool(event.value), "-filtering")
        self.table.focus()

    def action_sort(self) -> None:
        """Sort by the next column."""
        columns = list(COLUMNS)
        column = columns[(columns.index(self.sorting[0]) + 1) % len(columns)]
        self.sorting = (column, column in NUMERIC)

    def action_sort_back(self) -> None:
        """Reverse the order."""
        column, is_descending = self.sorting
        self.sorting = (column, not is_descending)

    @on(DataTable.HeaderSelected, "#table")
    def _heading_clicked(self, event: DataTable.HeaderSelected) -> None:
        event.stop()
        column = next((name for name in COLUMNS if name == event.column_key.value), None)
        if column is not None:
            is_same = column == self.sorting[0]
            self.sorting = (column, not self.sorting[1] if is_same else column in NUMERIC)

    def action_refresh(self) -> None:
        """Look at all folders again."""
        self.drafts = Drafts()
        self.look()

    def action_turn_side(self) -> None:
        """Below the table: details, then drafts, then nothing."""
        if self.has_class("-drafts"):
            self.remove_class("-drafts")
            self.add_class("-plain")
        elif self.has_class("-plain"):
            self.remove_class("-plain")
        else:
            self.add_class("-drafts")

    @on(DescendantFocus)
    @on(DescendantBlur)
    def _focus_moved(self) -> None:
        self.set_class(self.focused is not None and self.focused.id == "downloads", "-at-downloads")
        self.show_download_keys()

    def action_find(self) -> None:
        """Open the search of the Hub."""
        from localspec.tui.screens.hub import HubScreen

        self.app.push_screen(HubScreen(self.library))

    def action_probe(self) -> None:
        """Time the highlighted model's steps."""
        from localspec.tui.screens.probe import ProbeScreen

        if (row := self.current) is not None:
            self.app.push_screen(ProbeScreen(ChosenModel(row.name, row.path)))

    def action_stop(self) -> None:
        """Stop what is going on; else leave the filter."""
        search = self.query_one("#filter", Input)
        if not search.has_focus and (self.activity or self.library.activity or self.drafts.activity):
            for group in ("library", "drafts", "demo", "choice"):
                self.workers.cancel_group(self, group)
            self.activity = ""
            self.library = replace(self.library, activity="")
            self.drafts = replace(self.drafts, activity="", notes=(keyed("Stopped; {models.refresh} looks again."),))
        elif self.has_class("-filtering"):
            search.value = ""
            self.remove_class("-filtering")
            self.table.focus()
        elif self.host.downloads.pause_all():
            words = keyed("Downloading is paused; {downloads.pause} in the list of downloads goes on.")
            self.notify(words, markup=False)
