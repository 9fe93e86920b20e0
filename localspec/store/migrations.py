"""The database's tables, and the steps by which an older file gets them.

A step is never changed once it has been released: files that took it are out there. What a later release wants
otherwise is a further step at the end of MIGRATIONS; PRAGMA user_version counts the steps that a file has taken.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x4C535043
"""In the file's header, so that another program's database is not taken for ours."""

Migration = tuple[str, ...]
"""Statements of one step, carried out in one transaction."""

_FIRST: Migration = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        created_at TEXT NOT NULL,
        finished_at TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL,
        kind TEXT NOT NULL,
        target_name TEXT NOT NULL DEFAULT '',
        draft_name TEXT NOT NULL DEFAULT '',
        workloads TEXT NOT NULL DEFAULT '[]',
        speedup REAL,
        speedup_low REAL,
        speedup_high REAL,
        best_arm TEXT NOT NULL DEFAULT '',
        build TEXT NOT NULL DEFAULT '',
        device TEXT NOT NULL DEFAULT '',
        profile TEXT NOT NULL DEFAULT '',
        pid INTEGER NOT NULL,
        process_started_at REAL NOT NULL,
        request BLOB NOT NULL,
        document BLOB
    )
    """,
    """
    CREATE TABLE trials (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record TEXT NOT NULL
    )
    """,
    "CREATE INDEX trials_of_run ON trials (run_id)",
    """
    CREATE TABLE rounds (
        id INTEGER PRIMARY KEY,
        run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        place INTEGER NOT NULL,
        record TEXT NOT NULL
    )
    """,
    "CREATE INDEX rounds_of_run ON rounds (run_id)",
    """
    CREATE TABLE profiles (
        name TEXT PRIMARY KEY COLLATE NOCASE,
        created_at TEXT NOT NULL,
        run_id INTEGER REFERENCES runs ON DELETE SET NULL,
        document TEXT NOT NULL
    )
    """,
    "CREATE INDEX profiles_of_run ON profiles (run_id)",
    """
    CREATE TABLE chats (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        target_name TEXT NOT NULL DEFAULT '',
        models TEXT NOT NULL DEFAULT '{}'
    )
    """,
    """
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        chat_id INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
        role TEXT NOT NULL,
        content TEXT NOT NULL,
        created_at TEXT NOT NULL,
        finish_reason TEXT NOT NULL DEFAULT '',
        figures TEXT
    )
    """,
    "CREATE INDEX messages_of_chat ON messages (chat_id)",
)

_SECOND: Migration = (
    # 1 where the speedup is not to be relied on; NULL in runs of before, until they are read.
    "ALTER TABLE runs ADD COLUMN unusable INTEGER",
)

SEARCH_TABLE = "messages_fts"
"""Index of the messages' words; its content is that of `messages`."""

MIGRATIONS: tuple[Migration, ...] = (_FIRST, _SECOND)

_SEARCH_TABLE = """
    CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5(content, content='messages', content_rowid='id')
"""
_SEARCH_TRIGGERS = {
    "messages_fts_insert": """
    CREATE TRIGGER messages_fts_insert AFTER INSERT ON messages BEGIN
        INSERT INTO messages_fts (rowid, content) VALUES (new.id, new.content);
    END
    """,
    "messages_fts_delete": """
    CREATE TRIGGER messages_fts_delete AFTER DELETE ON messages BEGIN
        INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
    END
    """,
    "messages_fts_update": """
    CREATE TRIGGER messages_fts_update AFTER UPDATE OF content ON messages BEGIN
        INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
        INSERT INTO messages_fts (rowid, content) VALUES (new.id, new.content);
    END
    """,
}


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Carry out the steps that the database has not taken yet, each in a transaction of its own.

    Raises:
        sqlite3.Error: a step failed; those before it are done, and of its own nothing is.
    """
    while (version := version_of(connection)) < len(migrations):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have taken the step while this one waited.
            if version_of(connection) == version:
                for statement in migrations[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def version_of(connection: sqlite3.Connection) -> int:
    """Return how many steps a database has taken."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def prepare_search(connection: sqlite3.Connection) -> bool:
    """Make the index of the messages' words fit what this SQLite can do, and return whether there is one.

    It is no step among the others, since it hangs on the library and not on the file: one without FTS5 could not
    even write messages with the triggers there, and one that has it again must read what was written meanwhile.
    """
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'messages_fts%'")}
    triggers = _SEARCH_TRIGGERS.keys() & present
    has_module = connection.execute("SELECT 1 FROM pragma_module_list WHERE name = 'fts5'").fetchone() is not None
    if len(triggers) == (len(_SEARCH_TRIGGERS) if has_module else 0):
        return has_module
    connection.execute("BEGIN IMMEDIATE")
    try:
        for name in _SEARCH_TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        if has_module:
            connection.execute(_SEARCH_TABLE)
            for statement in _SEARCH_TRIGGERS.values():
                connection.execute(statement)
            connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('rebuild')")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return has_module


def discard_search(connection: sqlite3.Connection) -> None:
    """Remove a damaged index of the messages' words; the messages stay, and prepare_search makes it anew."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for name in _SEARCH_TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        # Dropping the table would load it first, which the damage may prevent.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"DELETE FROM sqlite_master WHERE name = '{SEARCH_TABLE}'")
        connection.execute("PRAGMA writable_schema = RESET")
        for part in ("data", "idx", "docsize", "config"):
            connection.execute(f"DROP TABLE IF EXISTS {SEARCH_TABLE}_{part}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("PRAGMA writable_schema = OFF")
        raise
