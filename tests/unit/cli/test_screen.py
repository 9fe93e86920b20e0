from __future__ import annotations

import io
import os
import re
import sys

import pytest
from rich.console import Console

from localspec.cli.screen import hidden_keys, notices_console, print_table, progress, results_console, say, table


def test_without_a_terminal_a_line_is_80_wide_or_as_columns_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert results_console().width == 80
    monkeypatch.setenv("COLUMNS", "61")
    assert results_console().width == 61
    monkeypatch.setenv("COLUMNS", "many")
    assert notices_console().width == 80


def test_no_color_leaves_cursor_movement_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = io.StringIO()
    console = notices_console()
    console.file = shown
    assert console.is_terminal
    say(console, "quiet", style="dim")
    with progress(console) as report:
        report("half", 0.5, "")
    codes = re.findall(r"\x1b\[[0-9;?]*[A-Za-z]", shown.getvalue())
    assert codes and not any(code.endswith("m") for code in codes)
    assert "half" in shown.getvalue() and "50 %" in shown.getvalue()
    assert "starting llama.cpp" in shown.getvalue()


def test_sentences_break_at_words_on_a_terminal_only() -> None:
    for is_terminal, expected in ((True, "  one two\n  three\n"), (False, "  one two three\n")):
        shown = io.StringIO()
        say(Console(file=shown, force_terminal=is_terminal, color_system=None, width=10), "one two three", indent=2)
        assert shown.getvalue() == expected


def test_tables_have_no_trailing_spaces_and_keep_brackets() -> None:
    grid = table("", "[b]long heading[/b]")
    grid.add_row("row", "1")
    grid.add_row("[i]", "")
    shown = io.StringIO()
    print_table(Console(file=shown, markup=False, width=40), grid)
    lines = shown.getvalue().splitlines()
    assert lines == [line.rstrip() for line in lines]
    assert lines[0].endswith("[b]long heading[/b]")
    assert lines[-1] == "[i]"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no terminals of this kind on Windows")
def test_keys_are_hidden_for_a_while_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import pty
    import termios

    keyboard, terminal = pty.openpty()
    with open(terminal, encoding="utf-8") as stdin, open(keyboard, "wb", buffering=0) as keys:
        monkeypatch.setattr(sys, "stdin", stdin)

        def is_echoing() -> bool:
            return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)

        assert is_echoing()
        with pytest.raises(RuntimeError), hidden_keys():
            assert not is_echoing()
            keys.write(b"typed\n")
            raise RuntimeError
        assert is_echoing()
        assert os.read(terminal, 100) == b"typed\n"


def test_without_a_terminal_nothing_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("text"))
    with hidden_keys():
        assert sys.stdin.read() == "text"
