"""One file from the Hub into the cache: resumed, verified, and named only when it is right."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from localspec.catalog.hub.cache_layout import blob_path, is_whole, require_inside, snapshot_path
from localspec.catalog.hub.cache_writing import link_snapshot, write_ref
from localspec.catalog.hub.disk import disk_errors_in_words, sync_folder
from localspec.catalog.hub.locks import BlobLock, lock_path
from localspec.catalog.hub.partial_file import PartialFile, expected_content, to_its_end
from localspec.catalog.hub.partials import PartialNote, forget, partial_path, remove_superseded, write_note
from localspec.catalog.hub.retries import Retries
from localspec.catalog.hub.threads import in_daemon_thread
from localspec.catalog.hub.values import RemoteFile, RepoFile, RepoListing
from localspec.catalog.progress import TransferState
from localspec.errors import DownloadError, LocalspecError

_CHECK_BYTES = 4 * 1024 * 1024
_POLL_S = 0.2

OnFile = Callable[[TransferState, int, int], None]
"""Called with the state, the bytes of the file that are there, and how many of them have just come."""


class Reply(Protocol):
    """The Hub's answer to a request for bytes."""

    start: int
    """Where the body begins; 0 if the server does not know ranges."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        ...


class Source(Protocol):
    """What a download needs of the Hub."""

    async def locate(self, listing: RepoListing, file: RepoFile) -> RemoteFile:
        """Return where a file's bytes are to be had."""
        ...

    def read(self, remote: RemoteFile, start: int, end: int | None) -> AbstractAsyncContextManager[Reply]:
        """Give the answer to a request for bytes."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One file to fetch."""

    cache: Path
    listing: RepoListing
    file: RepoFile

    @property
    def pointer(self) -> Path:
        """Where it will be found by its name."""
        return snapshot_path(self.cache, self.listing.repo, self.listing.commit, self.file.path)


class _ShortBodyError(DownloadError):
    is_transient = True


async def fetch_file(source: Source, job: Job, remote: RemoteFile, retries: Retries, on_file: OnFile) -> Path:
    """Return the path of a file in its snapshot, once it is there, whole and verified.

    What an earlier run brought is gone on with. If another download has the file, this one waits for it. Cancelling
    leaves what came so far for the next run, and nothing else.

    Raises:
        DownloadError: it cannot be written, or is not what it should be.
        HubError: the Hub failed, and trying again did not help.
    """
    pointer = job.pointer
    blob = blob_path(job.cache, job.listing.repo, remote.etag)
    note = PartialNote(repo=job.listing.repo, path=job.file.path, size_bytes=remote.size_bytes, etag=remote.etag)
    for folder in (blob.parent, pointer.parent, lock_path(blob).parent):
        require_inside(job.cache, folder)

    def missing_bytes() -> int:
        return max(0, remote.size_bytes - _size_of(partial_path(blob)))

    with disk_errors_in_words(job.cache, missing_bytes), BlobLock(blob) as lock:
        while not lock.try_take():
            on_file("waiting", min(_size_of(partial_path(blob)), remote.size_bytes), 0)
            await asyncio.sleep(_POLL_S)
        if not is_whole(pointer, remote.size_bytes) and not is_whole(blob, remote.size_bytes):
            await to_its_end(partial(_prepare, job.cache, blob, note))
            try:
                await _fetch_content(source, job, remote, retries, on_file, partial_path(blob))
            except BaseException:
                if _size_of(partial_path(blob)) == 0:
                    forget(blob)
                raise
            await to_its_end(partial(_name_blob, blob))
        await to_its_end(partial(_show, job, blob, remote.size_bytes))
    return pointer


def remaining_bytes(job: Job, remote: RemoteFile) -> int:
    """Return how much of a file is not in the cache yet."""
    blob = blob_path(job.cache, job.listing.repo, remote.etag)
    if is_whole(job.pointer, remote.size_bytes) or is_whole(blob, remote.size_bytes):
        return 0
    have_bytes = _size_of(partial_path(blob))
    return remote.size_bytes - (have_bytes if have_bytes <= remote.size_bytes else 0)


async def _fetch_content(
    source: Source, job: Job, remote: RemoteFile, retries: Retries, on_file: OnFile, path: Path
) -> None:
    """Leave the right content in the partial, synced."""
    what = f"{job.listing.repo}/{job.file.path}"
    with PartialFile(path, expected_content(remote, job.file)) as part:
        while part.checked_bytes < part.have_bytes:
            on_file("checking", part.checked_bytes, 0)
            await to_its_end(partial(part.check_on, _CHECK_BYTES))
        for is_last in (False, True):
            is_in_one_piece = await _stream(source, part, remote, retries, on_file)
            if part.is_right:
                await in_daemon_thread(part.syncing())
                return
            part.restart()
            if is_in_one_piece or is_last:
                raise DownloadError(
                    f"{what} came with other content than the Hub names; it was thrown away.",
                    "Try again; if it happens twice, the server or a proxy in between is at fault.",
                )
            # What was there before, or a seam between two answers, may be at fault: once more, from zero.
            on_file("fetching", 0, 0)


async def _stream(source: Source, part: PartialFile, remote: RemoteFile, retries: Retries, on_file: OnFile) -> bool:
    """Append until the partial has the file's size; return whether one answer brought it all."""
    num_answers = 0
    most_bytes = part.have_bytes
    is_from_zero = part.have_bytes == 0
    while part.have_bytes < remote.size_bytes:
        try:
            async with source.read(remote, part.have_bytes, remote.size_bytes) as reply:
                num_answers += 1
                if reply.start not in (0, part.have_bytes):
                    raise DownloadError(f"{remote.path}: other bytes came than were asked for.", "Try again.")
                if reply.start == 0 and part.have_bytes:
                    await to_its_end(part.restart)
                    num_answers, is_from_zero = 1, True
                on_file("fetching", part.have_bytes, 0)
                async for num_new in _appended(reply, part):
                    if part.have_bytes > most_bytes:
                        most_bytes = part.have_bytes
                        retries.note_bytes()
                    on_file("fetching", part.have_bytes, num_new)
            if part.have_bytes < remote.size_bytes:
                raise _ShortBodyError(
                    f"The Hub's answer for {remote.path} ended before the file did.", "Run this again later."
                )
        except LocalspecError as error:
            await retries.pause(error, partial(on_file, "waiting", part.have_bytes, 0))
    return is_from_zero and num_answers <= 1


async def _appended(reply: Reply, part: PartialFile) -> AsyncIterator[int]:
    chunks = reply.chunks()
    try:
        async for chunk in chunks:
            await to_its_end(partial(part.append, chunk))
            yield len(chunk)
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


def _prepare(cache: Path, blob: Path, note: PartialNote) -> None:
    blob.parent.mkdir(parents=True, exist_ok=True)
    # Without this folder, huggingface_hub calls the cache damaged as long as the file is not whole.
    (blob.parent.parent / "snapshots").mkdir(exist_ok=True)
    remove_superseded(cache, note)
    write_note(blob, note)


def _name_blob(blob: Path) -> None:
    os.replace(partial_path(blob), blob)
    sync_folder(blob.parent)


def _show(job: Job, blob: Path, size_bytes: int) -> None:
    # A run that was killed between the naming and this left its note, and one of huggingface_hub our partial.
    forget(blob)
    # Where links are not possible, the bytes may be there and no blob any more.
    if not is_whole(job.pointer, size_bytes):
        link_snapshot(job.cache, blob, job.pointer)
    # The file is there and has its name: what a revision stood for is nice to know, no more.
    with suppress(OSError, LocalspecError):
        write_ref(job.cache, job.listing.repo, job.listing.revision, job.listing.commit)


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
