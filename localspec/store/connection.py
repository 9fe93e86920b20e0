"""A connection whose failures are judged: damage, surroundings, or the statement's own fault."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from localspec.errors import StoreError

Judge = Callable[[sqlite3.Error], Exception]
"""Takes SQLite's error and returns the one to raise."""


class StoreConnection(sqlite3.Connection):
    """What it executes and fetches raises what `judge` makes of SQLite's error; None leaves it as it is."""

    judge: Judge | None = None

    def cursor(self, *given: Any, **named: Any) -> Any:
        """Return a cursor that does the same."""
        return super().cursor(_StoreCursor)

    def execute(self, *given: Any) -> sqlite3.Cursor:
        """Execute a statement on a new cursor."""
        # Python's own makes a cursor of its own kind.
        cursor: _StoreCursor = self.cursor()
        return cursor.execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        """Execute a statement several times on a new cursor."""
        cursor: _StoreCursor = self.cursor()
        return cursor.executemany(*given)


class _StoreCursor(sqlite3.Cursor):
    def execute(self, *given: Any) -> _StoreCursor:
        with self._judged():
            super().execute(*given)
        return self

    def executemany(self, *given: Any) -> _StoreCursor:
        with self._judged():
            super().executemany(*given)
        return self

    def fetchone(self) -> Any:
        with self._judged():
            return super().fetchone()

    def fetchmany(self, *given: Any, **named: Any) -> list[Any]:
        with self._judged():
            return super().fetchmany(*given, **named)

    def fetchall(self) -> list[Any]:
        with self._judged():
            return super().fetchall()

    def __next__(self) -> Any:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            # Damaged text, be it a value or quoted in SQLite's message.
            raise StoreError(
                "A stored text cannot be read.", "Delete this entry; the others are not touched."
            ) from error
        except sqlite3.Error as error:
            judge = cast(StoreConnection, self.connection).judge
            found = error if judge is None else judge(error)
            if found is error:
                del found
                raise
            try:
                raise found from error
            finally:
                # Otherwise error and frame would hold each other, and with them an open statement.
                del found
