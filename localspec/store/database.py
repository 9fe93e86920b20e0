"""The SQLite file that keeps runs, profiles and chats.

Opening it never loses anything: a file that cannot be read is renamed and a new one begun; one of a newer localspec
is left as it is; an older one is copied before it is brought up to date. One that cannot be written, since its folder
may not be or the disk is full, is read all the same; what would write to it then says why it cannot.

A killed process loses at most the transaction that it was writing. After a power cut the file is whole, but the
last transactions before it may be missing (synchronous NORMAL).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from localspec.errors import LocalspecError, StoreError
from localspec.paths import data_dir, models_dir
from localspec.store.condition import NoFileError, check_files, condition_of, emptied, set_aside
from localspec.store.connection import StoreConnection
from localspec.store.failures import is_damage, is_surroundings, store_error
from localspec.store.migrations import (
    MIGRATIONS,
    Migration,
    discard_search,
    migrate,
    prepare_search,
    version_of,
)
from localspec.store.reading import copy_of

FILE_NAME = "localspec.sqlite3"

BUSY_TIMEOUT_S = 10.0
"""How long a statement waits for another process."""

NUM_BACKUPS = 3


def utc_now() -> datetime:
    """Return the moment, in UTC."""
    return datetime.now(UTC)


class Database:
    """An open database. Use it as a context manager, or close it; it belongs to the thread that opened it.

    Args:
        path: the file; by default the one in the data folder.
        migrations: steps to the newest version.
        now: the clock, for names of files and times of records.

    Raises:
        StoreError: it cannot be opened, or a newer localspec made it.
        LocalspecError: there is no data folder that can be written.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        migrations: Sequence[Migration] = MIGRATIONS,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.now = now
        self._migrations = tuple(migrations)
        self._notices: list[str] = []
        self._has_search = False
        self._refusal: LocalspecError | None = None
        self._identity: tuple[int, int] | None = None
        self.path = models_dir().with_name(FILE_NAME) if path is None else path.absolute()
        try:
            if path is None:
                # Made if it is missing.
                data_dir()
            self._connection = self._open()
        except LocalspecError as error:
            self._connection = self._read_only(error)
        else:
            self._identity = _identity_of(self.path)

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, which commits by itself outside of `transaction`. Ask for it anew for each piece of work.

        Its statements raise StoreError where the file or its surroundings are to blame, and sqlite3.Error otherwise.
        """
        return self._connection

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences on what was set aside."""
        return tuple(self._notices)

    @property
    def has_search(self) -> bool:
        """Whether messages_fts can be asked; without FTS5 in this SQLite it cannot."""
        return self._has_search

    @property
    def is_in_place(self) -> bool:
        """Whether the file that is open still lies where it was opened; what is written to one that does not is lost.

        True for one that can only be read.
        """
        return self._identity is None or self._identity == _identity_of(self.path)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        with suppress(sqlite3.Error):
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write everything inside the block, or nothing of it. An inner block belongs to the outer one.

        Raises:
            StoreError: it could not be written.
        """
        if self._refusal is not None:
            raise StoreError(self._refusal.message, self._refusal.hint)
        connection = self._connection
        if connection.in_transaction:
            yield connection
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            # A damaged file has been put aside meanwhile, and its connection closed.
            with suppress(sqlite3.Error, StoreError):
                connection.rollback()
            raise

    def _read_only(self, error: LocalspecError) -> StoreConnection:
        """Return what can be read of a file that cannot be opened for writing, or raise why that is."""
        copy = None if isinstance(error, NoFileError) else copy_of(self.path, self._migrations)
        if copy is None:
            raise error
        self._refusal = error
        lost = "" if copy.is_complete else " Its last changes could not be read with it."
        self._notices.append(
            f"{error.message.removesuffix('.')}. What {self.path} holds can be read, and nothing is kept.{lost}"
        )
        self._has_search = prepare_search(copy.connection)
        copy.connection.judge = self._judge_copy
        return copy.connection

    def _open(self) -> StoreConnection:
        check_files(self.path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"Cannot make the folder {self.path.parent}: {error.strerror}.", "Choose another one."
            ) from error
        if emptied(self.path):
            with self._locked():
                self._begin_anew()
        if condition_of(self.path, len(self._migrations)) != "current":
            with self._locked():
                self._make_ready()
        try:
            return self._connect()
        except sqlite3.Error as error:
            if is_surroundings(error):
                raise store_error(error, self.path) from error
        # It looked sound, and still nothing can be done with it.
        with self._locked():
            self._put_aside("is damaged")
            self._make_ready()
        try:
            return self._connect()
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def _begin_anew(self) -> None:
        # Another process may have begun it meanwhile.
        why = emptied(self.path)
        if not why:
            return
        beside = self.path.with_name(f"{self.path.name}-wal")
        kept = ""
        if beside.exists():
            # SQLite would delete it with the first change.
            kept = f" What is left is kept as {set_aside(self.path, self.now).name}-wal."
        self._notices.append(f"{self.path} {why}.{kept} A new one is begun.")

    def _make_ready(self) -> None:
        condition = condition_of(self.path, len(self._migrations))
        if condition in ("damaged", "foreign"):
            self._put_aside("is damaged" if condition == "damaged" else "is no database of localspec's")
        try:
            with closing(sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
                if condition == "older":
                    back_up(connection, self.path, self.now)
                set_journal(connection)
                migrate(connection, self._migrations)
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def _connect(self) -> StoreConnection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, factory=StoreConnection)
        try:
            set_journal(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            self._has_search = prepare_search(connection)
        except BaseException:
            connection.close()
            raise
        connection.judge = self._judge
        return connection

    def _judge(self, error: sqlite3.Error) -> Exception:
        """Return what a failed statement raises; what proves damaged is put aside or mended first."""
        if is_damage(error):
            return self._recover(error)
        if is_surroundings(error) or _is_unreadable_text(error):
            return store_error(error, self.path)
        return error

    def _judge_copy(self, error: sqlite3.Error) -> Exception:
        return store_error(error, self.path) if is_damage(error) or is_surroundings(error) else error

    def _recover(self, error: sqlite3.Error) -> StoreError:
        self.close()
        with self._locked():
            is_damaged = condition_of(self.path, len(self._migrations), is_thorough=True) in ("damaged", "foreign")
            if is_damaged:
                self._put_aside("is damaged")
        self._connection = self._open()
        if is_damaged:
            return StoreError(self._notices[-1], "Try again.")
        # The tables are sound, so that it was the index, or nothing that lasts.
        return self._renew_search() or StoreError(f"{self.path} could not be read: {error}.", "Try again.")

    def _renew_search(self) -> StoreError | None:
        try:
            self._connection.judge = None
            discard_search(self._connection)
            self._has_search = prepare_search(self._connection)
        except sqlite3.Error:
            return None
        finally:
            self._connection.judge = self._judge
        return StoreError("The index of the messages was damaged, and has been made anew.", "Try again.")

    def _put_aside(self, reason: str) -> None:
        place = set_aside(self.path, self.now)
        self._notices.append(f"{self.path} {reason}. It is kept as {place.name}, and a new one is begun.")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time make, bring up to date or put aside the file."""
        # Loaded only now, since nearly every opening finds the file ready.
        from filelock import FileLock, Timeout

        try:
            with FileLock(f"{self.path}.lock", timeout=BUSY_TIMEOUT_S):
                yield
        except Timeout:
            raise StoreError(
                f"{self.path} cannot be used: another process has held it for too long.",
                "End the other localspec, or try again.",
            ) from None
        except OSError as error:
            raise StoreError(
                f"Cannot write in the folder {self.path.parent}: {error.strerror or error}.",
                "Make it writable and make room there, or set LOCALSPEC_DATA to another one.",
            ) from error


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _is_unreadable_text(error: sqlite3.Error) -> bool:
    """Return whether a value was no text; the binding finds that, and gives it no code."""
    return isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")


def set_journal(connection: sqlite3.Connection) -> str:
    """Choose write-ahead logging, or the rollback journal where the file system lacks what that needs; return which."""
    try:
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    except sqlite3.OperationalError:
        # Alone with the file SQLite needs no shared memory, and can lead it back.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
        connection.execute("PRAGMA locking_mode = NORMAL")
    return str(mode)


def back_up(connection: sqlite3.Connection, path: Path, now: Callable[[], datetime] = utc_now) -> Path:
    """Copy a database beside itself, as `NAME.vVERSION.bak`; the newest NUM_BACKUPS copies stay.

    Raises:
        StoreError: there is no room for it, or it cannot be written.
    """
    stem = f"{path.name}.v{version_of(connection)}"
    place = path.with_name(f"{stem}.bak")
    if place.exists():
        place = path.with_name(f"{stem}.{now().strftime('%Y%m%dT%H%M%SZ')}.bak")
    draft = path.with_name(f"{place.name}.part")
    try:
        draft.unlink(missing_ok=True)
        with closing(sqlite3.connect(draft)) as copy:
            connection.backup(copy)
        os.replace(draft, place)
        backups = sorted(path.parent.glob(f"{path.name}.v*.bak"), key=lambda file: file.stat().st_mtime_ns)
        for old in backups[:-NUM_BACKUPS]:
            old.unlink()
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            draft.unlink()
        raise StoreError(
            f"No copy of {path} could be made before bringing it up to date: {error}.", "Make room there."
        ) from error
    return place
