"""What state the database file is in, and putting one aside that cannot be used."""

from __future__ import annotations

import glob
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from localspec.errors import StoreError
from localspec.store.failures import is_surroundings, primary_code, store_error
from localspec.store.migrations import APPLICATION_ID, SEARCH_TABLE, version_of

Condition = Literal["missing", "older", "current", "damaged", "foreign"]
"""missing: there is no file, or it holds nothing yet. foreign: it is no database of localspec's."""

_COMPANIONS = ("-wal", "-shm", "-journal")

_MAX_VERSION = 1000
"""A version above this was never released: the number itself is damaged."""

_MAX_CHECKED_BYTES = 64 * 1024 * 1024
"""Reading a larger file through would be felt with every command; it is checked after an unclean end only."""


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class NoFileError(StoreError):
    """What lies at the database's place is no file."""


def check_files(path: Path) -> None:
    """Refuse what is no file, before anything is opened: a pipe might be waited for, and a device written to.

    Raises:
        NoFileError: the database, or what SQLite keeps beside it, is a folder, a pipe or a device, or leads to one.
        StoreError: it cannot be looked at.
    """
    for suffix in ("", *_COMPANIONS, ".lock"):
        file = path.with_name(path.name + suffix)
        try:
            mode = file.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}.", "Check the rights of its folder.") from error
        if not stat.S_ISREG(mode):
            kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "no file")
            raise NoFileError(
                f"{file} is {kind}, and no file that could hold anything.",
                "Move it away, or set LOCALSPEC_DATA to another folder.",
            )


def emptied(path: Path) -> str:
    """Return what tells that a database which is empty or gone once held something; empty if nothing does."""
    try:
        is_there = path.exists()
        if is_there and path.stat().st_size > 0:
            return ""
        log = path.with_name(f"{path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        backups = sorted(file.name for file in path.parent.glob(f"{glob.escape(path.name)}.v*.bak"))
    except OSError:
        return ""
    state = "is empty" if is_there else "is gone"
    if has_log:
        return f"{state}, though {log.name} beside it shows that it held something"
    if is_there and backups:
        return f"{state}, though {backups[-1]} beside it, a copy of an earlier state, shows that it held something"
    return ""


def condition_of(path: Path, latest: int, is_thorough: bool = False) -> Condition:
    """Return the state of a database file. Nothing is written to it.

    Args:
        path: the file.
        latest: the version that this localspec makes.
        is_thorough: read it through, however large it is.

    Raises:
        StoreError: the file is of a newer localspec, or it cannot be opened.
    """
    try:
        if not path.exists():
            return "missing"
        try:
            return _condition(path, "ro", latest, is_thorough)
        except sqlite3.Error as error:
            if primary_code(error) != sqlite3.SQLITE_READONLY:
                raise
            # What a process left half done when it was killed can only be undone by one that may write.
            return _condition(path, "rw", latest, is_thorough)
    except sqlite3.Error as error:
        if is_surroundings(error):
            raise store_error(error, path) from error
        return "foreign" if _is_no_database(path) else "damaged"
    except UnicodeDecodeError:
        # SQLite's own message quoted what is damaged.
        return "damaged"
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.", "Check the rights of its folder.") from error


def set_aside(path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Path:
    """Rename a database file and what SQLite keeps beside it, and return the new name.

    Raises:
        StoreError: it cannot be renamed.
    """
    stamp = now().strftime("%Y%m%dT%H%M%SZ")
    place = path.with_name(f"{path.name}.aside-{stamp}")
    number = 1
    while place.exists():
        number += 1
        place = path.with_name(f"{path.name}.aside-{stamp}-{number}")
    try:
        if path.exists():
            path.rename(place)
        for companion in _COMPANIONS:
            beside = path.with_name(path.name + companion)
            if beside.exists():
                beside.rename(place.with_name(place.name + companion))
    except OSError as error:
        raise StoreError(
            f"{path} is damaged and cannot be renamed: {error.strerror}.", "Move it away, and try again."
        ) from error
    return place


def _condition(path: Path, mode: Literal["ro", "rw"], latest: int, is_thorough: bool) -> Condition:
    # Read-only if possible, since closing a file that is open for writing also tidies it up: one of a newer localspec
    # stays as it is to the byte.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=10.0)) as connection:
        version = version_of(connection)
        application = int(connection.execute("PRAGMA application_id").fetchone()[0])
        num_tables = int(connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0])
        if version == application == num_tables == 0:
            return "missing"
        if application != APPLICATION_ID:
            return "foreign"
        if not 1 <= version <= _MAX_VERSION:
            return "damaged"
        if version > latest:
            raise StoreError(
                f"{path} was made by a newer localspec (its version is {version}, this one knows {latest}).",
                "Update localspec, or set LOCALSPEC_DATA to another folder to keep things apart.",
            )
        ended_uncleanly = path.with_name(path.name + "-wal").exists()
        is_checked = is_thorough or ended_uncleanly or path.stat().st_size <= _MAX_CHECKED_BYTES
        if is_checked and any(_is_grave(line) for (line,) in connection.execute("PRAGMA quick_check(20)")):
            return "damaged"
        return "current" if version == latest else "older"


def _is_grave(finding: str) -> bool:
    """Return whether a line of SQLite's check tells of damage that cannot be mended; an index can be made anew."""
    return finding != "ok" and f"FTS5 table main.{SEARCH_TABLE}" not in finding


def _is_no_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) != b"SQLite format 3\x00"
    except OSError:
        return False
