"""Hashing and copying big files in a thread that can be stopped, with progress told to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from localspec.catalog.hub.disk import lack_of_space, size_text
from localspec.catalog.hub.rate import RateMeter
from localspec.catalog.kit_manifest import open_plain
from localspec.catalog.progress import OnTransfer, TransferProgress, TransferState
from localspec.errors import DiskFullError, LocalspecError, ModelFileError

SPARE_BYTES = 16 * 1024 * 1024
"""Left free beside what is copied."""

_BLOCK_BYTES = 1024 * 1024
_TELL_EVERY_S = 0.1
_LEFTOVER_S = 3600.0
_PARTIAL = (".localspec-", ".partial")

T = TypeVar("T")


class StoppedError(Exception):
    """The thread was asked to stop. Nobody sees it: the caller was cancelled."""


class CopyJob:
    """What the thread of one export or import works with. Files are known by their place in the list."""

    def __init__(
        self,
        tell: Callable[[TransferProgress], None],
        stop: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._stop = stop
        self._clock = clock
        self._meter = RateMeter(clock)
        self._files: Sequence[tuple[str, int]] = ()
        self._index = 0
        self._state: TransferState = "waiting"
        self._done_bytes = 0
        self._told_s = 0.0

    def plan(self, files: Sequence[tuple[str, int]]) -> None:
        """Say which files it is about: names, and sizes in bytes."""
        self._files = files

    def begin(self, index: int, state: TransferState) -> None:
        """Turn to a file."""
        self._index, self._state, self._done_bytes = index, state, 0
        self._meter.start()
        self._report()

    def end(self, index: int) -> None:
        """Count a file as done."""
        self._index, self._state, self._done_bytes = index, "done", self._files[index][1]
        self._report()

    def hash(self, path: Path, *, follows_links: bool = False) -> str:
        """Return a file's SHA-256.

        Raises:
            ModelFileError: it cannot be read.
        """
        digest = hashlib.sha256()
        for block in self._blocks(path, follows_links):
            digest.update(block)
        return digest.hexdigest()

    def copy(self, source: Path, partial: Path, *, follows_links: bool = False) -> tuple[str, int]:
        """Copy a file to a name that nothing has yet, and return the copy's SHA-256 and size, safely on the disk.

        Raises:
            ModelFileError: the source cannot be read.
            LocalspecError: the copy cannot be written; DiskFullError if for want of room.
        """
        digest = hashlib.sha256()
        num_bytes = 0
        in_words = write_errors_in_words(partial.parent, lambda: self._files[self._index][1] - num_bytes)
        with in_words, partial.open("xb") as file:
            for block in self._blocks(source, follows_links):
                write_block(file, block)
                digest.update(block)
                num_bytes += len(block)
                # Whoever makes the source grow must not fill the disk: the size is wrong already.
                if num_bytes > self._files[self._index][1]:
                    break
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest(), num_bytes

    def check(self) -> None:
        """Raise StoppedError if the caller has been cancelled."""
        if self._stop.is_set():
            raise StoppedError

    def _blocks(self, path: Path, follows_links: bool) -> Iterator[bytes]:
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0)) if follows_links else open_plain(path)
            file = os.fdopen(descriptor, "rb", buffering=0)
        except OSError as error:
            raise _unreadable(path, error) from error
        with file:
            while True:
                self.check()
                try:
                    block = file.read(_BLOCK_BYTES)
                except OSError as error:
                    raise _unreadable(path, error) from error
                if not block:
                    return
                yield block
                self._done_bytes += len(block)
                self._meter.add(len(block))
                if self._clock() - self._told_s >= _TELL_EVERY_S:
                    self._report()

    def _report(self) -> None:
        self._told_s = self._clock()
        name, size = self._files[self._index]
        total = sum(size for _, size in self._files)
        done = min(self._done_bytes, size)
        all_done = sum(size for _, size in self._files[: self._index]) + done
        self._tell(
            TransferProgress(
                name=name,
                index=self._index,
                num_files=len(self._files),
                state=self._state,
                done_bytes=done,
                total_bytes=size,
                all_done_bytes=all_done,
                all_total_bytes=total,
                speed=self._meter.speed,
                eta_s=self._meter.eta_s(total - all_done),
            )
        )


async def run_job(work: Callable[[CopyJob], T], on_progress: OnTransfer | None) -> T:
    """Run work in a thread. Cancelling stops it within a block, and waits until it has tidied up."""
    loop = asyncio.get_running_loop()
    stop = threading.Event()

    def tell(progress: TransferProgress) -> None:
        if on_progress is not None:
            # The loop may be closed already when the caller was cancelled.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(on_progress, progress)

    task = asyncio.ensure_future(asyncio.to_thread(work, CopyJob(tell, stop)))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise


def write_block(file: BinaryIO, block: bytes) -> None:
    """Write all of a block."""
    file.write(block)


def partial_in(folder: Path) -> Path:
    """Return a hidden name of its own for a file that is not whole yet."""
    before, after = _PARTIAL
    return folder / f"{before}{secrets.token_hex(8)}{after}"


def remove_partials(folder: Path, clock: Callable[[], float] = time.time) -> None:
    """Take away what an export or import that was killed long ago has left in a folder."""
    before, after = _PARTIAL
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            is_partial = path.name.startswith(before) and path.name.endswith(after)
            # A younger one may be another process's, at work right now.
            if is_partial and clock() - path.lstat().st_mtime > _LEFTOVER_S:
                path.unlink(missing_ok=True)


def require_room(folder: Path, needed_bytes: int) -> None:
    """Check that the disk of a folder, which need not be there yet, has room.

    Raises:
        DiskFullError: it has not.
    """
    lack = lack_of_space(folder, needed_bytes, SPARE_BYTES)
    if lack is not None:
        raise DiskFullError(
            f"{size_text(needed_bytes)} are to be copied, but {folder} has room for {size_text(lack.free_bytes)}.",
            f"Free {size_text(lack.lacking_bytes)} there, or choose a folder on another disk.",
        )


@contextlib.contextmanager
def write_errors_in_words(folder: Path, missing_bytes: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Turn every OSError inside into a LocalspecError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = f"The disk of {folder} is full; {size_text(missing_bytes())} more of this file are to come."
            raise DiskFullError(message, "Free that much, or choose a folder on another disk.") from error
        if error.errno == errno.EFBIG:
            message = f"The file system of {folder} takes no file of this size."
            hint = "FAT32 ends at 4 GiB: format the disk as exFAT, or choose another one."
            raise DiskFullError(message, hint) from error
        reason = error.strerror or str(error)
        hint = "Make the folder writable, or choose another."
        raise LocalspecError(f"Cannot write in {folder}: {reason}.", hint) from error


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder; when what is done inside fails, those that were made and hold nothing are taken away again."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        with write_errors_in_words(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            for place in made:
                place.rmdir()
        raise


def _unreadable(path: Path, error: OSError) -> ModelFileError:
    hint = "Check the file, its rights, and the disk that it is on."
    return ModelFileError(f"{path} cannot be read: {error.strerror or error}.", hint)
