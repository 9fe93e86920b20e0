"""SQLite's errors in words for the user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from localspec.errors import StoreError

_WORDS: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: ("another process has held it for too long", "End the other localspec, or try again."),
    sqlite3.SQLITE_LOCKED: ("another process has held it for too long", "End the other localspec, or try again."),
    sqlite3.SQLITE_PERM: ("it may not be opened", "Check the rights of the file and its folder."),
    sqlite3.SQLITE_READONLY: ("it may not be written", "Make the file and its folder writable."),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "Check the rights and the room of its folder."),
    sqlite3.SQLITE_FULL: ("there is no room left", "Make room there, or set LOCALSPEC_DATA to a folder elsewhere."),
    sqlite3.SQLITE_IOERR: (
        "the disk refused",
        "Check the disk and its room, or set LOCALSPEC_DATA to a folder elsewhere.",
    ),
    sqlite3.SQLITE_PROTOCOL: ("its locks do not work here", "Set LOCALSPEC_DATA to a folder on a local disk."),
    sqlite3.SQLITE_NOLFS: ("it is too large for this system", "Set LOCALSPEC_DATA to a folder elsewhere."),
    sqlite3.SQLITE_NOMEM: ("there is no memory left", "Close other programs, and try again."),
    sqlite3.SQLITE_INTERRUPT: ("it was interrupted", "Try again."),
    sqlite3.SQLITE_AUTH: ("it may not be used", "Check the rights of the file."),
}
"""Failures of the surroundings: the file itself is not to blame."""

_DAMAGE = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT))


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's result code without its details; None for an error of the binding itself."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error means that the file's content is damaged, or is no database."""
    return primary_code(error) in _DAMAGE


def is_surroundings(error: sqlite3.Error) -> bool:
    """Return whether an error is the fault of the disk, of rights or of another process."""
    return primary_code(error) in _WORDS


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return an error of SQLite with words for the user."""
    reason, hint = _WORDS.get(primary_code(error) or 0, (str(error), "Try again."))
    return StoreError(f"{path} cannot be used: {reason}.", hint)
