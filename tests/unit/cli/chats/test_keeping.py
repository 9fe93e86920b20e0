"""Chats are kept as they are had."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localspec.cli.main import run
from localspec.cli.services import Services
from localspec.engine.events import EngineFailed
from localspec.errors import StoreError
from localspec.store.database import Database
from tests.scripted_engine import EchoEngine
from tests.unit.cli.chats.kept_chats import Command, asked, kept


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
