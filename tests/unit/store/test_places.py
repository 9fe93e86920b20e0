"""Where the database cannot be what it should: no file, none to be written, one that was emptied or taken away."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from localspec.errors import LocalspecError, StoreError
from localspec.store import reading
from localspec.store.database import Database
from localspec.store.migrations import MIGRATIONS
from localspec.store.runs import Runs
from tests.kept_runs import made_up_run

REQUEST = {"workloads": [{"name": "chat"}]}
DRIFTED = {"off": (100.0, 60.0, 30.0), "draft": (150.0, 152.0, 149.0)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "localspec.sqlite3"


def keep(path: Path) -> None:
    with Database(path) as database:
        runs = Runs(database)
        runs.finish(runs.start("bench", REQUEST), {"workloads": []}, "done")


def put_pipe(path: Path) -> None:
    os.mkfifo(path)


def put_folder(path: Path) -> None:
    path.mkdir()


def put_link(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.skipif(os.name == "nt", reason="there are no such files")
@pytest.mark.parametrize(("put", "word"), [(put_pipe, "pipe"), (put_folder, "folder"), (put_link, "device")])
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_is_no_file_is_refused_at_once(path: Path, put: object, word: str, suffix: str) -> None:
    assert callable(put)
    put(path.with_name(path.name + suffix))
    with pytest.raises(StoreError, match=word):
        Database(path)
    assert [file.name for file in path.parent.iterdir()] == [path.name + suffix]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder with a kept run on a disk that may not be written."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if not sys.platform.startswith("linux") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a disk")
    try:
        keep(place / "localspec.sqlite3")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_may_not_be_written_is_read(read_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = read_only / "localspec.sqlite3"
    with Database(path) as database:
        runs = Runs(database)
        assert [summary.id for summary in runs.summaries()] == [1]
        assert len(database.notices) == 1 and "can be read" in database.notices[0]
        with pytest.raises(StoreError):
            runs.start("bench", REQUEST)
        with pytest.raises(StoreError):
            runs.delete(1)
        assert database.is_in_place
    assert [file.name for file in read_only.iterdir() if file.name.endswith("-shm")] == []
    monkeypatch.setenv("LOCALSPEC_DATA", str(read_only))
    with Database() as database:
        assert database.path == path and len(Runs(database).summaries()) == 1
    with pytest.raises(LocalspecError):
        Database(read_only / "other.sqlite3")


def test_runs_are_listed_on_a_full_disk(path: Path) -> None:
    keep(path)
    with Database(path) as database:
        Runs(database).start("bench", REQUEST)
        database.connection.execute("UPDATE runs SET pid = 999999999 WHERE id = 2")
        # As a full disk does, this lets nothing more be written.
        database.connection.execute("PRAGMA query_only = ON")
        assert [summary.state for summary in Runs(database).summaries()] == ["lost", "done"]


def test_a_copy_is_brought_up_to_date_and_the_file_stays(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")
        connection.execute("PRAGMA user_version = 1")
    assert reading.copy_of(path, MIGRATIONS) is None
    path.unlink()
    Database(path, migrations=MIGRATIONS[:1]).close()
    before = path.read_bytes()
    copy = reading.copy_of(path, MIGRATIONS)
    assert copy is not None and copy.is_complete
    assert copy.connection.execute("SELECT unusable FROM runs").fetchall() == []
    assert path.read_bytes() == before


def test_a_file_that_was_taken_away_is_noticed(path: Path) -> None:
    with Database(path) as database:
        assert database.is_in_place
        path.unlink()
        assert not database.is_in_place
        with Database(path) as other:
            assert other.is_in_place
        assert not database.is_in_place


def test_an_emptied_file_with_a_log_is_said_and_the_log_kept(path: Path) -> None:
    keep(path)
    log = path.with_name(f"{path.name}-wal")
    path.write_bytes(b"")
    log.write_bytes(b"what was written last")
    with Database(path) as database:
        (notice,) = database.notices
        assert "is empty" in notice and log.name in notice
        assert Runs(database).summaries() == ()
    (kept,) = path.parent.glob("*.aside-*-wal")
    assert kept.read_bytes() == b"what was written last"


def test_an_emptied_file_with_a_backup_is_said_once(path: Path) -> None:
    path.with_name(f"{path.name}.v1.bak").write_bytes(b"earlier")
    path.write_bytes(b"")
    with Database(path) as database:
        assert f"{path.name}.v1.bak" in database.notices[0]
    with Database(path) as database:
        assert database.notices == ()


def test_a_new_file_is_nothing_to_speak_of(path: Path) -> None:
    path.write_bytes(b"")
    with Database(path) as database:
        assert database.notices == ()


def test_an_earlier_release_did_not_know_what_is_unusable(path: Path) -> None:
    with Database(path) as database:
        runs = Runs(database)
        for rates in (DRIFTED, None):
            runs.finish(runs.start("bench", REQUEST), made_up_run(rates), "done")
        assert [summary.is_unusable for summary in runs.summaries()] == [False, True]
        database.connection.execute("UPDATE runs SET unusable = NULL")
        summaries = Runs(database).summaries()
        assert [summary.is_unusable for summary in summaries] == [False, True]
        assert summaries[1].speedup is not None
        assert database.connection.execute("SELECT COUNT(*) FROM runs WHERE unusable IS NULL").fetchone() == (0,)
