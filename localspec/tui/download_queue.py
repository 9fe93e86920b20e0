"""The queue of downloads. It belongs to the app, so that it goes on whatever screen is looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localspec.catalog.progress import TransferProgress
from localspec.errors import LocalspecError, UsageError

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.partials import Partial
    from localspec.catalog.hub.values import Offer, RepoListing

TransferStatus = Literal["queued", "running", "paused", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One thing to download, and how far it is. Texts are foreign."""

    key: int
    label: str
    """`OWNER/NAME:QUANT`."""
    listing: RepoListing
    offer: Offer
    status: TransferStatus = "queued"
    progress: TransferProgress | None = None
    """The last that was heard of it; kept while it is paused."""
    failure: str = ""
    hint: str = ""


Transfers = tuple[Transfer, ...]
"""All of them, in the order in which they were added."""


class DownloadQueue:
    """Fetches one thing after the other. Nothing is opened and no task runs before something is added."""

    def __init__(
        self, open_hub: Callable[[], Hub], on_change: Callable[[Transfers], None], cache: Path | None = None
    ) -> None:
        """Prepare an empty queue.

        Args:
            open_hub: called in a thread, whenever there is something to fetch again.
            on_change: told of every change, in the event loop.
            cache: where to; None for huggingface_hub's cache.
        """
        self._open_hub = open_hub
        self._on_change = on_change
        self._cache = cache
        self._items: dict[int, Transfer] = {}
        self._last_key = 0
        self._runner: asyncio.Task[None] | None = None
        self._fetching: tuple[int, asyncio.Task[None]] | None = None

    @property
    def transfers(self) -> Transfers:
        """All that was added and not cleared away."""
        return tuple(self._items.values())

    def add(self, listing: RepoListing, offer: Offer) -> bool:
        """Queue something, and return whether it was not queued already. What was paused or failed goes on."""
        for item in self._items.values():
            if (item.listing.repo, item.listing.commit, item.offer) == (listing.repo, listing.commit, offer):
                if item.status in ("queued", "running"):
                    return False
                self.resume(item.key)
                return True
        self._last_key += 1
        label = f"{listing.repo}:{offer.quantisation}"
        self._put(Transfer(self._last_key, label, listing, offer))
        self._start()
        return True

    def pause(self, key: int) -> None:
        """Stop fetching something; what has come is kept."""
        item = self._items.get(key)
        if item is not None and item.status in ("queued", "running"):
            self._put(replace(item, status="paused"))
            if self._fetching is not None and self._fetching[0] == key:
                self._fetching[1].cancel()

    def pause_all(self) -> bool:
        """Stop fetching, and return whether anything was being fetched or about to be; what has come is kept."""
        going = [item for item in self._items.values() if item.status in ("queued", "running")]
        # The running one last: the next would begin in its place.
        for item in sorted(going, key=lambda item: item.status == "running"):
            self.pause(item.key)
        return bool(going)

    def resume(self, key: int) -> None:
        """Queue something again that was paused, that failed, or that is done and may have been removed since."""
        item = self._items.get(key)
        if item is not None and item.status in ("paused", "failed", "done"):
            self._put(replace(item, status="queued", failure="", hint=""))
            self._start()

    async def cancel(self, key: int, *, keeps_partial: bool = False) -> None:
        """Take something out of the queue, and remove what has come of it unless that is to be kept.

        Raises:
            LocalspecError: it cannot be removed.
        """
        self.pause(key)
        if self._fetching is not None and self._fetching[0] == key:
            await asyncio.wait({self._fetching[1]})
        item = self._items.pop(key, None)
        self._tell()
        if item is not None and item.status != "done" and not keeps_partial:
            await asyncio.to_thread(_remove_partials, self._cache, item)

    def clear_finished(self) -> None:
        """Forget what is done."""
        self._items = {key: item for key, item in self._items.items() if item.status != "done"}
        self._tell()

    async def close(self) -> None:
        """Stop, keeping what has come. Safe to call twice."""
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            await asyncio.wait({runner})

    def _start(self) -> None:
        if self._runner is None:
            self._runner = asyncio.create_task(self._run(), name="downloads")
            self._runner.add_done_callback(self._end)

    def _end(self, runner: asyncio.Task[None]) -> None:
        # Something may have been added while the Hub's connections were closed.
        if self._runner is runner:
            self._runner = None
            if self._next() is not None:
                self._start()

    async def _run(self) -> None:
        hub: Hub | None = None
        try:
            while (item := self._next()) is not None:
                # A thread, since huggingface_hub takes a second to import.
                try:
                    if hub is None:
                        hub = await asyncio.to_thread(self._open_hub)
                except LocalspecError as error:
                    self._put(replace(item, status="failed", failure=error.message, hint=error.hint))
                    continue
                await self._fetch(hub, item.key)
        finally:
            if hub is not None:
                await hub.close()

    def _next(self) -> Transfer | None:
        return next((item for item in self._items.values() if item.status == "queued"), None)

    async def _fetch(self, hub: Hub, key: int) -> None:
        item = self._items.get(key)
        if item is None or item.status != "queued":
            return
        self._put(replace(item, status="running"))
        task = asyncio.create_task(self._fetch_one(hub, item), name="download")
        self._fetching = (key, task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            self._fetching = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._change(key, status="failed", failure=f"{type(error).__name__}: {error}", hint="Try again.")

    async def _fetch_one(self, hub: Hub, item: Transfer) -> None:
        from localspec.catalog.hub.queue import Downloads

        try:
            await Downloads(hub, self._cache).fetch(
                [(item.listing, item.offer)], lambda progress: self._change(item.key, progress=progress)
            )
        except LocalspecError as error:
            self._change(item.key, status="failed", failure=error.message, hint=error.hint)
        else:
            self._change(item.key, status="done")

    def _change(self, key: int, **changes: object) -> None:
        item = self._items.get(key)
        if item is not None and item.status == "running":
            self._put(replace(item, **changes))  # type: ignore[arg-type]

    def _put(self, item: Transfer) -> None:
        self._items[item.key] = item
        self._tell()

    def _tell(self) -> None:
        self._on_change(self.transfers)


async def offer_of_partial(hub: Hub, partial: Partial) -> tuple[RepoListing, Offer]:
    """Return what a broken-off download was of, as its repository offers it now.

    Raises:
        UsageError: it is not known, or no longer there.
        HubError: the Hub could not be asked.
    """
    from localspec.catalog.hub.offers import offers

    if not partial.is_ours or not partial.path:
        raise UsageError(
            f"What {partial.file.name} is a part of is not known.", "Remove it, and fetch the model from its start."
        )
    listing = await hub.listing(partial.repo)
    for offer in offers(listing):
        if any(file.path == partial.path for file in offer.files):
            return listing, offer
    raise UsageError(f"{partial.repo} has no {partial.path} any more.", "Remove this part.")


def _remove_partials(cache: Path | None, item: Transfer) -> None:
    from localspec.catalog.hub.cache_layout import hub_cache
    from localspec.catalog.hub.partials import list_partials, remove_partial

    paths = {file.path for file in item.offer.files}
    for partial in list_partials(hub_cache() if cache is None else cache):
        if partial.is_ours and partial.repo == item.listing.repo and partial.path in paths:
            with contextlib.suppress(UsageError):
                # Another program may have begun to fetch the same file.
                remove_partial(partial)
