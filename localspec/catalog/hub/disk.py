"""What a disk may say while a file is written, in words; and how much room it has."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localspec.errors import DiskFullError, DownloadError
from localspec.units import memory_scale

SPARE_BYTES = 64 * 1024 * 1024
"""Left free beside what a download needs."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_MOVE_HINT = "set HF_HUB_CACHE to a folder on another disk"


def size_text(num_bytes: int) -> str:
    """Return a size for people, in the units of the other messages."""
    for unit, name in memory_scale():
        if num_bytes >= unit:
            return f"{num_bytes / unit:.1f} {name}"
    return f"{num_bytes} bytes"


def require_space(folder: Path, needed_bytes: int) -> None:
    """Check that a folder's disk can take so many bytes and SPARE_BYTES more. The folder need not be there yet.

    Raises:
        DiskFullError: it cannot; the hint says how much to free and where.
    """
    lack = lack_of_space(folder, needed_bytes, SPARE_BYTES)
    if lack is not None:
        raise DiskFullError(
            f"{size_text(needed_bytes)} are still to be fetched, but {folder} has room for "
            f"{size_text(lack.free_bytes)}.",
            f"Free {size_text(lack.lacking_bytes)} on the disk of {lack.place}, or {_MOVE_HINT}.",
        )


@dataclass(frozen=True, slots=True)
class LackOfSpace:
    """How much a disk lacks."""

    place: Path
    """The nearest folder that is there."""
    free_bytes: int
    lacking_bytes: int


def lack_of_space(folder: Path, needed_bytes: int, spare_bytes: int) -> LackOfSpace | None:
    """Return what a folder's disk lacks to take so many bytes and some to spare, None if it has room.

    The folder need not be there yet. A file system that does not tell counts as having room: writing will show.
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free_bytes = shutil.disk_usage(place).free
    except OSError:
        return None
    lacking_bytes = needed_bytes + spare_bytes - free_bytes
    return LackOfSpace(place, free_bytes, lacking_bytes) if needed_bytes > 0 and lacking_bytes > 0 else None


def disk_failure(error: OSError, folder: Path, missing_bytes: int) -> DownloadError:
    """Return what to tell the user when writing under `folder` failed with `missing_bytes` still to come."""
    if error.errno in _FULL:
        return DiskFullError(
            f"The disk of {folder} is full; {size_text(missing_bytes)} more are needed.",
            f"Free that much and run this again: it goes on where it stopped. Or {_MOVE_HINT}.",
        )
    if error.errno == errno.EFBIG:
        return DiskFullError(
            f"The file system of {folder} takes no file of this size; {size_text(missing_bytes)} more are needed.",
            f"If that is no limit of your shell (ulimit -f), {_MOVE_HINT}.",
        )
    reason = error.strerror or str(error)
    return DownloadError(
        f"Cannot write under {folder}: {reason}.", f"Make the folder writable, or {_MOVE_HINT} where you may write."
    )


@contextlib.contextmanager
def disk_errors_in_words(folder: Path, missing_bytes: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Turn every OSError inside into a DownloadError or DiskFullError."""
    try:
        yield
    except OSError as error:
        raise disk_failure(error, folder, missing_bytes()) from error


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        # Windows opens no folders, and needs no such thing.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
