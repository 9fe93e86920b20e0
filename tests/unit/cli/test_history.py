from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.chat_markdown import chat_markdown
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed
from localspec.engine.requests import Generate, LoadModels
from localspec.errors import StoreError
from localspec.store.chats import Chats
from localspec.store.database import Database
from localspec.store.values import StoredChat
from tests.scripted_engine import EchoEngine

HOSTILE = "[/] [bold]x[/bold] \x1b[31mred \u202eabc \ud83d \x00 end"

Command = Callable[..., tuple[int, str, str]]


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return put(tmp_path / "model.gguf")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "localspec.sqlite3"


@pytest.fixture
def command(store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Carry out a command line with a store of the test's own; `said` comes from a pipe, `typed` from a person."""

    def command(
        *arguments: str, said: str = "", typed: str | None = None, engine: EchoEngine | None = None
    ) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(said) if typed is None else Keyboard(typed))
        used = engine or EchoEngine()
        code = run(arguments, Services(make_engine=lambda: used, open_database=lambda: Database(store)))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def put(path: Path, content: bytes = b"GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def kept(store: Path, chat_id: int = 1) -> StoredChat:
    with Database(store) as database:
        return Chats(database).get(chat_id)


def put_chat(store: Path, *contents: str, title: str = "title", models: dict[str, Any] | None = None) -> int:
    """Keep a chat of questions and answers by turns, as if it had been had."""
    with Database(store) as database:
        chats = Chats(database)
        chat_id = chats.start(title, {"target": {"name": title}, **(models or {})})
        for index, content in enumerate(contents):
            if index % 2:
                figures = {"tokens": 3, "decode_tps": 12.5, "ttft_s": 0.25, "is_on": False, "reason": title}
                chats.add_message(chat_id, "assistant", content, "cancelled", figures)
            else:
                chats.add_message(chat_id, "user", content)
        return chat_id


def asked(engine: EchoEngine) -> list[list[str]]:
    return [
        [message.content for message in request.messages]
        for request in engine.requests
        if isinstance(request, Generate)
    ]


def test_a_chat_is_kept_with_figures_and_models(command: Command, store: Path, model: Path) -> None:
    code, out, err = command("chat", str(model), "--n-max", "3", "--system", "Be kind.", said="one two three\nfour\n")
    assert (code, out) == (0, "one two three \nfour \n")
    assert "chat 1 kept" in err
    chat = kept(store)
    assert chat.summary.title == "one two three"
    assert chat.summary.target_name == "model"
    assert [message.content for message in chat.messages] == ["one two three", "one two three ", "four", "four "]
    assert [message.finish_reason for message in chat.messages] == ["", "stop", "", "stop"]
    figures = chat.messages[1].figures
    assert figures is not None and figures["tokens"] == 3
    assert (figures["drafter"], figures["method"], figures["pacing"]) == ("auto", "auto", "fixed")
    assert chat.models["target"]["path"] == str(model)
    assert chat.models["settings"]["draft"]["n_max"] == 3
    assert (chat.models["system"], chat.models["method"]) == ("Be kind.", "auto")


def test_nothing_is_kept_if_that_is_wished(command: Command, store: Path, model: Path) -> None:
    code, out, err = command("chat", str(model), "--no-keep", said="hello\n/title x\n")
    assert (code, out) == (0, "hello \n")
    assert "This chat is not kept." in err
    assert not store.exists()


def test_a_chat_without_a_store_goes_on(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Database:
        raise StoreError("It was made by a newer localspec.", "Update localspec.")

    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n"))
    assert run(["chat", str(model)], Services(make_engine=EchoEngine, open_database=fail)) == 0
    captured = capsys.readouterr()
    assert captured.out == "hello \n"
    assert captured.err.count("not kept") == 1 and "made by a newer localspec" in captured.err


def test_a_failed_answer_keeps_the_question(command: Command, store: Path, model: Path) -> None:
    engine = EchoEngine({"generate": EngineFailed(2, "TemplateError", "No system role.", "Leave it out.")})
    command("chat", str(model), said="first\nsecond\n", engine=engine)
    assert [message.content for message in kept(store).messages] == ["first", "second", "second "]


def test_commands_in_the_chat(command: Command, store: Path, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved.md"
    said = f"a\n/title  My\t[own] title \n/off\nb\n/save {file}\n/save {file}\n/save\n/title\n/clear\nc\n"
    code, _, err = command("chat", str(model), said=said)
    assert code == 0
    assert "The chat is called My [own] title." in err
    assert f"There is a file {file} already." in err
    assert "/save FILE writes" in err and "/title TEXT calls" in err
    assert "## Question\n\nb\n\n## Answer\n\nb\n" in file.read_text("utf-8")
    assert kept(store, 1).summary.title == "My [own] title"
    assert kept(store, 1).models["method"] == "off"
    assert kept(store, 2).summary.title == "c"


def test_an_unkept_chat_can_be_saved(command: Command, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved.md"
    command("chat", str(model), "--no-keep", "--system", "Be kind.", said=f"hello\n/save {file}\n")
    text = file.read_text("utf-8")
    assert text.startswith("# hello\n")
    assert "## System\n\nBe kind.\n\n## Question\n\nhello\n\n## Answer\n\nhello\n" in text


def test_the_list(command: Command, store: Path) -> None:
    assert "No chats are kept yet." in command("history")[1]
    put_chat(store, "a", "b", title="first")
    put_chat(store, "a", title="second")
    code, out, _ = command("history")
    assert code == 0
    rows = [line.split() for line in out.splitlines()[2:]]
    assert [(row[0], row[1], row[2], row[-1]) for row in rows] == [
        ("2", "second", "1", "second"),
        ("1", "first", "2", "first"),
    ]
    assert command("history", "list")[1] == out
    limited = command("history", "--limit", "1")[1]
    assert "second" in limited and "first" not in limited and "1 older; --limit 2 shows all." in limited


def test_the_list_as_json(command: Command, store: Path) -> None:
    put_chat(store, "a", "b", title=HOSTILE)
    code, out, _ = command("history", "--json")
    record = json.loads(out)
    assert code == 0 and record["num_chats"] == 1
    assert (record["chats"][0]["title"], record["chats"][0]["num_messages"]) == (HOSTILE, 2)


def test_a_narrow_list_leaves_out_the_target(command: Command, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_chat(store, "a", title="a title of some length")
    assert "Target" in command("history")[1]
    monkeypatch.setenv("COLUMNS", "60")
    out = command("history")[1]
    assert "Target" not in out
    assert max(map(len, out.splitlines())) <= 60


def test_search(command: Command, store: Path) -> None:
    put_chat(store, "What is speculation?", "Speculation drafts [bold]tokens[/bold].", title="first")
    put_chat(store, "nothing of it", title="second")
    code, out, _ = command("history", "search", "SPEC", "drafts")
    assert code == 0
    assert "chat 1: first (2 messages, " in out
    assert "    Speculation drafts [bold]tokens[/bold]." in out and "second" not in out
    assert command("history", "search", "spec")[1].count("(2 messages)") == 1
    assert command("history", "search", "\"' OR 1=1; --")[:2] == (1, "No chat holds \"' OR 1=1; --.\n")
    code, out, _ = command("history", "search", "--json", "drafts")
    assert [hit["chat"]["id"] for hit in json.loads(out)["hits"]] == [1]


def test_show(command: Command, store: Path) -> None:
    put_chat(
        store, "a question", "an\nanswer", title="first", models={"system": "Be kind.", "draft": {"name": "small"}}
    )
    code, out, _ = command("history", "show", "1")
    assert code == 0
    assert out.startswith("chat 1: first\ntarget first, draft small\n")
    assert "\nsystem\n  Be kind.\n\nquestion\n  a question\n\nanswer\n  an\n  answer\n" in out
    assert "3 tokens | decode 12.5 tokens/s | first text after 250 ms | speculation OFF (first) | stopped" in out


@pytest.mark.parametrize(
    "arguments", [("history",), ("history", "show", "1"), ("history", "search", "end"), ("history", "export", "1")]
)
def test_hostile_texts_do_no_harm(command: Command, store: Path, arguments: tuple[str, ...]) -> None:
    put_chat(store, HOSTILE, HOSTILE, title=HOSTILE, models={"system": HOSTILE, "draft": {"name": HOSTILE}})
    code, out, err = command(*arguments)
    assert code == 0
    assert not {character for character in out + err if not character.isprintable()} - {"\n"}
    assert "bold" in out and "red" in out


@pytest.mark.parametrize("figures", ['{"tokens": "many", "is_on": true, "n_max": []}', "[1]", "{nonsense", ""])
def test_damaged_figures_do_no_harm(command: Command, store: Path, figures: str) -> None:
    put_chat(store, "a", "b")
    with Database(store) as database:
        database.connection.execute("UPDATE messages SET figures = ?", (figures,))
    code, out, _ = command("history", "show", "1")
    assert code == 0 and "answer\n  b\n" in out


def test_export_as_markdown(command: Command, store: Path, tmp_path: Path) -> None:
    code_block = "Look:\n\n```python\nprint('[x]')\n```\n\nand\n\n~~~\ncut"
    put_chat(store, "a *question*", code_block, title="On `x` and <b>")
    file = tmp_path / "chat.md"
    code, out, err = command("history", "export", "1", "-o", str(file))
    assert (code, out) == (0, "") and str(file) in err
    text = file.read_text("utf-8")
    assert text == command("history", "export", "1")[1]
    assert text.startswith("# On \\`x\\` and \\<b\\>\n")
    assert "## Question\n\na *question*\n" in text
    assert f"## Answer\n\n{code_block}\n~~~\n" in text
    assert text == chat_markdown(kept(store))


def test_export_as_json(command: Command, store: Path, tmp_path: Path) -> None:
    put_chat(store, HOSTILE, "b", title=HOSTILE)
    file = tmp_path / "chat.json"
    assert command("history", "export", "1", "-o", str(file))[0] == 0
    record = json.loads(file.read_text("utf-8"))
    assert record == json.loads(command("history", "show", "1", "--json")[1])
    assert record["messages"][0]["content"] == record["title"] == HOSTILE
    assert record["messages"][1]["figures"]["tokens"] == 3
    assert record["messages"][1]["finish_reason"] == "cancelled"
    assert json.loads(command("history", "export", "1", "--json")[1]) == record


def test_no_export_writes_over_a_file(command: Command, store: Path, tmp_path: Path) -> None:
    put_chat(store, "a", "b")
    file = put(tmp_path / "chat.md", b"mine")
    code, _, err = command("history", "export", "1", "-o", str(file))
    assert code == 2 and "--force" in err
    assert file.read_bytes() == b"mine"
    assert command("history", "export", "1", "-o", str(file), "--force")[0] == 0
    assert "## Question" in file.read_text("utf-8")
    code, _, err = command("history", "export", "1", "-o", str(tmp_path / "none" / "chat.md"))
    assert code == 1 and "cannot be written" in err
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_rename_and_delete(command: Command, store: Path) -> None:
    for title in ("first", "second", "third"):
        put_chat(store, "a", title=title)
    assert command("history", "rename", "2", "A", "new\ntitle")[:2] == (0, "Chat 2 is called A new title.\n")
    assert command("history", "rename", "2", " ")[0] == 2
    code, _, err = command("history", "delete", "1")
    assert code == 2 and "Add --yes." in err
    code, _, err = command("history", "delete", "1", "9", "--yes")
    assert code == 2 and "There is no chat 9." in err
    code, out, _ = command("history", "delete", "1", "3", "1", "--yes")
    assert code == 0 and out.endswith("2 chats deleted.\n")
    assert [chat["title"] for chat in json.loads(command("history", "--json")[1])["chats"]] == ["A new title"]


@pytest.mark.parametrize(("typed", "code", "num_left"), [("y\n", 0, 0), ("\n", 1, 1), ("n\n", 1, 1)])
def test_a_person_is_asked_before_deleting(command: Command, store: Path, typed: str, code: int, num_left: int) -> None:
    put_chat(store, "a")
    assert command("history", "delete", "1", typed=typed)[0] == code
    with Database(store) as database:
        assert Chats(database).count() == num_left


def test_a_chat_is_continued(command: Command, store: Path, model: Path) -> None:
    options = ("--system", "Be kind.", "--n-max", "7", "--seed", "5", "--max-tokens", "50")
    command("chat", str(model), *options, said="a\n/off\nb\n")
    engine = EchoEngine()
    code, out, err = command("history", "continue", "1", said="c\n", engine=engine)
    assert (code, out) == (0, "c \n")
    assert "chat 1: a (4 messages)" in err and "you: b" in err
    assert asked(engine) == [["Be kind.", "a", "a ", "b", "b ", "c"]]
    load, generate = engine.requests[-2:]
    assert isinstance(load, LoadModels) and isinstance(generate, Generate)
    assert (load.target_path, load.speculation.method, load.speculation.n_max) == (str(model), "off", 7)
    assert (generate.sampling.seed, generate.max_tokens) == (5, 50)
    assert [message.content for message in kept(store).messages][-2:] == ["c", "c "]
    again = EchoEngine()
    command("chat", "--continue", "--method", "ngram", "--seed", "6", said="d\n", engine=again)
    assert asked(again)[0][-3:] == ["c", "c ", "d"]
    assert kept(store).models["method"] == "ngram"
    assert kept(store).models["settings"]["sampling"]["seed"] == 6
    assert kept(store).models["settings"]["draft"]["n_max"] == 7


def test_the_same_draft_is_loaded_again(command: Command, model: Path, store: Path) -> None:
    draft = put(model.with_name("small.gguf"))
    command("chat", str(model), "--draft", str(draft), "--method", "draft", said="a\n")
    engine = EchoEngine()
    command("chat", "--continue", said="b\n", engine=engine)
    load = next(request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.draft_path, load.speculation.method) == (str(draft), "draft")
    without = EchoEngine()
    command("history", "continue", "1", "--draft", "none", said="c\n", engine=without)
    load = next(request for request in without.requests if isinstance(request, LoadModels))
    assert (load.draft_path, load.speculation.method) == ("", "auto")
    assert kept(store).models["draft"] is None


def test_a_draft_that_is_gone_is_said(command: Command, model: Path) -> None:
    draft = put(model.with_name("gone_draft.gguf"))
    command("chat", str(model), "--draft", str(draft), "--method", "cascade", said="a\n")
    draft.unlink()
    code, out, err = command("chat", "--continue", said="b\n")
    assert (code, out) == (0, "b \n")
    assert f"note: The draft of this chat is not here any more: {draft}." in err
    assert "speculation ON (auto" in err


def test_a_draft_that_cannot_be_used_any_more_is_refused(command: Command, store: Path, model: Path) -> None:
    draft = put(model.with_name("damaged_draft.gguf"))
    command("chat", str(model), "--draft", str(draft), said="a\n")
    before = kept(store)
    engine = EchoEngine()
    engine.draft_failure = "it is damaged"
    code, _, err = command("chat", "--continue", said="b\n", engine=engine)
    assert code == 1 and "error: The draft cannot be used: it is damaged." in err
    assert "With --draft none the chat goes on without." in err
    assert kept(store) == before
    assert command("chat", "--continue", "--draft", "none", said="b\n")[:2] == (0, "b \n")


def test_a_target_that_is_gone_or_changed_is_said(command: Command, model: Path) -> None:
    command("chat", str(model), said="a\n")
    put(model, b"GGUF and more")
    assert "The target is another file than then: 13 bytes instead of 4" in command("chat", "--continue", said="")[2]
    moved = model.rename(model.with_name("moved_away.gguf"))
    code, _, err = command("history", "continue", "1")
    assert code == 1 and "--target MODEL" in err
    engine = EchoEngine()
    code, out, _ = command("history", "continue", "1", "--target", str(moved), said="b\n", engine=engine)
    assert (code, out) == (0, "b \n")
    assert asked(engine) == [["a", "a ", "b"]]


def test_a_load_that_fails_changes_no_chat(command: Command, store: Path, model: Path) -> None:
    command("chat", str(model), said="a\n")
    before = kept(store)
    engine = EchoEngine({"load_models": EngineFailed(1, "ModelLoadError", "No.", "Take another.")})
    assert command("chat", "--continue", "--n-max", "9", said="b\n", engine=engine)[0] == 1
    assert kept(store) == before


def test_a_question_without_an_answer_is_said(command: Command, store: Path, model: Path) -> None:
    put_chat(store, "a", "A", "b", models={"target": {"name": "model", "path": str(model)}})
    engine = EchoEngine()
    _, _, err = command("chat", "--continue", said="c\n", engine=engine)
    assert "This question has no answer, so ask again: b" in err
    assert asked(engine) == [["a", "A", "c"]]


def test_settings_that_cannot_be_used_any_more_are_said(command: Command, store: Path, model: Path) -> None:
    models = {"target": {"path": str(model)}, "settings": {"draft": {"n_max": 1000}}, "method": "magic", "system": 3}
    put_chat(store, "a", "A", models=models)
    engine = EchoEngine()
    code, _, err = command("chat", "--continue", said="b\n", engine=engine)
    assert code == 0 and "The chat's settings cannot be used any more" in err
    assert asked(engine) == [["a", "A", "b"]]
    assert command("chat", "--continue", "--n-min", "9", "--n-max", "4")[0] == 2


def test_going_on_keeps_nothing_if_that_is_wished(command: Command, store: Path, model: Path) -> None:
    command("chat", str(model), said="a\n")
    before = kept(store)
    engine = EchoEngine()
    command("chat", "--continue", "--no-keep", said="b\n", engine=engine)
    assert asked(engine) == [["a", "a ", "b"]]
    assert kept(store) == before


def test_there_may_be_nothing_to_go_on_with(command: Command) -> None:
    code, _, err = command("chat", "--continue")
    assert code == 2 and "There is no chat to go on with." in err
    code, _, err = command("history", "continue", "7")
    assert code == 2 and "There is no chat 7." in err
    code, _, err = command("chat")
    assert code == 2 and "--continue" in err


CHAT_PROGRAM = """
import sys
from pathlib import Path
from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.store.database import Database
from tests.scripted_engine import EchoEngine
services = Services(make_engine=lambda: EchoEngine(pause_s=0.02), open_database=lambda: Database(Path(sys.argv[2])))
sys.exit(run(["chat", sys.argv[1], "--max-tokens", "5000"], services))
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no such signal on Windows")
def test_a_kill_in_mid_answer_keeps_question_and_most_of_the_answer(command: Command, store: Path, model: Path) -> None:
    words = [f"word{number}" for number in range(2000)]
    with subprocess.Popen(
        [sys.executable, "-c", CHAT_PROGRAM, str(model), str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(" ".join(words) + "\n")
        process.stdin.flush()
        assert process.stdout.read(5) == "word0"
        time.sleep(1.2)
        process.send_signal(signal.SIGKILL)
        process.stdin.close()
        shown = "word0" + process.stdout.read()
    chat = kept(store)
    question, answer = chat.messages
    assert question.content == " ".join(words)
    assert answer.finish_reason == "incomplete" and answer.figures is None
    assert answer.content and shown.startswith(answer.content)
    assert len(answer.content.split()) >= 2
    engine = EchoEngine()
    code, _, err = command("chat", "--continue", said="and then\n", engine=engine)
    assert code == 0 and "The last answer is incomplete." in err
    assert asked(engine) == [[" ".join(words), answer.content, "and then"]]


def test_the_last_chat_needs_no_number(command: Command, store: Path) -> None:
    code, _, err = command("history", "show", "last")
    assert code == 2 and "No chats are kept yet." in err
    put_chat(store, "first")
    put_chat(store, "second")
    assert "second" in command("history", "show", "last")[1]
    assert (
        json.loads(command("history", "export", "LAST", "--json", "-o", "-")[1])["messages"][0]["content"] == "second"
    )
    code, out, _ = command("history", "rename", "last", "other")
    assert code == 0 and "Chat 2 is called other." in out
    assert command("history", "delete", "last", "--yes")[0] == 0
    assert command("history", "show", "2")[0] == 2
    code, _, err = command("history", "show", "newest")
    assert code == 2 and "or last" in err


@pytest.mark.parametrize("words", ["", "  "])
def test_a_search_for_nothing_is_wrong_usage(command: Command, store: Path, words: str) -> None:
    put_chat(store, "first")
    code, out, err = command("history", "search", words)
    assert code == 2 and out == "" and "no words" in err
