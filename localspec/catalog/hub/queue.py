"""Several files, such as a target and its draft in shards, fetched one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.hub.cache_layout import blob_path, hub_cache, is_whole, snapshot_path
from localspec.catalog.hub.cache_writing import write_ref
from localspec.catalog.hub.disk import require_space
from localspec.catalog.hub.download import Job, Source, fetch_file, remaining_bytes
from localspec.catalog.hub.rate import RateMeter
from localspec.catalog.hub.retries import Retries, Sleep
from localspec.catalog.hub.values import Offer, RemoteFile, RepoListing
from localspec.catalog.progress import FileProgress, OnTransfer, TransferProgress, TransferState
from localspec.errors import LocalspecError

_REPORT_S = 0.1


class Downloads:
    """Fetches offers into huggingface_hub's cache."""

    def __init__(
        self,
        hub: Source,
        cache: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Fetch from `hub` into `cache`, by default huggingface_hub's.

        Args:
            hub: where from.
            cache: folder, made if need be.
            clock: seconds, for speeds.
            sleep: waits between tries.
        """
        self._hub = hub
        self._cache = hub_cache() if cache is None else cache.absolute()
        self._clock = clock
        self._sleep = sleep

    async def fetch(self, wanted: Sequence[tuple[RepoListing, Offer]], on_progress: OnTransfer) -> tuple[Path, ...]:
        """Fetch all files of all offers, in order and each once; return where the first file of each offer is.

        What is in the cache is not fetched again. If one file fails, those before it stay. Cancelling keeps what came.

        Raises:
            DiskFullError: there is no room, which is told before the first byte, or when it shows.
            DownloadError: a file cannot be written, or is not what it should be.
            HubError: the Hub failed, and trying again did not help.
        """
        jobs: dict[Path, Job] = {}
        for listing, offer in wanted:
            for file in offer.files:
                job = Job(self._cache, listing, file)
                jobs.setdefault(job.pointer, job)
        retries = Retries(self._sleep)
        report = _Report(list(jobs.values()), on_progress, self._clock)
        remotes = await self._locate(list(jobs.values()), retries, report)
        for index, job in enumerate(jobs.values()):
            remote = remotes[index]
            report.begin(index)
            if remote is None:
                # A newer name for a commit that is here, in a cache that may be read-only: nice to have, no more.
                with contextlib.suppress(OSError, LocalspecError):
                    write_ref(self._cache, job.listing.repo, job.listing.revision, job.listing.commit)
            else:
                retries.start_file()
                await fetch_file(self._hub, job, remote, retries, report.note)
            report.end()
        return tuple(
            snapshot_path(self._cache, listing.repo, listing.commit, offer.files[0].path) for listing, offer in wanted
        )

    async def _locate(self, jobs: Sequence[Job], retries: Retries, report: _Report) -> tuple[RemoteFile | None, ...]:
        """Return where each file is to be had, None for what is here; and see that there is room for them all."""
        remotes: list[RemoteFile | None] = []
        needed: dict[Path, int] = {}
        for index, job in enumerate(jobs):
            if job.file.size_bytes and is_whole(job.pointer, job.file.size_bytes):
                remotes.append(None)
                report.have(index)
                continue
            report.begin(index)
            retries.start_file()
            remote = await self._locate_one(job, retries, report)
            report.set_size(index, remote.size_bytes)
            needed[blob_path(self._cache, job.listing.repo, remote.etag)] = remaining_bytes(job, remote)
            remotes.append(remote)
        require_space(self._cache, sum(needed.values()))
        return tuple(remotes)

    async def _locate_one(self, job: Job, retries: Retries, report: _Report) -> RemoteFile:
        while True:
            try:
                return await self._hub.locate(job.listing, job.file)
            except LocalspecError as error:
                await retries.pause(error, lambda: report.note("waiting", 0, 0))


@dataclass(slots=True)
class _Entry:
    name: str
    total_bytes: int
    done_bytes: int = 0


class _Report:
    """Turns what happens to one file into progress of all, some ten times a second."""

    def __init__(self, jobs: Sequence[Job], on_progress: OnTransfer, clock: Callable[[], float]) -> None:
        self._entries = [_Entry(job.file.path, job.file.size_bytes) for job in jobs]
        self._on_progress = on_progress
        self._clock = clock
        self._meter = RateMeter(clock)
        self._index = 0
        self._state: TransferState | None = None
        self._told_at = 0.0

    def begin(self, index: int) -> None:
        """Go to another file."""
        self._index, self._state = index, None

    def set_size(self, index: int, total_bytes: int) -> None:
        """Put right the size of a file."""
        self._entries[index].total_bytes = total_bytes

    def have(self, index: int) -> None:
        """Count a file as there before its turn comes."""
        self._entries[index].done_bytes = self._entries[index].total_bytes

    def note(self, state: TransferState, done_bytes: int, num_new: int) -> None:
        """Say how far the file is."""
        now = self._clock()
        is_change = state != self._state
        if is_change and state == "fetching":
            self._meter.start()
        if num_new:
            self._meter.add(num_new)
        self._entries[self._index].done_bytes = done_bytes
        if is_change or now - self._told_at >= _REPORT_S:
            self._state, self._told_at = state, now
            self._tell(state)

    def end(self) -> None:
        """Say that the file is there."""
        self._entries[self._index].done_bytes = self._entries[self._index].total_bytes
        self._tell("done")

    def _tell(self, state: TransferState) -> None:
        entry = self._entries[self._index]
        all_done = sum(each.done_bytes for each in self._entries)
        all_total = sum(each.total_bytes for each in self._entries)
        is_moving = state in ("fetching", "done")
        self._on_progress(
            TransferProgress(
                name=entry.name,
                index=self._index,
                num_files=len(self._entries),
                state=state,
                done_bytes=entry.done_bytes,
                total_bytes=entry.total_bytes,
                all_done_bytes=all_done,
                all_total_bytes=all_total,
                speed=self._meter.speed if is_moving else None,
                eta_s=self._meter.eta_s(all_total - all_done) if is_moving else None,
                files=tuple(FileProgress(each.name, each.done_bytes, each.total_bytes) for each in self._entries),
            )
        )
