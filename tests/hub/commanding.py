"""What the tests of commands share: a Hub with tiny models that are pairs or are not, and a command line to run."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localspec.cli.main import run
from tests.hub.server import TestHub
from tests.tiny_gguf import CHATML, write_llama

MIB = 1 << 20

TARGET = "maker/Tiny3-8B-GGUF"
DRAFT = "maker/Tiny3-1B-GGUF"
FOREIGN = "other/Strange-1B-GGUF"

TARGET_FILE, DRAFT_FILE, FOREIGN_FILE = "Tiny3-8B-F32.gguf", "Tiny3-1B-F32.gguf", "Strange-1B-F32.gguf"


@dataclass(frozen=True, slots=True)
class Files:
    """Models on disk, as a Hub offers them."""

    target: Path
    """Several MiB."""
    draft: Path
    foreign: Path
    """With other tokens."""


def write_files(folder: Path) -> Files:
    """Write a target, a draft that is much smaller, and a small model with other tokens."""
    return Files(
        write_llama(folder / TARGET_FILE, n_embd=256, n_layer=8, template=CHATML, name="Tiny3 8B"),
        write_llama(folder / DRAFT_FILE, n_embd=64, n_layer=1, template=CHATML, name="Tiny3 1B"),
        write_llama(folder / FOREIGN_FILE, n_embd=64, n_layer=1, n_vocab=800, name="Strange 1B"),
    )


def add_models(hub: TestHub, files: Files, **wishes: Any) -> None:
    """Give the Hub a repository for each of the models."""
    hub.add_repo(TARGET, {TARGET_FILE: files.target}, base_models=("maker/Tiny3-8B",), downloads=4711, **wishes)
    hub.add_repo(DRAFT, {DRAFT_FILE: files.draft}, base_models=("maker/Tiny3-1B",), downloads=99, **wishes)
    hub.add_repo(FOREIGN, {FOREIGN_FILE: files.foreign}, **wishes)


def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a test folders of its own, and 80 columns; return the folder of models."""
    for name in ("DATA", "CACHE", "CONFIG", "LOG"):
        monkeypatch.setenv(f"LOCALSPEC_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "data" / "models"
    folder.mkdir(parents=True)
    return folder


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def document(self) -> Any:
        """The JSON on stdout, which is one line."""
        assert self.code in (0, 1), self.err
        assert self.out.count("\n") == 1 and self.out.endswith("\n")
        return json.loads(self.out)

    def fails(self, code: int = 2) -> Outcome:
        """Check that it failed as commands fail: a message and a hint, nothing else in the way of an error."""
        assert self.code == code, self.text
        lines = [line.partition(": ")[0] for line in self.err.splitlines() if line.startswith(("error: ", "hint: "))]
        assert lines == ["error", "hint"], self.err
        assert "Traceback" not in self.err and "should not have happened" not in self.err
        return self


class Keyboard(io.StringIO):
    """A terminal at which somebody has typed all answers already."""

    def isatty(self) -> bool:
        return True


class CommandLine:
    """Runs commands in this process, with the real engine and the real client."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, typed: str | None = None, stdin: str = "") -> Outcome:
        """Run a command.

        Args:
            arguments: the command line.
            typed: what somebody types at a terminal; None where stdin is none.
            stdin: what a pipe holds otherwise.
        """
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin) if typed is None else Keyboard(typed))
        self._capsys.readouterr()
        code = run(arguments)
        captured = self._capsys.readouterr()
        return Outcome(code, captured.out, captured.err)


def is_spared(hub: TestHub) -> bool:
    """Whether the Hub has sent no more of the target's file than a header takes."""
    return hub.bytes_sent(TARGET_FILE) <= MIB
