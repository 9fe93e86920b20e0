"""Chats with their messages.

Texts come from people and models and may hold anything, NUL and halves of surrogate pairs too, which are no valid
UTF-8. They are therefore handed to SQLite as bytes and read back as bytes; in between they are TEXT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from localspec.errors import UsageError
from localspec.store.database import Database
from localspec.store.values import ChatSummary, Record, StoredChat, StoredMessage

Role = Literal["system", "user", "assistant"]

_LARGEST_ID = 2**63 - 1
_SNIPPET = (40, 110)
"""Characters of a snippet before and after where the first word is found."""

_SUMMARY = """
    SELECT id, CAST(title AS BLOB), created_at, updated_at, CAST(target_name AS BLOB),
        (SELECT COUNT(*) FROM messages WHERE chat_id = chats.id)
    FROM chats
"""


@dataclass(frozen=True, slots=True)
class ChatHit:
    """A chat in which words were found."""

    summary: ChatSummary
    num_found: int
    """Messages that hold all the words; 0 if only the title does."""
    snippet: str
    """From the newest of them, around the first word; as it was written, on one line."""


class Chats:
    """The chats of an open database.

    All raise StoreError where the file cannot be read or written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(self, title: str, models: Record) -> int:
        """Begin a chat and return its number."""
        at = self._time()
        with self._database.transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO chats (title, created_at, updated_at, target_name, models) "
                "VALUES (CAST(? AS TEXT), ?, ?, CAST(? AS TEXT), ?)",
                (_bytes(title), at, at, _bytes(_target_name(models)), json.dumps(models)),
            )
            return int(cursor.lastrowid or 0)

    def use(self, chat_id: int, models: Record) -> None:
        """Keep other models or settings as those last in use.

        Raises:
            UsageError: there is no such chat. So for all that take the number of one.
        """
        self._change(
            chat_id,
            "target_name = CAST(? AS TEXT), models = ?",
            (_bytes(_target_name(models)), json.dumps(models)),
        )

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title. That does not make it newer."""
        self._change(chat_id, "title = CAST(? AS TEXT)", (_bytes(title),))

    def add_message(
        self, chat_id: int, role: Role, content: str, finish_reason: str = "", figures: Record | None = None
    ) -> int:
        """Append a message and return its number."""
        at = self._time()
        with self._database.transaction() as connection:
            changed = connection.execute("UPDATE chats SET updated_at = ? WHERE id = ?", (at, self._checked(chat_id)))
            if not changed.rowcount:
                raise self._missing(chat_id)
            cursor = connection.execute(
                "INSERT INTO messages (chat_id, role, content, created_at, finish_reason, figures) "
                "VALUES (?, ?, CAST(? AS TEXT), ?, ?, ?)",
                (chat_id, role, _bytes(content), at, finish_reason, _json(figures)),
            )
            return int(cursor.lastrowid or 0)

    def update_message(self, message_id: int, content: str, finish_reason: str, figures: Record | None = None) -> None:
        """Put a message's newer state in place of the one that is kept.

        Raises:
            UsageError: there is no such message.
        """
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE messages SET content = CAST(? AS TEXT), finish_reason = ?, figures = ? WHERE id = ?",
                (_bytes(content), finish_reason, _json(figures), message_id),
            )
            if not changed.rowcount:
                raise UsageError("The message is not there any more.", "Its chat was deleted meanwhile.")
            connection.execute(
                "UPDATE chats SET updated_at = ? WHERE id = (SELECT chat_id FROM messages WHERE id = ?)",
                (self._time(), message_id),
            )

    def remove_last_turn(self, chat_id: int) -> None:
        """Remove the last question with whatever came after it; nothing if there is none."""
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM messages WHERE chat_id = ? AND id >= "
                "(SELECT MAX(id) FROM messages WHERE chat_id = ? AND role = 'user')",
                (self._checked(chat_id), chat_id),
            )

    def summaries(self, limit: int | None = None) -> tuple[ChatSummary, ...]:
        """Return the chats, the one last added to first; at most `limit`."""
        rows = self._database.connection.execute(
            f"{_SUMMARY} ORDER BY updated_at DESC, id DESC LIMIT ?", (-1 if limit is None else limit,)
        )
        return tuple(map(_summary, rows))

    def count(self) -> int:
        """Return how many chats there are."""
        return int(self._database.connection.execute("SELECT COUNT(*) FROM chats").fetchone()[0])

    def search(self, words: str, limit: int | None = None) -> tuple[ChatHit, ...]:
        """Return the chats with a message, or a title, that holds all the words, the one last added to first.

        Capitals count for nothing, and a word may be the beginning of a longer one. A word with other characters than
        letters and digits, or in a script without spaces, is sought everywhere.
        """
        patterns = _patterns(words)
        if not patterns:
            return ()
        found = self._found(words.split(), patterns)
        hits = []
        for summary in self.summaries():
            num_found, newest = found.get(summary.id, (0, 0))
            if not num_found and not _holds(summary.title, patterns):
                continue
            snippet = _snippet(self._content(newest), patterns) if num_found else ""
            hits.append(ChatHit(summary, num_found, snippet))
            if limit is not None and len(hits) >= limit:
                break
        return tuple(hits)

    def get(self, chat_id: int) -> StoredChat:
        """Return a chat with all its messages."""
        connection = self._database.connection
        row = connection.execute(f"{_SUMMARY} WHERE id = ?", (self._checked(chat_id),)).fetchone()
        if row is None:
            raise self._missing(chat_id)
        models = connection.execute("SELECT models FROM chats WHERE id = ?", (chat_id,)).fetchone()[0]
        messages = connection.execute(
            "SELECT id, role, CAST(content AS BLOB), created_at, finish_reason, figures FROM messages "
            "WHERE chat_id = ? ORDER BY id",
            (chat_id,),
        )
        return StoredChat(
            summary=_summary(row),
            models=_record(models) or {},
            messages=tuple(
                StoredMessage(id_, role, _text(content), at, finish_reason, _record(figures))
                for id_, role, content, at, finish_reason, figures in messages
            ),
        )

    def delete(self, chat_id: int) -> None:
        """Delete a chat with its messages."""
        with self._database.transaction() as connection:
            gone = connection.execute("DELETE FROM chats WHERE id = ?", (self._checked(chat_id),))
            if not gone.rowcount:
                raise self._missing(chat_id)

    def _change(self, chat_id: int, assignments: str, values: tuple[object, ...]) -> None:
        with self._database.transaction() as connection:
            changed = connection.execute(
                f"UPDATE chats SET {assignments} WHERE id = ?", (*values, self._checked(chat_id))
            )
            if not changed.rowcount:
                raise self._missing(chat_id)

    def _found(self, words: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> dict[int, tuple[int, int]]:
        """Return for each chat how many of its messages hold all the words, and the newest of those."""
        connection = self._database.connection
        values: tuple[object, ...] = ()
        if self._database.has_search and all(map(_is_indexed, words)):
            condition = "id IN (SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?)"
            # Inside quotes FTS5 knows no operators; the star behind them asks for words that begin so.
            values = (" ".join(f'"{word}"*' for word in words),)
        else:
            folded = [word.casefold() for word in words]
            connection.create_function(
                "localspec_holds", 1, lambda content: _holds(_text(content), patterns, folded), deterministic=True
            )
            condition = "localspec_holds(CAST(content AS BLOB))"
        rows = connection.execute(
            f"SELECT chat_id, COUNT(*), MAX(id) FROM messages WHERE {condition} GROUP BY chat_id", values
        )
        return {chat_id: (num_found, newest) for chat_id, num_found, newest in rows}

    def _content(self, message_id: int) -> str:
        row = self._database.connection.execute(
            "SELECT CAST(content AS BLOB) FROM messages WHERE id = ?", (message_id,)
        ).fetchone()
        return "" if row is None else _text(row[0])

    def _time(self) -> str:
        return self._database.now().isoformat(timespec="milliseconds")

    def _checked(self, chat_id: int) -> int:
        if not 0 < chat_id <= _LARGEST_ID:
            raise self._missing(chat_id)
        return chat_id

    def _missing(self, chat_id: int) -> UsageError:
        rows = self._database.connection.execute("SELECT id FROM chats")
        near = sorted(sorted((id_ for (id_,) in rows), key=lambda id_: abs(id_ - chat_id))[:3])
        hint = f"The nearest: {', '.join(map(str, near))}." if near else "No chats are kept yet."
        return UsageError(f"There is no chat {chat_id}.", hint)


def _is_indexed(word: str) -> bool:
    # The index splits texts at everything else, and knows scripts without spaces only as whole sentences.
    return word.isalnum() and all(character < "\u0528" and character != "\u037f" for character in word)


def _patterns(words: str) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile((r"(?<![^\W_])" if _is_indexed(word) else "") + re.escape(word), re.IGNORECASE)
        for word in words.split()
    )


def _holds(text: str, patterns: Sequence[re.Pattern[str]], folded: Sequence[str] = ()) -> bool:
    if folded:
        # Far quicker than the patterns, and most texts go no further.
        lower = text.casefold()
        if not all(word in lower for word in folded):
            return False
    return all(pattern.search(text) for pattern in patterns)


def _snippet(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    places = [match.start() for pattern in patterns if (match := pattern.search(text))]
    at = min(places, default=0)
    first, last = max(0, at - _SNIPPET[0]), at + _SNIPPET[1]
    line = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{line}{'…' if last < len(text) else ''}"


def _target_name(models: Record) -> str:
    target = models.get("target")
    return str(target.get("name") or "") if isinstance(target, dict) else ""


def _summary(row: tuple[Any, ...]) -> ChatSummary:
    id_, title, created_at, updated_at, target_name, num_messages = row
    return ChatSummary(id_, _text(title), created_at, updated_at, _text(target_name), num_messages)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace")


def _json(record: Record | None) -> str | None:
    return None if record is None else json.dumps(record)


def _record(text: str | None) -> Record | None:
    try:
        record = json.loads(text) if text else None
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
