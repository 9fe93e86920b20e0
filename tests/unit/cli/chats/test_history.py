"""The commands over kept chats: list, search, show, export, rename, delete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localspec.cli.chat_markdown import chat_markdown
from localspec.store.chats import Chats
from localspec.store.database import Database
from tests.unit.cli.chats.kept_chats import HOSTILE, Command, kept, put, put_chat


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
