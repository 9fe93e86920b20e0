from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localspec.errors import UsageError
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import Record

MODELS: Record = {"target": {"name": "tiny"}, "draft": None}

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "[/] [bold]",
    "\u202eabc\u202c",
    "half a pair \ud83d, the other \ude00",
    "\ud83d\ude00",
    "before\x00behind",
    "'; DROP TABLE chats; --",
    "",
]

texts = st.text(st.characters(), max_size=60)
"""Any characters, halves of surrogate pairs too."""

anything = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _through_json(record: Record) -> object:
    return json.loads(json.dumps(record))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    seconds = itertools.count()
    with Database(
        tmp_path / "chats.sqlite3", now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(seconds))
    ) as opened:
        yield opened


@pytest.fixture
def chats(database: Database) -> Chats:
    return Chats(database)


def put(chats: Chats, *contents: str, title: str = "title") -> int:
    """Keep a chat of questions and answers by turns, and return its number."""
    chat_id = chats.start(title, MODELS)
    for index, content in enumerate(contents):
        chats.add_message(chat_id, "assistant" if index % 2 else "user", content)
    return chat_id


def found(chats: Chats, words: str) -> list[int]:
    return [hit.summary.id for hit in chats.search(words)]


def test_a_chat_comes_back_as_it_was(chats: Chats) -> None:
    chat_id = chats.start("A title", MODELS)
    question = chats.add_message(chat_id, "user", "why?")
    answer = chats.add_message(chat_id, "assistant", "be", "incomplete")
    chats.update_message(answer, "because", "stop", {"tokens": 2, "decode_tps": 1.5})
    chat = chats.get(chat_id)
    assert chat.summary.title == "A title"
    assert chat.summary.target_name == "tiny"
    assert chat.summary.num_messages == 2
    assert chat.summary.created_at < chat.summary.updated_at
    assert chat.models == MODELS
    assert [(item.id, item.role, item.content, item.finish_reason, item.figures) for item in chat.messages] == [
        (question, "user", "why?", "", None),
        (answer, "assistant", "because", "stop", {"tokens": 2, "decode_tps": 1.5}),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_kept_as_they_are(chats: Chats, text: str) -> None:
    models: Record = {"target": {"name": text}, "system": text}
    chat_id = chats.start(text, models)
    chats.update_message(chats.add_message(chat_id, "assistant", text), text + "!", "stop", {"drafter": text})
    chats.rename(chat_id, text)
    chat = chats.get(chat_id)
    assert (chat.summary.title, chat.summary.target_name) == (text, text)
    # JSON itself makes one character of two halves side by side.
    assert (chat.models, chat.messages[0].figures) == (_through_json(models), _through_json({"drafter": text}))
    assert chat.messages[0].content == text + "!"
    assert chats.summaries() == (chat.summary,)


@anything
@given(contents=st.lists(texts, min_size=1, max_size=4))
def test_any_texts_come_back(chats: Chats, contents: list[str]) -> None:
    chat_id = put(chats, *contents, title=contents[0])
    chat = chats.get(chat_id)
    assert [message.content for message in chat.messages] == contents
    assert chat.summary.title == contents[0]
    chats.delete(chat_id)


@anything
@given(words=texts, contents=st.lists(texts, min_size=1, max_size=3))
def test_no_search_fails_or_finds_what_does_not_hold_the_words(chats: Chats, words: str, contents: list[str]) -> None:
    chat_id = put(chats, *contents)
    for hit in chats.search(words):
        assert hit.summary.id == chat_id
        assert hit.num_found or all(word.casefold() in "title" for word in words.split())
    chats.delete(chat_id)
    assert found(chats, words) == []


@anything
@given(words=st.lists(st.text(st.characters(), min_size=1, max_size=8), min_size=1, max_size=3))
def test_what_was_said_is_found(chats: Chats, words: list[str]) -> None:
    said = " ".join(words).split()
    chat_id = put(chats, " ".join(words), "another message")
    assert not said or found(chats, " ".join(said)) == [chat_id]
    chats.delete(chat_id)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Speculation", [1]),
        ("spec", [1]),
        ("culation", []),
        ("spec verify", [1]),
        ("spec kitchen", []),
        ("c++", [2]),
        ("foo_bar(", [2]),
        ("foo_b", [2]),
        ("ÜBER", [3]),
        ("世界", [3]),
        ("half\ud83d", [4]),
        ("behind", [4]),
        ("title", [4, 3, 2, 1]),
        ("OR", []),
        ('"', []),
        ("spec*", []),
        ("NEAR(spec verify)", []),
        ("content:spec", []),
        ("%", []),
        ("'; DROP TABLE messages; --", []),
        ("  ", []),
    ],
)
def test_words_are_only_words(chats: Chats, words: str, expected: list[int]) -> None:
    put(chats, "On speculation", "Drafts that the target must verify: speculation.")
    put(chats, "In C++, call foo_bar(1)")
    put(chats, "Über allem: 你好世界")
    put(chats, "half\ud83d before\x00behind")
    assert found(chats, words) == expected
    assert chats.count() == 4


def test_a_database_without_an_index_is_searched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Database(tmp_path / "plain.sqlite3") as database:
        monkeypatch.setattr(database, "_has_search", False)
        chats = Chats(database)
        chat_id = put(chats, "On speculation")
        assert found(chats, "SPEC on") == [chat_id]
        assert found(chats, "culation") == []


def test_a_snippet_shows_where_the_words_are(chats: Chats) -> None:
    put(chats, "x " * 500 + "the needle\nis here" + " y" * 500, "no such thing", "a second needle")
    hit = chats.search("needle")[0]
    assert hit.num_found == 2
    assert hit.snippet == "a second needle"
    snippet = chats.search("needle here")[0].snippet
    assert "the needle is here" in snippet
    assert snippet.startswith("…") and snippet.endswith("…") and len(snippet) < 200


def test_what_is_no_longer_said_is_no_longer_found(chats: Chats) -> None:
    chat_id = put(chats, "first")
    answer = chats.add_message(chat_id, "assistant", "alpha", "incomplete")
    chats.update_message(answer, "beta", "stop")
    assert found(chats, "alpha") == []
    assert found(chats, "beta") == [chat_id]
    chats.delete(chat_id)
    assert found(chats, "beta") == []


def test_the_last_one_used_comes_first(chats: Chats) -> None:
    first, second = put(chats, "a"), put(chats, "b")
    assert [summary.id for summary in chats.summaries()] == [second, first]
    chats.add_message(first, "user", "again")
    chats.rename(second, "renamed")
    assert [(summary.id, summary.title) for summary in chats.summaries()] == [(first, "title"), (second, "renamed")]
    assert [summary.id for summary in chats.summaries(1)] == [first]
    assert [hit.summary.id for hit in chats.search("title", 1)] == [first]


def test_other_models_take_the_place_of_the_earlier_ones(chats: Chats) -> None:
    chat_id = put(chats, "a")
    chats.use(chat_id, {"target": {"name": "large"}})
    chat = chats.get(chat_id)
    assert chat.summary.target_name == "large"
    assert chat.models == {"target": {"name": "large"}}


def test_a_deleted_chat_is_gone_with_its_messages(chats: Chats, database: Database) -> None:
    kept, gone = put(chats, "a"), put(chats, "b", "c")
    chats.delete(gone)
    assert [summary.id for summary in chats.summaries()] == [kept]
    assert database.connection.execute("SELECT COUNT(*) FROM messages").fetchone()[0] == 1


@pytest.mark.parametrize("chat_id", [99, 0, -1, 2**63, -(2**70)])
def test_what_is_not_there_is_said_with_the_nearest(chats: Chats, chat_id: int) -> None:
    for _ in range(5):
        put(chats, "a")
    for work in (
        chats.get,
        chats.delete,
        lambda id_: chats.rename(id_, "x"),
        lambda id_: chats.use(id_, {}),
        lambda id_: chats.add_message(id_, "user", "x"),
    ):
        with pytest.raises(UsageError, match=f"There is no chat {chat_id}") as raised:
            work(chat_id)
        assert raised.value.hint == f"The nearest: {'3, 4, 5' if chat_id > 0 else '1, 2, 3'}."
    assert [summary.num_messages for summary in chats.summaries()] == [1] * 5


def test_without_chats_the_hint_says_so(chats: Chats) -> None:
    with pytest.raises(UsageError) as raised:
        chats.get(1)
    assert raised.value.hint == "No chats are kept yet."


def test_a_message_of_a_deleted_chat_cannot_be_written(chats: Chats) -> None:
    chat_id = put(chats, "a")
    answer = chats.add_message(chat_id, "assistant", "b", "incomplete")
    chats.delete(chat_id)
    with pytest.raises(UsageError, match="not there any more"):
        chats.update_message(answer, "c", "stop")


def test_thousands_of_messages(chats: Chats, database: Database) -> None:
    with database.transaction():
        for number in range(300):
            put(chats, *(f"message {index} of chat {number}, {'lorem ipsum ' * 10}" for index in range(10)))
        put(chats, "the only needle", "c++ is a language")
    assert chats.count() == 301
    assert len(chats.summaries()) == 301
    assert found(chats, "needle") == [301]
    assert found(chats, "c++") == [301]
    hits = chats.search("lorem message", 7)
    assert [hit.num_found for hit in hits] == [10] * 7


def test_two_that_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "shared.sqlite3"
    with Database(path) as one, Database(path) as other:
        first, second = Chats(one), Chats(other)
        chat_id = put(first, "a")
        second.add_message(chat_id, "assistant", "b")
        first.add_message(chat_id, "user", "c")
        assert [message.content for message in second.get(chat_id).messages] == ["a", "b", "c"]
