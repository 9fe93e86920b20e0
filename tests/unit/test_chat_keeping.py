from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.catalog.found_model import FoundModel
from localspec.engine.values import Message, SamplingSettings, SpeculationSettings
from localspec.errors import ModelFileError, StoreError
from localspec.session import hashing
from localspec.session.arguments import named_model
from localspec.session.chat_continuation import changed_files, find_draft, find_target, hash_checks
from localspec.session.chat_keeping import ChatKeeper
from localspec.session.chat_record import (
    MAX_TITLE,
    figures_record,
    kept_flags,
    merged_flags,
    models_record,
    title_of,
    turns_of,
)
from localspec.session.conversation import Answer, Conversation
from localspec.settings import Settings, load_settings
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import Record, StoredChat, StoredMessage
from tests.scripted_engine import EchoEngine, FakeClock

MODELS: Record = {"target": {"name": "tiny"}, "draft": None}


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    with Database(tmp_path / "chats.sqlite3") as database:
        yield Chats(database)


async def answered(text: str) -> Answer:
    engine = EchoEngine()
    conversation = Conversation(engine, SamplingSettings(), 100)
    await conversation.configure(SpeculationSettings(method="ngram"))
    return await conversation.ask(text, lambda piece: None)


def contents(chats: Chats, chat_id: int) -> list[tuple[str, str, str]]:
    return [(message.role, message.content, message.finish_reason) for message in chats.get(chat_id).messages]


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("Why?", "Why?"),
        ("  Two\nlines\tand [b]more[/b] ", "Two lines and [b]more[/b]"),
        ("word " * 40, "word " * 10 + "word…"),
        ("x" * 100, "x" * (MAX_TITLE - 1) + "…"),
        ("y" * MAX_TITLE, "y" * MAX_TITLE),
        ("a " + "x" * 100, "a " + "x" * (MAX_TITLE - 3) + "…"),
    ],
)
def test_titles(question: str, title: str) -> None:
    assert title_of(question) == title
    assert len(title) <= MAX_TITLE


async def test_an_answer_is_kept_while_it_comes(chats: Chats) -> None:
    clock = FakeClock()
    keeper = ChatKeeper(chats, MODELS, pytest.fail, clock)
    assert keeper.chat_id is None
    keeper.ask("question")
    chat_id = keeper.chat_id
    assert chat_id is not None
    assert contents(chats, chat_id) == [("user", "question", "")]
    keeper.hear("one ")
    assert contents(chats, chat_id)[1:] == [("assistant", "one ", "incomplete")]
    clock.advance(0.4)
    keeper.hear("two ")
    assert contents(chats, chat_id)[1:] == [("assistant", "one ", "incomplete")]
    clock.advance(0.2)
    keeper.hear("three")
    assert contents(chats, chat_id)[1:] == [("assistant", "one two three", "incomplete")]
    answer = await answered("one two three four")
    keeper.finish(answer)
    assert contents(chats, chat_id)[1:] == [("assistant", "one two three four ", "stop")]
    assert chats.get(chat_id).messages[1].figures == figures_record(answer)
    keeper.give_up()
    assert contents(chats, chat_id)[1][2] == "stop"


async def test_figures_of_an_answer() -> None:
    figures = figures_record(await answered("one two three four five six seven"))
    assert figures["tokens"] == 7
    assert figures["decode_tps"] > 0 and figures["ttft_s"] > 0
    assert (figures["is_on"], figures["method"], figures["drafter"], figures["reason"]) == (True, "ngram", "ngram", "")
    assert figures["mean_accepted_length"] == pytest.approx(3.0)
    assert 0 < figures["acceptance_rate"] <= 1


def test_an_answer_that_fails_stays_incomplete(chats: Chats) -> None:
    keeper = ChatKeeper(chats, MODELS, pytest.fail, FakeClock())
    keeper.ask("question")
    keeper.hear("one ")
    keeper.hear("two ")
    keeper.give_up()
    assert contents(chats, 1)[1:] == [("assistant", "one two ", "incomplete")]
    keeper.ask("silence")
    keeper.give_up()
    assert contents(chats, 1)[2:] == [("user", "silence", "")]


async def test_a_turn_that_is_taken_back_leaves_no_trace(chats: Chats) -> None:
    keeper = ChatKeeper(chats, MODELS, say=print)
    for question in ("one two", "three four", "five"):
        keeper.ask(question)
        keeper.hear(question)
        keeper.finish(await answered(question))
    keeper.take_back()
    keeper.take_back()
    assert keeper.chat_id is not None
    assert [content.strip() for _, content, _ in contents(chats, keeper.chat_id)] == ["one two", "one two"]
    keeper.take_back()
    keeper.take_back()
    assert contents(chats, keeper.chat_id) == []
    assert chats.search("three") == ()


def test_starting_over_is_another_chat(chats: Chats) -> None:
    keeper = ChatKeeper(chats, MODELS, pytest.fail, FakeClock())
    keeper.rename("chosen")
    keeper.ask("first")
    keeper.rename("chosen again")
    keeper.start_over()
    keeper.ask("second")
    assert [summary.title for summary in chats.summaries()] == ["second", "chosen again"]


def test_other_settings_count_with_the_next_question(chats: Chats) -> None:
    chat_id = chats.start("kept", MODELS)
    keeper = ChatKeeper(chats, {"method": "off"}, pytest.fail, FakeClock(), chat_id)
    assert chats.get(chat_id).models == MODELS
    keeper.ask("question")
    assert chats.get(chat_id).models == {"method": "off"}
    keeper.use({"method": "ngram"})
    keeper.ask("question")
    assert chats.get(chat_id).models == {"method": "ngram"}


@pytest.mark.parametrize("error", [StoreError("The disk is full.", ""), sqlite3.OperationalError("The disk is full.")])
async def test_a_store_that_fails_is_said_once(chats: Chats, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    keeper = ChatKeeper(chats, MODELS, said.append, FakeClock())
    keeper.ask("question")

    def fail(*given: object) -> int:
        raise error

    monkeypatch.setattr(Chats, "add_message", fail)
    keeper.hear("answer")
    keeper.finish(await answered("answer"))
    keeper.ask("another")
    keeper.rename("title")
    assert said == ["From here on this chat is not kept: The disk is full."]
    assert keeper.chat_id is None and not keeper.is_keeping


def test_without_a_store_nothing_is_kept() -> None:
    keeper = ChatKeeper(None, MODELS, pytest.fail, FakeClock())
    keeper.ask("question")
    keeper.hear("answer")
    keeper.give_up()
    assert keeper.chat_id is None


def message(role: str, content: str) -> StoredMessage:
    assert role in ("user", "assistant")
    return StoredMessage(0, "user" if role == "user" else "assistant", content, "", "", None)


def test_a_conversation_goes_on_with_what_was_answered() -> None:
    kept = [
        message("user", "lost"),
        message("user", "a"),
        message("assistant", "A"),
        message("assistant", "stray"),
        message("user", "b"),
        message("assistant", ""),
        message("user", "c"),
    ]
    assert turns_of(kept) == (Message("user", "a"), Message("assistant", "A"))


def put_model(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def kept_chat(chats: Chats, target: Path, draft: Path | None = None, settings: Settings | None = None) -> StoredChat:
    used = settings or load_settings()
    found = named_model(str(target), used), None if draft is None else named_model(str(draft), used)
    return chats.get(chats.start("kept", models_record(*found, used, "draft", "Be kind.", 77)))


def test_settings_come_back_as_flags(chats: Chats, tmp_path: Path) -> None:
    settings = load_settings(
        {"draft": {"n_max": 7, "type_k": "q8_0"}, "sampling": {"seed": 5}, "context": {"n_ctx": 99}}
    )
    chat = kept_chat(chats, put_model(tmp_path / "a.gguf"), settings=settings)
    assert (chat.models["method"], chat.models["system"], chat.models["max_tokens"]) == ("draft", "Be kind.", 77)
    again = load_settings(kept_flags(chat.models))
    assert (again.draft, again.sampling, again.context) == (settings.draft, settings.sampling, settings.context)
    assert "method" not in again.draft.model_fields_set


@pytest.mark.parametrize("models", [{}, {"settings": 3}, {"settings": {"draft": [], "context": {"of_later": 1}}}])
def test_settings_of_other_versions_are_left_out(models: Record) -> None:
    assert load_settings(kept_flags(models)).model_dump() == load_settings().model_dump()


def test_given_flags_win_over_kept_ones() -> None:
    merged = merged_flags({"draft": {"n_max": 2, "n_min": None}}, {"draft": {"n_max": 8, "n_min": 1}, "context": {}})
    assert merged == {"draft": {"n_max": 2, "n_min": 1}, "context": {}}


def test_models_are_found_where_they_were(chats: Chats, tmp_path: Path) -> None:
    target, draft = put_model(tmp_path / "a.gguf"), put_model(tmp_path / "b.gguf")
    chat = kept_chat(chats, target, draft)
    model, notes = find_target(chat, load_settings())
    assert (model.path, notes) == (target, ())
    found, notes = find_draft(chat, load_settings())
    assert found is not None and (found.path, notes) == (draft, ())


def test_a_moved_model_is_found_by_its_name(chats: Chats, tmp_path: Path) -> None:
    target = put_model(tmp_path / "old" / "a.gguf")
    chat = kept_chat(chats, target)
    moved = put_model(tmp_path / "models" / "a.gguf")
    target.unlink()
    settings = load_settings({"models": {"folders": (moved.parent,)}})
    model, notes = find_target(chat, settings)
    assert model.path == moved
    assert notes == (f"The target was at {target}; {moved} is taken for it.",)


def test_what_is_gone_is_said(chats: Chats, tmp_path: Path) -> None:
    target, draft = put_model(tmp_path / "gone_a.gguf"), put_model(tmp_path / "gone_b.gguf")
    chat = kept_chat(chats, target, draft)
    target.unlink()
    draft.unlink()
    with pytest.raises(ModelFileError, match="not here any more") as raised:
        find_target(chat, load_settings())
    assert "--target MODEL" in raised.value.hint
    assert find_draft(chat, load_settings()) == (None, (f"The draft of this chat is not here any more: {draft}.",))


def test_another_size_is_another_file(chats: Chats, tmp_path: Path) -> None:
    target = put_model(tmp_path / "a.gguf")
    chat = kept_chat(chats, target)
    put_model(target, b"GGUF and more")
    model, notes = find_target(chat, load_settings())
    assert "another file than then: 13 bytes instead of 4" in notes[0]
    assert hash_checks(chat, model, None) == ()


async def test_another_content_of_the_same_size_is_found_by_its_sum(
    chats: Chats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setattr(hashing, "cache_dir", lambda: folder)
    target = put_model(tmp_path / "a.gguf")
    assert kept_chat(chats, target).models["target"]["sha256"] is None
    await hashing.sha256_of(target)
    chat = kept_chat(chats, target)
    assert chat.models["target"]["sha256"] == hashlib.sha256(b"GGUF").hexdigest()
    model, _ = find_target(chat, load_settings())
    checks = hash_checks(chat, model, None)
    assert await changed_files(checks) == ()
    put_model(target, b"gguf")
    notes = await changed_files(checks)
    assert len(notes) == 1 and hashlib.sha256(b"gguf").hexdigest()[:12] in notes[0]
    target.unlink()
    assert await changed_files(checks) == ()


async def test_a_stream_that_stalls_is_on_record_all_the_same(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.chat_keeping.UPDATE_S", 0.02)
    keeper = ChatKeeper(chats, MODELS, pytest.fail)
    keeper.ask("question")
    for piece in ("one ", "two ", "three"):
        keeper.hear(piece)
    assert contents(chats, 1)[1:] == [("assistant", "one ", "incomplete")]
    # The engine is busy, and nothing more comes.
    await asyncio.sleep(0.2)
    assert contents(chats, 1)[1:] == [("assistant", "one two three", "incomplete")]
    keeper.hear(" four")
    keeper.finish(await answered("five"))
    await asyncio.sleep(0.1)
    assert contents(chats, 1)[1][2] == "stop"


async def test_every_piece_of_a_slow_stream_is_on_record_soon(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.chat_keeping.UPDATE_S", 0.02)
    keeper = ChatKeeper(chats, MODELS, pytest.fail)
    keeper.ask("question")
    heard = ""
    for number in range(4):
        for piece in (f"{number}a ", f"{number}b "):
            heard += piece
            keeper.hear(piece)
        await asyncio.sleep(0.1)
        assert contents(chats, 1)[1][1] == heard
    keeper.give_up()


def test_whether_answers_are_remembered_is_no_matter_of_a_chat() -> None:
    settings = Settings.model_validate({"draft": {"remembers": True, "n_max": 7}})
    target = FoundModel("m", Path("/m.gguf"), (Path("/m.gguf"),), "folder", file_bytes=1)
    record = models_record(target, None, settings, "auto", "", 10)
    assert record["settings"]["draft"]["n_max"] == 7 and "remembers" not in record["settings"]["draft"]
    record["settings"]["draft"]["remembers"] = True
    assert "remembers" not in kept_flags(record)["draft"]
