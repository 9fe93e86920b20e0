"""The lock of one blob, at the place where huggingface_hub has its own, so that both respect each other.

It is held by an open file: a process that is killed leaves none behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import BaseFileLock


def lock_path(blob: Path) -> Path:
    """Return the lock file that belongs to `CACHE/models--OWNER--NAME/blobs/ETAG`."""
    repo_folder = blob.parent.parent
    return repo_folder.parent / ".locks" / repo_folder.name / f"{blob.name}.lock"


class BlobLock:
    """The right to write one blob and its partial, as a context manager once it is taken."""

    def __init__(self, blob: Path) -> None:
        self.path = lock_path(blob)
        self._lock: BaseFileLock | None = None

    def try_take(self) -> bool:
        """Take the lock if nobody holds it, in this process or another; never wait.

        Raises:
            OSError: the lock file cannot be made.
        """
        from filelock import FileLock, Timeout

        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Group-writable as huggingface_hub makes it, for caches that several people share.
        lock = FileLock(self.path, mode=0o664, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        self._lock = lock
        return True

    def remove(self) -> None:
        """Remove the lock file, and its folder if nothing else is in it. Only for its holder."""
        for step in (lambda: self.path.unlink(missing_ok=True), self.path.parent.rmdir, self.path.parent.parent.rmdir):
            if not _is_done(step):
                return

    def release(self) -> None:
        """Let others have it. Nothing happens if it is not held."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> BlobLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _is_done(step: Callable[[], None]) -> bool:
    try:
        step()
    except OSError:
        return False
    return True
