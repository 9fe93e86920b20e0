"""Profiles by name. Capitals do not tell two names apart."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError, UsageError
from localspec.store.values import Profile, Record

if TYPE_CHECKING:
    from localspec.store.database import Database

MAX_NAME = 60

_NAME = re.compile(r"[^\W_](?:[\w .-]*[\w.-])?")
_COLUMNS = "SELECT name, created_at, run_id, document FROM profiles"


def check_name(name: str) -> str:
    """Return a name that a profile may have, as it is.

    Raises:
        UsageError: it is too long, or holds what is neither letter, digit, space, point, line nor underscore.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r:.80} cannot be a profile's name.",
            f"Use up to {MAX_NAME} letters, digits, spaces and . _ -, with a letter or digit first and no space last.",
        )
    return name


class Profiles:
    """The profiles of a database.

    Args:
        database: open.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, profile: Profile, *, replaces: bool = False) -> None:
        """Keep a profile.

        Args:
            profile: what to keep.
            replaces: it may take the place of one with the same name.

        Raises:
            UsageError: the name cannot be one, or is taken.
        """
        check_name(profile.name)
        with self._database.transaction() as connection:
            taken = self._named(profile.name)
            if taken is not None and not replaces:
                raise UsageError(
                    f"There is a profile {taken!r} already.", "Choose another name, or replace it with --force."
                )
            if taken is not None:
                connection.execute("DELETE FROM profiles WHERE name = ?", (taken,))
            connection.execute(
                "INSERT INTO profiles (name, created_at, run_id, document) VALUES (?, ?, ?, ?)",
                (profile.name, profile.created_at, profile.run_id, json.dumps(profile.document, allow_nan=False)),
            )

    def get(self, name: str) -> Profile:
        """Return a profile.

        Raises:
            UsageError: there is none of that name; the nearest ones are named.
            LocalspecError: what is kept of it is damaged.
        """
        found = self._named(name)
        if found is None:
            raise self._unknown(name)
        return _profile(self._database.connection.execute(f"{_COLUMNS} WHERE name = ?", (found,)).fetchone())

    def all(self) -> tuple[Profile, ...]:
        """Return all profiles by name."""
        rows = self._database.connection.execute(_COLUMNS).fetchall()
        return tuple(sorted((_profile(row) for row in rows), key=lambda profile: profile.name.casefold()))

    def rename(self, name: str, new_name: str) -> None:
        """Give a profile another name, perhaps only with other capitals.

        Raises:
            UsageError: there is no such profile, or the new name cannot be one or is taken.
        """
        check_name(new_name)
        with self._database.transaction() as connection:
            found, taken = self._named(name), self._named(new_name)
            if found is None:
                raise self._unknown(name)
            if taken is not None and taken != found:
                raise UsageError(f"There is a profile {taken!r} already.", "Choose another name, or delete that one.")
            connection.execute("UPDATE profiles SET name = ? WHERE name = ?", (new_name, found))

    def delete(self, name: str) -> None:
        """Forget a profile. Its run stays.

        Raises:
            UsageError: there is none of that name.
        """
        with self._database.transaction() as connection:
            found = self._named(name)
            if found is None:
                raise self._unknown(name)
            connection.execute("DELETE FROM profiles WHERE name = ?", (found,))

    def _named(self, name: str) -> str | None:
        # SQLite's NOCASE knows no capitals but those of ASCII.
        return next((kept for kept in self._names() if kept.casefold() == name.casefold()), None)

    def _names(self) -> list[str]:
        return [str(row[0]) for row in self._database.connection.execute("SELECT name FROM profiles ORDER BY name")]

    def _unknown(self, name: str) -> UsageError:
        names = self._names()
        near = difflib.get_close_matches(name.casefold(), [kept.casefold() for kept in names], n=3, cutoff=0.5)
        meant = [kept for kept in names if kept.casefold() in near]
        if meant:
            hint = f"Did you mean {' or '.join(repr(kept) for kept in meant)}?"
        elif names:
            hint = "To see all: localspec profile list"
        else:
            hint = "There are none yet. To make one of a kept run: localspec profile save NAME"
        return UsageError(f"There is no profile {name!r:.80}.", hint)


def _profile(row: tuple[str, str, int | None, str]) -> Profile:
    name, created_at, run_id, text = row
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise LocalspecError(
            f"What is kept of the profile {name!r} is damaged.", f"Delete it: localspec profile delete {name!r}"
        )
    record: Record = document
    return Profile(name, created_at, run_id, record)
