"""The header of a GGUF on the Hub, fetched without its weights.

It is written to a sparse file of the model's real size, which llama.cpp's own parser takes like any local file.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from localspec.catalog.gguf_walk import HeaderWalk
from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.failures import TransientHubError
from localspec.catalog.hub.header_store import clear_way, is_intact, prune_headers, seal_header
from localspec.catalog.hub.listing import is_safe_path
from localspec.catalog.hub.sparse import extend_sparse, is_too_large
from localspec.catalog.hub.threads import in_daemon_thread
from localspec.catalog.hub.values import Offer, RemoteFile, RepoListing
from localspec.catalog.progress import OnTransfer, TransferProgress
from localspec.errors import DiskFullError, DownloadError, HubError, LocalspecError
from localspec.paths import cache_dir

SPARE_BYTES = 1 << 20
"""Fetched beyond the headers, all files of an offer together, at most."""

FIRST_GUESS_BYTES = 512 << 10
"""Holds the whole header of a small model."""

_FIRST_SHARE = 0.75
"""Of the spare bytes, for the first of several files: it has the vocabulary, the others only tables of tensors."""
_LEAST_SPARE_BYTES = 4 << 10
_MAX_REQUESTS = 200
_SUFFIX = ".part"
_STALE_S = 3600.0

_GRACE_S = 30.0
_FILE_S = 1.0
"""More for each file: a split model may have hundreds, with two requests each."""
_LEAST_BYTES_PER_S = 8 << 10
_LONGEST_S = 900.0


async def fetch_header(
    hub: Hub, listing: RepoListing, offer: Offer, folder: Path | None = None, on_progress: OnTransfer | None = None
) -> Path:
    """Return the sparse file of an offer's first file; further files of a split model lie beside it.

    What an earlier call fetched is used again without a request, as long as the content on the Hub is the same and the
    header is not damaged. A Hub that sends less than 8 KiB/s is given up.

    Args:
        hub: to be asked.
        listing: of the repository.
        offer: one of the listing's.
        folder: of all headers; None: in localspec's cache.
        on_progress: told of bytes as they come; totals are what is known to be needed so far.

    Raises:
        HubError: the Hub could not be asked, refused, or claims a size that no model has.
        DownloadError: the bytes could not be fetched or written.
        ModelFileError: it is no GGUF, or its header is damaged or beyond the limits.
    """
    store = folder or cache_dir() / "headers"
    place = store / _folder_name(listing, offer)
    try:
        async with asyncio.timeout(_GRACE_S) as limit:
            return await _fetch_all(hub, listing, offer, place, _Patience(limit, len(offer.files)), on_progress)
    except TimeoutError:
        pass
    raise TransientHubError(
        f"The header of {listing.repo}/{offer.files[0].path} comes too slowly; it was given up.",
        "Try again when the network or the Hub is less busy.",
    )


class _Patience:
    """Moves the moment at which an answer is given up, as bytes come."""

    def __init__(self, limit: asyncio.Timeout, num_files: int) -> None:
        self._limit = limit
        self._begun = asyncio.get_running_loop().time()
        self._grace_s = _GRACE_S + _FILE_S * num_files
        self._num_bytes = 0
        self.note(0)

    def note(self, num_bytes: int) -> None:
        """Count bytes that have just come."""
        self._num_bytes += num_bytes
        self._limit.reschedule(self._begun + min(self._grace_s + self._num_bytes / _LEAST_BYTES_PER_S, _LONGEST_S))


async def _fetch_all(
    hub: Hub, listing: RepoListing, offer: Offer, place: Path, patience: _Patience, on_progress: OnTransfer | None
) -> Path:
    paths = [place / PurePosixPath(file.path).name for file in offer.files]
    spare = SPARE_BYTES
    for index, (file, path) in enumerate(zip(offer.files, paths, strict=True)):
        if await in_daemon_thread(partial(is_intact, path, file.size_bytes)):
            continue
        left = len(paths) - index
        share = spare if left == 1 else int(spare * _FIRST_SHARE) if index == 0 else spare // left
        remote = await hub.locate(listing, file)
        report = _reporter(on_progress, path.name, index, len(paths))
        # A split model's files but the first have small headers; a few KB are also there if all was spent on others.
        share = max(share, _LEAST_SPARE_BYTES)
        spare -= await _fetch(_Job(hub, remote, path, share, report, patience))
        prune_headers(place.parent.parent, place)
    return paths[0]


@dataclass(frozen=True, slots=True)
class _Job:
    """One file whose header is wanted."""

    hub: Hub
    remote: RemoteFile
    path: Path
    spare_bytes: int
    """How many bytes beyond its header may be fetched."""
    report: Callable[[int, int], None]
    patience: _Patience

    @property
    def first_bytes(self) -> int:
        """How many bytes to ask for while nothing is known of the header."""
        return min(FIRST_GUESS_BYTES, self.spare_bytes)


async def _fetch(job: _Job) -> int:
    """Fetch one header and put it in place; return how many bytes more than the header came."""
    walk = HeaderWalk(job.remote.size_bytes, f"{job.remote.repo}/{job.remote.path}")
    temporary = _begun(job.path)
    failure: OSError | None = None
    try:
        with open(temporary, "wb") as out:
            asked_bytes = await _fill(job, walk, out)
            extend_sparse(out, walk.header_bytes, job.remote.size_bytes)
        clear_way(job.path)
        os.replace(temporary, job.path)
        await in_daemon_thread(partial(seal_header, job.path, walk.header_bytes))
        return asked_bytes - walk.header_bytes
    except OSError as error:
        failure = error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    raise _unwritten(failure, job)


async def _fill(job: _Job, walk: HeaderWalk, out: BinaryIO) -> int:
    """Ask for bytes until the header is complete; return how many were asked for.

    A connection that breaks off is taken up where it broke.
    """
    for _ in range(_MAX_REQUESTS):
        begin = out.tell()
        # What is known to be needed is never more than the header, so the surplus is never more than what is added.
        end = walk.needed_bytes + job.spare_bytes if begin else max(walk.needed_bytes, job.first_bytes)
        end = min(max(end, begin + 1), job.remote.size_bytes)
        try:
            await _fetch_range(job, walk, out, end)
        except TransientHubError:
            if out.tell() == begin:
                raise
        if walk.is_complete:
            return end
        if out.tell() == begin:
            break
    raise TransientHubError(f"The Hub sends {job.remote.repo}/{job.remote.path} in crumbs.")


async def _fetch_range(job: _Job, walk: HeaderWalk, out: BinaryIO, end: int) -> None:
    """Fetch what is missing up to `end`."""
    begin = out.tell()
    async with job.hub.read(job.remote, begin, end) as reply:
        at = reply.start
        # A server that knows no ranges sends the whole file: that is read once, and broken off.
        async for piece in reply.chunks(beyond=reply.is_whole):
            fresh = piece[max(0, begin - at) :]
            at += len(piece)
            job.patience.note(len(piece))
            if fresh:
                walk.feed(fresh)
                out.write(fresh)
                job.report(out.tell(), max(walk.needed_bytes, out.tell()))
            if walk.is_complete:
                return


def _folder_name(listing: RepoListing, offer: Offer) -> str:
    """Return a folder for an offer's content: files that are split must lie together under their published names."""
    repo = listing.repo.replace("/", "--")
    names = [PurePosixPath(file.path).name for file in offer.files]
    if (
        not all(is_safe_path(file.path) for file in offer.files)
        or not is_safe_path(repo)
        or len(set(names)) < len(names)
    ):
        raise DownloadError("A file's name would leave the folder that it belongs to.", "Choose another file.")
    contents = [f"{file.sha256 or listing.commit} {file.path}" for file in offer.files]
    digest = hashlib.sha256("\n".join(contents).encode()).hexdigest()
    return f"{repo}/{digest[:32]}"


def _begun(path: Path) -> Path:
    """Return a new temporary file beside a path; those that a killed process left behind go."""
    failure: OSError | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f".*{_SUFFIX}"):
            if time.time() - old.stat().st_mtime > _STALE_S:
                old.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(suffix=_SUFFIX, prefix=".", dir=path.parent)
        os.close(handle)
        return Path(name)
    except OSError as error:
        failure = error
    raise DownloadError(
        f"Cannot write in the folder {path.parent}: {failure.strerror}.", "Set LOCALSPEC_CACHE to another folder."
    )


def _unwritten(error: OSError, job: _Job) -> LocalspecError:
    where = job.path.parent
    if is_too_large(error):
        return HubError(
            f"{job.remote.repo}/{job.remote.path} claims {job.remote.size_bytes} bytes, more than a file in {where} "
            "may have.",
            "Set LOCALSPEC_CACHE to a folder on another disk.",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"There is no room for a model's header in {where}.", "Free some 50 MB there.")
    return DownloadError(f"Cannot write in {where}: {error.strerror}.", "Set LOCALSPEC_CACHE to another folder.")


def _reporter(on_progress: OnTransfer | None, name: str, index: int, num_files: int) -> Callable[[int, int], None]:
    def report(done: int, total: int) -> None:
        if on_progress is not None:
            on_progress(TransferProgress(name, index, num_files, "fetching", done, total, done, total, None, None))

    return report
