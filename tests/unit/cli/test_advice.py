"""Commands that a person is advised to run next."""

from __future__ import annotations

import shlex

import pytest

from localspec.cli.advice import command_line


@pytest.mark.parametrize("name", ["tiny.gguf", "two  blanks.gguf", "it's $(x); [b].gguf", "模型 é.gguf", ""])
def test_a_command_can_be_copied(name: str) -> None:
    assert shlex.split(command_line("localspec", "chat", name)) == ["localspec", "chat", name]


@pytest.mark.parametrize("hidden", ["\x1b[31m", "\u200b", "\u202e", "\n", "\udcff", "\u2028"])
def test_what_cannot_be_shown_gives_no_wrong_command(hidden: str) -> None:
    advice = command_line("localspec", "chat", f"tiny{hidden}.gguf")
    assert "cannot be shown" in advice and "localspec" not in advice
    assert "\x1b" not in advice and "\u202e" not in advice and "\n" not in advice
