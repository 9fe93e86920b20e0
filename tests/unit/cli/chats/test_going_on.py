"""Kept chats that are gone on with, and what may have changed since."""

from __future__ import annotations

from pathlib import Path

from localspec.engine.events import EngineFailed
from localspec.engine.requests import Generate, LoadModels
from tests.scripted_engine import EchoEngine
from tests.unit.cli.chats.kept_chats import Command, asked, kept, put, put_chat


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
    assert "The target is another file than then: 13 bytes instead of 104" in command("chat", "--continue", said="")[2]
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
