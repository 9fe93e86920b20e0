"""A database that cannot be written, read all the same: as a copy in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from localspec.store.connection import StoreConnection
from localspec.store.migrations import APPLICATION_ID, Migration, migrate, version_of

MAX_BYTES = 2 * 1024**3
"""A larger file is not copied into memory."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What could be read."""

    connection: StoreConnection
    is_complete: bool
    """False if the log of the last changes could not be read with it."""


def copy_of(path: Path, migrations: Sequence[Migration]) -> Copy | None:
    """Return a database's content, in memory and up to date; None if it cannot be read, or is none of localspec's.

    Nothing at all is written beside the file.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        log = path.with_name(f"{path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
    except OSError:
        return None
    # As it is now, where SQLite can make or find what it needs beside it; else as if nobody could change it.
    for options, is_complete in (("mode=ro", True), ("mode=ro&immutable=1", not has_log)):
        connection = sqlite3.connect(":memory:", isolation_level=None, factory=StoreConnection)
        try:
            address = f"{path.as_uri()}?{options}"
            with closing(sqlite3.connect(address, uri=True, timeout=1.0)) as source:
                if int(source.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
                    raise sqlite3.DatabaseError("another program's")
                if not 1 <= version_of(source) <= len(migrations):
                    raise sqlite3.DatabaseError("another version's")
                source.backup(connection)
            migrate(connection, migrations)
            return Copy(connection, is_complete)
        except (sqlite3.Error, UnicodeDecodeError):
            with suppress(sqlite3.Error):
                connection.close()
    return None
