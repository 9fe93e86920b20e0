"""A connection whose failures are judged: damage, surroundings, or the statement's own fault."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

Judge = Callable[[sqlite3.Error], Exception]
"""Takes SQLite's error and returns the one to raise."""


class StoreConnection(sqlite3.Connection):
    """What it executes and fetches raises what `judge` makes of SQLite's error; None leaves it as it is."""

    judge: Judge | None = None

    def cursor(self, *given: Any, **named: Any) -> Any:
        """Return a cursor that does the same."""
        return super().cursor(_StoreCursor)


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
        except sqlite3.Error as error:
            judge = cast(StoreConnection, self.connection).judge
            found = error if judge is None else judge(error)
            if found is error:
                raise
            raise found from error
