"""Upgrades: a file of the first version goes through every later step, and a copy of it stays."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localspec.errors import StoreError
from localspec.store.database import NUM_BACKUPS, Database
from localspec.store.migrations import APPLICATION_ID, MIGRATIONS, Migration

MOMENT = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)

FIRST_FILE = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, created_at TEXT NOT NULL);
CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT NOT NULL);
INSERT INTO runs (id, created_at) VALUES (12, '2025-01-01T00:00:00+00:00');
PRAGMA user_version = 1;
"""
"""A file as SQL text, so that it stays what it is when the code changes."""

FIRST: Migration = ("SELECT 'taken by FIRST_FILE'",)
SECOND: Migration = ("ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT ''", "UPDATE runs SET note = 'upgraded'")
THIRD: Migration = ("CREATE TABLE extra (x)",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "localspec.sqlite3"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(FIRST_FILE)
    return place


def read(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


def test_an_older_file_is_copied_and_brought_up_to_date(path: Path) -> None:
    with Database(path, migrations=(FIRST, SECOND, THIRD)) as database:
        ask = database.connection.execute
        assert ask("SELECT id, note FROM runs").fetchall() == [(12, "upgraded")]
        assert ask("SELECT COUNT(*) FROM extra").fetchone() == (0,)
        assert ask("PRAGMA user_version").fetchone() == (3,)
        assert database.notices == ()
    backup = path.with_name("localspec.sqlite3.v1.bak")
    assert read(backup, "SELECT * FROM runs") == [(12, "2025-01-01T00:00:00+00:00")]
    assert read(backup, "PRAGMA user_version") == [(1,)]


def test_a_step_that_fails_leaves_the_file_at_the_step_before(path: Path) -> None:
    broken: Migration = ("CREATE TABLE extra (x)", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(StoreError, match="nowhere"):
        Database(path, migrations=(FIRST, SECOND, broken))
    assert read(path, "PRAGMA user_version") == [(2,)]
    assert read(path, "SELECT name FROM sqlite_master WHERE name = 'extra'") == []
    with Database(path, migrations=(FIRST, SECOND, THIRD)) as database:
        assert database.connection.execute("SELECT note FROM runs").fetchall() == [("upgraded",)]
    # The copy of the first version was made once, and not again from what was half done.
    assert read(path.with_name("localspec.sqlite3.v1.bak"), "PRAGMA user_version") == [(1,)]


def test_a_second_copy_of_one_version_does_not_replace_the_first(path: Path) -> None:
    path.with_name("localspec.sqlite3.v1.bak").write_text("an earlier one")
    Database(path, migrations=(FIRST, SECOND), now=lambda: MOMENT).close()
    assert path.with_name("localspec.sqlite3.v1.bak").read_text() == "an earlier one"
    second = path.with_name("localspec.sqlite3.v1.20250102T030405Z.bak")
    assert read(second, "PRAGMA user_version") == [(1,)]


def test_only_the_newest_copies_stay(path: Path) -> None:
    for number in range(5):
        old = path.with_name(f"localspec.sqlite3.v0.{number}.bak")
        old.write_text("old")
        os.utime(old, (number, number))
    Database(path, migrations=(FIRST, SECOND)).close()
    copies = {file.name for file in path.parent.glob("*.bak")}
    assert copies == {"localspec.sqlite3.v0.3.bak", "localspec.sqlite3.v0.4.bak", "localspec.sqlite3.v1.bak"}
    assert len(copies) == NUM_BACKUPS


def test_without_a_copy_nothing_is_changed(path: Path) -> None:
    # A folder in the way of the copy, as a full disk would be.
    (path.with_name("localspec.sqlite3.v1.bak.part") / "x").mkdir(parents=True)
    with Database(path, migrations=(FIRST, SECOND)) as database:
        assert "No copy" in database.notices[0]
        assert database.connection.execute("SELECT id, note FROM runs").fetchall() == [(12, "upgraded")]
        with pytest.raises(StoreError, match="No copy"), database.transaction():
            pass
    assert read(path, "PRAGMA user_version") == [(1,)]


def test_a_new_file_needs_no_copy(tmp_path: Path) -> None:
    Database(tmp_path / "new.sqlite3").close()
    assert list(tmp_path.glob("*.bak*")) == []
    assert read(tmp_path / "new.sqlite3", "PRAGMA application_id") == [(APPLICATION_ID,)]


def test_the_steps_of_released_versions_stay_as_they_are() -> None:
    tables = [statement.split()[2] for statement in MIGRATIONS[0] if statement.split()[1] == "TABLE"]
    assert tables == ["runs", "trials", "rounds", "profiles", "chats", "messages"]
