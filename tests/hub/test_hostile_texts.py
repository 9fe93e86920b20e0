"""Texts of repositories, files and headers are shown as they are, whatever they look like, and do nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hub.commanding import DRAFT, TARGET, CommandLine, own_folders
from tests.hub.server import TestHub
from tests.tiny_gguf import write_llama

ESC = "\x1b[31m\x1b]0;title\x07"
RTL = "\u202egnp.exe\u202c"
MARKUP = "[bold]no[/] [/] [link=file:///etc/passwd] :smiley:"
HOSTILE = f"{MARKUP} {ESC}\r\n\tnext {RTL} \x9b2J\x00"
SHOWN = MARKUP
"""What has to be seen of it, letter by letter."""

FORBIDDEN = ("\x1b", "\x07", "\x9b", "\x00", "\r", "\u202e", "\u202c")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = own_folders(tmp_path, monkeypatch)
    monkeypatch.setenv("COLUMNS", "200")
    return folder


@pytest.fixture
def hostile_hub(hub: TestHub, tmp_path: Path) -> TestHub:
    """A Hub of which all texts are hostile."""
    target = write_llama(tmp_path / "target.gguf", n_embd=128, n_layer=8, name=HOSTILE, template=HOSTILE)
    draft = write_llama(tmp_path / "draft.gguf", n_embd=64, n_layer=1, name=HOSTILE)
    foreign = write_llama(tmp_path / "foreign.gguf", n_embd=64, n_layer=1, n_vocab=700, name=HOSTILE)
    facts = {"total": 1_000_000, "architecture": HOSTILE}
    for name, path in ((TARGET, target), (DRAFT, draft), ("x/y-1B-GGUF", foreign)):
        hub.add_repo(
            name,
            # Names with control characters are left out; these are offered.
            {f"{ESC} Q8_0.gguf": path, "[bold] [q] Q8_0.gguf": path, "-rf ~ $(touch gone) Q4_K_M.gguf": path},
            tags=(HOSTILE, "base_model:x/[bold]y"),
            licence=HOSTILE,
            gguf=facts,
        )
    return hub


LINES = [
    ("search", "tiny3"),
    ("show", TARGET),
    ("pair", TARGET, DRAFT),
    ("pair", TARGET, "x/y-1B-GGUF"),
    ("pair", TARGET),
    ("pull", TARGET, "--yes"),
    ("models",),
    ("show", TARGET),
    ("remove", TARGET, "--yes"),
]


def test_texts_of_the_hub_do_nothing(hostile_hub: TestHub, command: CommandLine) -> None:
    seen = ""
    for line in LINES:
        if line[0] != "remove":
            done = command(*line, "--json")
            assert done.code in (0, 1), done.err
            json.loads(done.out)
            assert done.out.count("\n") == 1 and done.out.isascii()
            assert [mark for mark in FORBIDDEN if mark in done.text] == [], line
        done = command(*line)
        assert done.code in (0, 1) and "should not have happened" not in done.err, done.err
        assert [mark for mark in FORBIDDEN if mark in done.text] == [], line
        seen += done.text
    assert f"licence: {SHOWN}" in seen
    assert f"title             {SHOWN}" in seen


NAMES = [
    MARKUP.replace("/", "|"),
    f"a{ESC}b",
    f"{RTL}x",
    "two\nlines",
    "-rf ~",
    "$(touch gone)",
    "'quoted' \"twice\"",
    "é\udcff",
]


def test_names_of_local_files_do_nothing(command: CommandLine, data: Path, tmp_path: Path) -> None:
    for index, name in enumerate(NAMES):
        write_llama(data / f"model{index}.gguf", name=HOSTILE).rename(data / f"{name}.gguf")
    (data / f"broken {ESC}{MARKUP.replace('/', '|')}.gguf").write_bytes(b"nothing")
    names = [model["name"] for model in command("models", "--json").document["models"]]
    assert len(names) == len(NAMES) + 1
    for line in [("models",), *(("show", str(data / f"{name}.gguf")) for name in NAMES)]:
        done = command(*line)
        # llama.cpp cannot be told of a name that is no Unicode.
        assert done.code == 0 or (done.code == 2 and "no Unicode" in done.err), done.err
        assert [mark for mark in FORBIDDEN if mark in done.text] == [], line
    for name in names[::4]:
        done = command("pair", "--local", "--json", "--", name)
        assert [mark for mark in FORBIDDEN if mark in done.text] == [], name
    done = command("remove", "--yes", "--", *names)
    assert done.code == 0, done.err
    assert [mark for mark in FORBIDDEN if mark in done.text] == []
    assert list(data.rglob("*.gguf")) == []
    assert not list(tmp_path.rglob("gone"))


@pytest.mark.parametrize(
    "argument", [f"maker/{ESC}x", HOSTILE.replace("\x00", ""), "[/]", f"maker/x:{RTL}", "../../etc/passwd", "a/b/c:d"]
)
def test_what_is_typed_is_shown_without_effect(argument: str, hub: TestHub, command: CommandLine) -> None:
    for line in (("show", argument), ("pair", argument), ("pull", argument), ("remove", "--yes", argument)):
        done = command(*line)
        assert done.code in (1, 2)
        assert "error: " in done.err and "should not have happened" not in done.err
        assert [mark for mark in FORBIDDEN if mark in done.text] == [], line


def test_messages_of_a_server_are_not_passed_on(hub: TestHub, command: CommandLine) -> None:
    hub.fault(status=418, error_message="teapot", body=json.dumps({"error": HOSTILE}).encode())
    done = command("show", TARGET).fails(1)
    assert "bold" not in done.text and "teapot" not in done.text
