"""The Hub during one search for candidates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from localspec.catalog.hub.values import Offer, RepoHit, RepoListing
from localspec.errors import OfflineError

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub

FetchHeader = Callable[["Hub", RepoListing, Offer], Awaitable[Path]]
"""Fetches the header of an offer and returns the sparse file that holds it."""

NUM_HITS = 100
"""Answers asked of one search: the small siblings of a well-known model are seldom the most fetched."""

PATIENCE_S = 90.0
"""For all that is asked of one repository: a slow one must not hold up what is known of the others."""

_Answer = TypeVar("_Answer")


class HubAccess:
    """Asks the Hub until it turns out to be out of reach, and then no more."""

    def __init__(self, hub: Hub, fetch: FetchHeader | None) -> None:
        self._hub = hub
        self._fetch = fetch
        self._failure: OfflineError | None = None
        self.has_answered = False
        """Whether it was in reach once."""

    async def search(self, words: str) -> tuple[RepoHit, ...]:
        """Return GGUF repositories whose names hold the words."""
        return await self._ask(lambda: self._hub.search(words, NUM_HITS))

    async def listing(self, repo: str) -> RepoListing:
        """Return what a repository holds."""
        return await self._ask(lambda: self._hub.listing(repo))

    async def header(self, listing: RepoListing, offer: Offer) -> Path:
        """Return the file that holds an offer's header."""
        if self._fetch is None:
            # Only a search that reaches the Hub needs the network's libraries.
            from localspec.catalog.hub.remote_header import fetch_header

            self._fetch = fetch_header
        fetch = self._fetch
        return await self._ask(lambda: fetch(self._hub, listing, offer))

    async def _ask(self, question: Callable[[], Awaitable[_Answer]]) -> _Answer:
        if self._failure is not None:
            raise OfflineError(self._failure.message, self._failure.hint)
        try:
            answer = await question()
        except OfflineError as error:
            self._failure = error
            raise
        self.has_answered = True
        return answer
