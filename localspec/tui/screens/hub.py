"""Find on the Hub: words, repositories, what they offer, and whether it fits before a byte of weights is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import DataTable, Input

from localspec.errors import LocalspecError
from localspec.tui.hub_browsing import (
    NUM_HITS,
    Browsing,
    OfferRow,
    PlannedFetch,
    fit_offer,
    offer_rows,
    plan_fetch,
    to_fetch,
)
from localspec.tui.keyed import keyed
from localspec.tui.model_library import Library
from localspec.tui.screens.base import ModeScreen
from localspec.tui.widgets.hub_details import HubDetails
from localspec.tui.widgets.hub_offers import HubOffers
from localspec.tui.widgets.hub_repos import HubRepos

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoListing

_SETTLED_S = 0.3
"""Something is asked about a row when the cursor has rested on it so long."""


class HubScreen(ModeScreen):
    """Asks the Hub only after Enter in the search, and then about what the cursor is moved to."""

    MODE = "models"
    CSS_PATH = "hub.tcss"
    AUTO_FOCUS = "#search"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (30, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="hub.back", tooltip="Stop what is going on, or go a step back"),
        Binding("slash", "search", "Search", id="hub.search", tooltip="Type other words"),
        Binding("o", "fetch_target", "Target only", id="hub.target", tooltip="Fetch it without a draft"),
    ]

    browsing: var[Browsing] = var(Browsing, init=False)
    """Everything that is shown."""

    class BrowsingChanged(Message):
        """More is known."""

        def __init__(self, browsing: Browsing) -> None:
            """Take what is known."""
            super().__init__()
            self.browsing = browsing

        def can_replace(self, message: Message) -> bool:
            """A later state makes an earlier one worthless."""
            return isinstance(message, HubScreen.BrowsingChanged)

    def __init__(self, library: Library) -> None:
        """Prepare the search.

        Args:
            library: the models of this machine.
        """
        super().__init__()
        self._library = library
        self._known = Browsing()
        """The newest state, of which messages may still be under way."""
        self._settling: Timer | None = None

    @property
    def repos(self) -> HubRepos:
        """The table of repositories."""
        return self.query_one(HubRepos)

    @property
    def offers(self) -> HubOffers:
        """The table of offers."""
        return self.query_one(HubOffers)

    def compose_body(self) -> ComposeResult:
        """Yield search, lists and details."""
        search = Input(placeholder="family and size, such as qwen3 4b", id="search")
        search.border_title = "Find on the Hub"
        yield search
        with Vertical(id="lists"):
            with Vertical(id="repos-panel", classes="panel") as repos:
                repos.border_title = "Repositories"
                yield HubRepos(id="repos")
            with Vertical(id="offers-panel", classes="panel") as offers:
                offers.border_title = "Quantisations"
                yield HubOffers(id="offers")
        with VerticalScroll(id="hub-panel", classes="panel", can_focus=False):
            yield HubDetails().data_bind(HubScreen.browsing)

    def watch_browsing(self, browsing: Browsing) -> None:
        """Show what is known."""
        self.repos.show(browsing.hits)
        self.offers.show(browsing.rows)
        self.query_one(HubDetails).row = self.offers.current

    def _publish(self, **changes: object) -> None:
        self._known = replace(self._known, **changes)  # type: ignore[arg-type]
        self.post_message(self.BrowsingChanged(self._known))

    @on(BrowsingChanged)
    def _take(self, message: BrowsingChanged) -> None:
        message.stop()
        self.browsing = message.browsing

    @asynccontextmanager
    async def _asking(self, activity: str) -> AsyncIterator[Hub]:
        """Give an open Hub, say what is going on, and show a failure in place of it."""
        self._publish(activity=activity, failure="", hint="", told="")
        try:
            hub = await asyncio.to_thread(self.host.services.open_hub)
            try:
                yield hub
            finally:
                await hub.close()
        except LocalspecError as error:
            self._publish(activity="", failure=error.message, hint=error.hint)
        except Exception as error:
            self._publish(activity="", failure=f"This should not have happened: {error!r}", hint="Try again.")
            raise
        else:
            # Not when it is cancelled: what is going on then is somebody else's.
            self._publish(activity="")

    # Words and repositories.

    @on(Input.Submitted, "#search")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if words := event.value.strip():
            self.search(words)

    @work(exclusive=True, group="hub", exit_on_error=False)
    async def search(self, words: str) -> None:
        """Ask for repositories."""
        async with self._asking(f"searching the Hub for {words}") as hub:
            hits = await hub.search(words, NUM_HITS)
            self._publish(words=words, hits=hits, listing=None, rows=(), planned=None)
            if hits:
                self.repos.focus()

    @on(DataTable.RowHighlighted, "#repos")
    def _repo_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self._settle(self._list_current)

    @on(DataTable.RowSelected, "#repos")
    def _repo_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if self.browsing.rows:
            self.offers.focus()

    def _list_current(self) -> None:
        hit = self.repos.current
        listing = self._known.listing
        if hit is not None and (listing is None or listing.repo != hit.repo):
            self.list_repo(hit.repo)

    @work(exclusive=True, group="hub", exit_on_error=False)
    async def list_repo(self, repo: str) -> None:
        """Ask what a repository offers."""
        self._publish(listing=None, rows=(), planned=None)
        async with self._asking(f"asking what {repo} offers") as hub:
            listing = await hub.listing(repo)
            rows = await asyncio.to_thread(offer_rows, listing, self._library)
            self._publish(listing=listing, rows=rows)

    # What it offers.

    @on(DataTable.RowHighlighted, "#offers")
    def _offer_highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        row = self.offers.current
        self.query_one(HubDetails).row = row
        planned = self._known.planned
        if planned is not None and row is not None and planned.plan.target.offer != row.offer:
            self._publish(planned=None)
        self._settle(self._fit_current)

    def _fit_current(self) -> None:
        row = self.offers.current
        is_asked = self.focused is self.offers and self._known.planned is None and not self._known.activity
        if row is not None and is_asked and row.fit is None and not row.failure and row.offer.kind == "model":
            self.fit(row)

    @work(exclusive=True, group="hub", exit_on_error=False)
    async def fit(self, row: OfferRow) -> None:
        """Say whether an offer fits, by its header."""
        listing, host = self._known.listing, self.host
        if listing is None:
            return
        async with self._asking("reading its header") as hub:
            try:
                plan = await fit_offer(
                    host.room.probe, hub, listing, row.offer, self._library, host.workbench, host.services.settings
                )
                new = replace(row, fit=plan)
            except LocalspecError as error:
                new = replace(row, failure=error.message)
            rows = tuple(new if old.offer == row.offer else old for old in self._known.rows)
            self._publish(rows=rows)

    @on(DataTable.RowSelected, "#offers")
    def _offer_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        planned, row, listing = self._known.planned, self.offers.current, self._known.listing
        if planned is not None and row is not None and planned.plan.target.offer == row.offer:
            self._fetch(planned, with_draft=True)
        elif row is not None and listing is not None:
            if row.offer.kind == "model":
                self.plan(f"{listing.repo}:{row.offer.quantisation}")
            else:
                self._add(((listing, row.offer),))

    @work(exclusive=True, group="hub", exit_on_error=False)
    async def plan(self, reference: str) -> None:
        """Look for the draft that goes with an offer, and say what would be fetched."""
        host = self.host
        async with self._asking("looking for a draft that goes with it") as hub:
            planned = await plan_fetch(
                host.room.probe,
                hub,
                reference,
                self._library,
                host.workbench,
                host.services.settings,
                lambda text: self._publish(activity=text),
            )
            self._publish(planned=planned)

    def action_fetch_target(self) -> None:
        """Fetch the highlighted offer alone."""
        row, listing = self.offers.current, self._known.listing
        if row is not None and listing is not None:
            self.workers.cancel_group(self, "hub")
            self._add(((listing, row.offer),))

    def _fetch(self, planned: PlannedFetch, with_draft: bool) -> None:
        self._add(to_fetch(planned, with_draft))

    def _add(self, wanted: Sequence[tuple[RepoListing, Offer]]) -> None:
        for listing, offer in wanted:
            self.host.downloads.add(listing, offer)
        labels = [f"{listing.repo}:{offer.quantisation}" for listing, offer in wanted]
        back = keyed("{hub.back} goes back to it")
        told = f"In the queue: {', '.join(labels)}; {back}." if labels else "All of it is here already."
        self._publish(planned=None, told=told, activity="")

    # Moving about.

    def _settle(self, then: Callable[[], None]) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLED_S, then)

    @on(DescendantFocus)
    def _focus_moved(self) -> None:
        self.set_class(self.focused is self.offers, "-in-offers")
        self.set_class(self.focused is not self.offers, "-in-repos")
        if self.focused is self.offers:
            self._settle(self._fit_current)

    def action_search(self) -> None:
        """Go to the words."""
        self.query_one("#search", Input).focus()

    def action_back(self) -> None:
        """Stop what is going on; else go from the plan to the offers, the repositories, and back to the models."""
        if self._known.activity:
            self.workers.cancel_group(self, "hub")
            self._publish(activity="", told="")
        elif self._known.planned is not None:
            self._publish(planned=None)
        elif self.focused is self.offers and self._known.hits:
            self.repos.focus()
        else:
            self.app.pop_screen()
