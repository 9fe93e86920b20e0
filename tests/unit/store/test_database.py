"""Opening the database: what it makes, what it refuses to touch, and what it puts aside."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localspec.errors import LocalspecError, StoreError
from localspec.store.database import Database, set_journal
from localspec.store.migrations import MIGRATIONS
from localspec.store.runs import Runs

REQUEST = {"workloads": [{"name": "chat"}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "localspec.sqlite3"


def fill(path: Path, num_runs: int = 20) -> None:
    with Database(path) as database:
        runs = Runs(database)
        for number in range(num_runs):
            run_id = runs.start("bench", REQUEST)
            runs.finish(run_id, {"workloads": [], "text": "word " * 500, "number": number}, "done")


def asides(path: Path) -> list[Path]:
    return sorted(file for file in path.parent.glob("*.aside-*") if not file.name.endswith(("-wal", "-shm")))


def test_a_new_database_is_whole_and_writes_ahead(path: Path) -> None:
    with Database(path) as database:
        ask = database.connection.execute
        assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ask("PRAGMA synchronous").fetchone() == (1,)
        assert ask("PRAGMA foreign_keys").fetchone() == (1,)
        assert ask("PRAGMA busy_timeout").fetchone() == (10_000,)
        assert ask("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        tables = {name for (name,) in ask("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert {"runs", "trials", "rounds", "profiles", "chats", "messages"} <= tables
        assert database.notices == ()


def test_without_a_path_it_lies_in_the_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSPEC_DATA", str(tmp_path / "data"))
    Database().close()
    assert (tmp_path / "data" / "localspec.sqlite3").is_file()


def test_a_transaction_is_written_whole_or_not_at_all(path: Path) -> None:
    with Database(path) as database:
        insert = "INSERT INTO profiles (name, created_at, document) VALUES (?, '', '{}')"
        with database.transaction() as connection:
            connection.execute(insert, ("kept",))
            with database.transaction() as inner:
                inner.execute(insert, ("kept too",))
        with pytest.raises(ZeroDivisionError), database.transaction() as connection:
            connection.execute(insert, ("lost",))
            raise ZeroDivisionError
        with pytest.raises(sqlite3.IntegrityError), database.transaction() as connection:
            connection.execute(insert, ("lost, too",))
            connection.execute(insert, ("KEPT",))
        names = [name for (name,) in database.connection.execute("SELECT name FROM profiles ORDER BY name")]
        assert names == ["kept", "kept too"]


def test_words_of_messages_are_found(path: Path) -> None:
    with Database(path) as database:
        assert database.has_search
        ask = database.connection.execute
        ask("INSERT INTO chats (id, title, created_at, updated_at) VALUES (1, 't', '', '')")
        ask("INSERT INTO messages (id, chat_id, role, content, created_at) VALUES (7, 1, 'user', 'old owls', '')")
        found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?"
        assert ask(found, ("owls",)).fetchall() == [(7,)]
        ask("UPDATE messages SET content = 'new larks' WHERE id = 7")
        assert ask(found, ("owls",)).fetchall() == []
        assert ask(found, ("larks",)).fetchall() == [(7,)]
        ask("DELETE FROM chats")
        assert ask(found, ("larks",)).fetchall() == []
        assert ask("SELECT COUNT(*) FROM messages").fetchone() == (0,)


def test_an_index_that_was_left_behind_is_made_anew(path: Path) -> None:
    fill(path, 1)
    # As an SQLite without FTS5 would leave it.
    with closing(sqlite3.connect(path)) as connection:
        for name in ("insert", "delete", "update"):
            connection.execute(f"DROP TRIGGER messages_fts_{name}")
        connection.execute("INSERT INTO chats (id, title, created_at, updated_at) VALUES (1, 't', '', '')")
        connection.execute("INSERT INTO messages (chat_id, role, content, created_at) VALUES (1, 'user', 'owls', '')")
        connection.commit()
    with Database(path) as database:
        found = database.connection.execute("SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'owls'")
        assert len(found.fetchall()) == 1


def test_an_index_that_is_damaged_is_made_anew_and_nothing_put_aside(path: Path) -> None:
    with Database(path) as database:
        ask = database.connection.execute
        ask("INSERT INTO chats (id, title, created_at, updated_at) VALUES (1, 't', '', '')")
        ask("INSERT INTO messages (id, chat_id, role, content, created_at) VALUES (7, 1, 'user', 'old owls', '')")
        ask("UPDATE messages_fts_data SET block = x'ff00ff00ff'")
    with Database(path) as database:
        found = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH 'owls'"
        with pytest.raises(StoreError, match="made anew"):
            database.connection.execute(found).fetchall()
        assert database.connection.execute(found).fetchall() == [(7,)]
    assert asides(path) == []


def _zero(data: bytes) -> bytes:
    return bytes(len(data))


def _noise(data: bytes) -> bytes:
    return random.Random(5).randbytes(len(data))


def _truncated(data: bytes) -> bytes:
    return data[: len(data) // 2 - 100]


def _foreign(data: bytes) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + data[8:]


@pytest.mark.parametrize("spoil", [_zero, _noise, _truncated, _foreign])
def test_a_spoilt_file_is_kept_aside_and_a_new_one_begun(path: Path, spoil: object) -> None:
    fill(path)
    assert callable(spoil)
    spoilt = spoil(path.read_bytes())
    path.write_bytes(spoilt)
    moment = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    with Database(path, now=lambda: moment) as database:
        assert Runs(database).summaries() == ()
        (notice,) = database.notices
        assert "localspec.sqlite3.aside-20250102T030405Z" in notice
        assert Runs(database).start("bench", REQUEST) == 1
    (aside,) = asides(path)
    assert aside.read_bytes() == spoilt
    # The next one is at peace with it.
    with Database(path) as database:
        assert database.notices == ()
        assert len(Runs(database).summaries()) == 1


def test_two_files_put_aside_in_one_second_are_both_kept(path: Path) -> None:
    moment = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    path.parent.mkdir()
    for content in (b"first" * 300, b"second" * 300):
        path.write_bytes(content)
        Database(path, now=lambda: moment).close()
    assert [aside.read_bytes()[:5] for aside in asides(path)] == [b"first", b"secon"]


def test_random_bytes_anywhere_never_end_in_a_traceback_nor_in_a_loss(path: Path, tmp_path: Path) -> None:
    fill(path)
    sound = path.read_bytes()
    rng = random.Random(11)
    num_aside = 0
    for attempt in range(60):
        place = tmp_path / f"{attempt}" / "localspec.sqlite3"
        place.parent.mkdir()
        spoilt = bytearray(sound)
        # Every other time in the first page, where the header and the list of tables are.
        reach = 4096 if attempt % 2 else len(sound)
        start = rng.randrange(reach - 60)
        spoilt[start : start + 60] = rng.randbytes(60)
        place.write_bytes(spoilt)
        try:
            with Database(place) as database:
                runs = Runs(database)
                for summary in runs.summaries():
                    runs.get(summary.id)
                runs.start("bench", REQUEST)
                num_aside += bool(database.notices)
        except StoreError as error:
            assert error.message
        kept = [file for file in place.parent.iterdir() if not file.name.endswith(".lock")]
        assert bytes(spoilt) in [file.read_bytes() for file in kept] or place.stat().st_size >= len(sound)
    assert num_aside > 10


def test_damage_that_shows_later_is_put_aside_then(path: Path) -> None:
    fill(path)
    with Database(path) as database:
        runs = Runs(database)
        database.connection.execute("PRAGMA cache_size = 0")
        data = bytearray(path.read_bytes())
        data[4096:] = random.Random(3).randbytes(len(data) - 4096)
        path.write_bytes(data)
        with pytest.raises(StoreError, match="is damaged"):
            for number in range(1, 21):
                runs.get(number)
        assert len(database.notices) == 1
        # The same object goes on with the new file.
        assert runs.summaries() == ()
        assert runs.start("bench", REQUEST) == 1
    assert len(asides(path)) == 1


def test_a_newer_database_is_left_as_it_is(path: Path) -> None:
    fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer localspec") as caught:
        Database(path)
    assert "Update localspec" in caught.value.hint
    assert path.read_bytes() == before
    assert asides(path) == []


def test_another_programs_database_is_not_written_to(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
    before = path.read_bytes()
    with Database(path) as database:
        assert "no database of localspec's" in database.notices[0]
    assert [aside.read_bytes() for aside in asides(path)] == [before]


def test_a_folder_that_cannot_be_made_is_a_failure_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="Cannot make the folder"):
        Database(tmp_path / "file" / "localspec.sqlite3")
    with pytest.raises(LocalspecError):
        Database(tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="rights do not bind root")
def test_a_folder_that_may_not_be_written_is_a_failure_in_words(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreError):
            Database(tmp_path / "localspec.sqlite3")
    finally:
        tmp_path.chmod(0o700)


def test_a_file_that_may_not_be_written_is_a_failure_in_words(path: Path) -> None:
    fill(path, 1)
    with Database(path) as database:
        database.connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="may not be written"):
            Runs(database).start("bench", REQUEST)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts a small disk")
def test_a_full_disk_is_a_failure_in_words_and_keeps_what_was_there(small_disk: Path) -> None:
    path = small_disk / "localspec.sqlite3"
    fill(path, 2)
    with Database(path) as database:
        runs = Runs(database)
        rng = random.Random(1)
        with pytest.raises(StoreError, match="no room"):
            for _ in range(100):
                runs.finish(1, {"workloads": [], "text": rng.randbytes(30_000).hex()}, "done")
        assert [summary.id for summary in runs.summaries()] == [2, 1]
        assert runs.get(2).document is not None
    with pytest.raises(OSError, match="No space"), (small_disk / "filler").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    with pytest.raises(StoreError):
        Database(small_disk / "other.sqlite3")


def test_where_shared_memory_is_missing_the_rollback_journal_serves(tmp_path: Path) -> None:
    place = tmp_path / "x.sqlite3"
    address = f"{place.as_uri()}?vfs=unix-dotfile"
    with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
        assert set_journal(connection) == "delete"
        connection.execute("CREATE TABLE t (x)")


WRITER = """
import sys
from pathlib import Path
from localspec.store.database import Database
from localspec.store.runs import Runs
sys.stdin.readline()
with Database(Path(sys.argv[1])) as database:
    runs = Runs(database)
    run_id = runs.start("bench", {"workloads": []})
    for place in range(4):
        for number in range(40):
            runs.add_round(run_id, place, {"number": number})
        runs.add_trial(run_id, {"place": place})
    runs.finish(run_id, {"workloads": [], "id": run_id}, "done")
"""


def test_processes_that_begin_and_write_at_once_all_succeed(path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said.decode()
    with Database(path) as database:
        runs = Runs(database)
        assert sorted(summary.id for summary in runs.summaries()) == [1, 2, 3]
        assert [runs.get(number).document for number in (1, 2, 3)] == [{"workloads": [], "id": n} for n in (1, 2, 3)]
        assert database.notices == ()


def test_a_lock_that_is_not_given_back_is_a_failure_in_words(path: Path) -> None:
    fill(path, 1)
    with Database(path) as holder, Database(path) as waiting:
        waiting.connection.execute("PRAGMA busy_timeout = 20")
        with holder.transaction() as connection:
            connection.execute("DELETE FROM trials")
            with pytest.raises(StoreError, match="another process") as caught:
                Runs(waiting).start("bench", REQUEST)
            assert caught.value.hint
        assert Runs(waiting).start("bench", REQUEST) == 2
