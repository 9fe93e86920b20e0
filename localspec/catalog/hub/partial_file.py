"""The bytes of a download on disk: appended, hashed as they go by, and compared with what the Hub named."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from localspec.catalog.hub.values import RemoteFile, RepoFile
from localspec.errors import DownloadError

if TYPE_CHECKING:
    from hashlib import _Hash

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must be: its size, and its SHA-256 or else its git blob id, which is a SHA-1."""

    size_bytes: int
    sha256: str
    git_id: str

    def new_digest(self) -> _Hash:
        """Return a hash that has seen nothing of the file yet."""
        if self.sha256:
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size_bytes, usedforsecurity=False)

    def is_met(self, size_bytes: int, digest: _Hash) -> bool:
        """Say whether a file of this size and hash is the right one."""
        return size_bytes == self.size_bytes and digest.hexdigest() == (self.sha256 or self.git_id)


def expected_content(remote: RemoteFile, file: RepoFile) -> Expected:
    """Return what a file must be, by what the Hub said of it in its listing and where it is.

    Raises:
        DownloadError: that is not one thing.
    """
    has_sha256 = len(remote.etag) == 64
    if has_sha256 and file.sha256 and remote.etag != file.sha256.lower():
        raise DownloadError(
            f"{remote.repo}/{remote.path} is not what the listing says: its content changed in between.",
            "Run this again for a new listing.",
        )
    sha256 = remote.etag if has_sha256 else file.sha256.lower()
    return Expected(remote.size_bytes, sha256, "" if has_sha256 else remote.etag)


class PartialFile:
    """The beginning of a file, open for appending. Its methods block: call them in a thread, one at a time."""

    def __init__(self, path: Path, expected: Expected) -> None:
        """Open a partial, making it if need be. What is there is hashed by check_on().

        Raises:
            OSError: it cannot be opened for writing.
        """
        self.path = path
        self._expected = expected
        self._digest = expected.new_digest()
        with contextlib.suppress(FileNotFoundError):
            facts = path.lstat()
            if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1 or facts.st_size > expected.size_bytes:
                # A planted link would be written through; and longer than the file is nothing to go on with.
                path.unlink()
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self.have_bytes = os.fstat(self._descriptor).st_size
        self.checked_bytes = 0
        """How much of it is hashed; have_bytes, once all that was there is checked."""

    def check_on(self, num_bytes: int) -> None:
        """Hash at most so many bytes more of what is there."""
        num_bytes = min(num_bytes, self.have_bytes - self.checked_bytes)
        os.lseek(self._descriptor, self.checked_bytes, os.SEEK_SET)
        piece = os.read(self._descriptor, num_bytes)
        if not piece:
            # Somebody made it shorter.
            self.have_bytes = self.checked_bytes
        self._digest.update(piece)
        self.checked_bytes += len(piece)

    def append(self, data: bytes) -> None:
        """Write bytes at the end and hash them. After a failure, have_bytes still says what is there.

        Raises:
            OSError: the disk is full, say.
        """
        view = memoryview(data)[: self._expected.size_bytes - self.have_bytes]
        os.lseek(self._descriptor, self.have_bytes, os.SEEK_SET)
        while view:
            num_written = os.write(self._descriptor, view)
            self._digest.update(view[:num_written])
            self.have_bytes += num_written
            self.checked_bytes = self.have_bytes
            view = view[num_written:]

    def restart(self) -> None:
        """Throw away what is there."""
        os.ftruncate(self._descriptor, 0)
        self.have_bytes = self.checked_bytes = 0
        self._digest = self._expected.new_digest()

    @property
    def is_right(self) -> bool:
        """Whether it is whole and what it must be."""
        return self.checked_bytes == self.have_bytes and self._expected.is_met(self.have_bytes, self._digest)

    def syncing(self) -> Callable[[], None]:
        """Return a function that puts all on the disk itself. It may run on when this file is closed."""
        descriptor = os.dup(self._descriptor)

        def sync() -> None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

        return sync

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


async def to_its_end(function: Callable[[], T]) -> T:
    """Run a short function that blocks in a thread. Cancelling waits for its end: it holds a file that is closed next.

    Raises:
        Exception: whatever the function raises.
    """
    future = asyncio.get_running_loop().run_in_executor(None, function)
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Whether it failed is of no more interest, but asyncio complains of failures that nobody looked at.
        future.exception()
        raise cancelled
    return future.result()
