"""The app on a real terminal, from the start to the shell's next prompt, by keys alone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from localspec.errors import UsageError
from localspec.tui.terminal_check import check_terminal

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are of Unix", allow_module_level=True)

from tests.terminal_kit import (
    HAS_TMUX,
    Terminal,
    Tmux,
    engine_processes,
    have_ended,
    in_tmux,
    on_terminal,
    own_environment,
    until,
    used_before,
)

NEEDS_TMUX = pytest.mark.skipif(not HAS_TMUX, reason="there is no tmux")

LOCALSPEC = (sys.executable, "-m", "localspec")
WELCOME = "Welcome to localspec"
NO_MODELS = "There are no models here yet"
RECORDING = Path(__file__).parent.parent / "recordings" / "smollm2_session.jsonl"


@dataclass(frozen=True, slots=True)
class Session:
    """The app in a shell in tmux."""

    tmux: Tmux
    folder: Path

    @property
    def app(self) -> psutil.Process:
        """The app's process."""
        return next(
            process
            for process in psutil.Process(self.tmux.shell_pid).children(recursive=True)
            if "localspec" in process.cmdline()
        )

    def quit(self) -> int:
        """Leave the app, check that nothing of it is left, and return its exit code."""
        below = psutil.Process(self.tmux.shell_pid).children(recursive=True)
        self.tmux.keys("C-q")
        code = self.code()
        assert have_ended(below, patience_s=1.0)
        return code

    def code(self) -> int:
        """Wait for the app's end, check that the terminal is as before, and return the exit code."""
        until((self.folder / "after").exists, "the end of the app")
        assert (self.folder / "after").read_text() == (self.folder / "before").read_text()
        assert self.tmux.leftovers == ""
        # The shell reads lines and the terminal shows what is typed.
        self.tmux.command("echo typed $((40 + 2))")
        assert "echo typed $((40 + 2))" in self.tmux.until_shown("typed 42")
        return int((self.folder / "code").read_text())


@contextmanager
def started(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    size: tuple[int, int] = (100, 30),
    is_first: bool = False,
) -> Iterator[Session]:
    """Start the app in tmux. What the shell keeps of it lies in the folder."""
    home = folder / "home"
    home.mkdir()
    if not is_first:
        used_before(home)
    variables = own_environment(home) | dict(environment or {})
    with in_tmux(variables, folder, size) as tmux:
        words = shlex.join([*LOCALSPEC, *arguments])
        tmux.command(f"stty -g >before; {words}; echo $? >code; stty -g >after.new; mv after.new after")
        yield Session(tmux, folder)


@NEEDS_TMUX
def test_start_look_quit(tmp_path: Path) -> None:
    with started(tmp_path, is_first=True) as session:
        shown = session.tmux.until_shown(WELCOME)
        assert "F4 Chat" in shown
        assert "alternate-screen" in session.tmux.leftovers
        assert session.quit() == 0
        assert WELCOME not in session.tmux.screen()


@NEEDS_TMUX
@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(300)
def test_from_nothing_to_a_chat_and_a_comparison(tmp_path: Path) -> None:
    # One thread: with more, llama.cpp waits in loops where other tests have the cores.
    few = {"LOCALSPEC_CONTEXT__N_THREADS": "1", "LOCALSPEC_BENCH__MAX_TOKENS": "16"}
    with started(tmp_path, environment=few, is_first=True) as session:
        tmux = session.tmux
        # The first run, and the offer on its screen.
        tmux.until_shown(WELCOME)
        tmux.until_shown("Choose a model that is here")
        tmux.keys("d")
        # A chat, stopped in the midst of an answer.
        tmux.until_shown("smollm2-135m-f16 chosen")
        tmux.until_shown("Ask something")
        tmux.text("Tell me a long story about the sea.")
        tmux.until_shown("about the sea.")
        tmux.keys("Enter")
        shown = tmux.until_shown("tokens/s")
        assert "speculation ON" in shown
        engines = engine_processes(session.app.pid)
        assert engines
        tmux.keys("Escape")
        shown = tmux.until_shown(", stopped")
        assert "Tell me a long story about the sea." in shown
        # A pair or two of a comparison.
        tmux.keys("F5")
        tmux.until_shown("races A and B")
        tmux.keys("r")
        tmux.until_shown("pair 2 of")
        tmux.keys("Escape")
        shown = tmux.until_shown("run 1 kept")
        assert "Ended early" in shown or "too little to judge" in shown.lower()
        tmux.keys("F6")
        assert "No runs" not in tmux.until_shown("smollm2-135m")
        assert session.quit() == 0
        assert have_ended(engines, patience_s=0.1)
    # What lasts, lasts: the next start is where this one was left.
    (tmp_path / "again").mkdir()
    with in_tmux(own_environment(tmp_path / "home"), tmp_path / "again") as tmux:
        tmux.command(shlex.join(LOCALSPEC))
        assert "smollm2-135m-f16 chosen" in tmux.until_shown("smollm2-135m")
        tmux.keys("F4")
        tmux.until_shown("Ask something")
        tmux.keys("C-o")
        tmux.until_shown("Tell me a long story")
        tmux.keys("Enter")
        tmux.until_shown(", stopped")


@NEEDS_TMUX
@pytest.mark.slow
def test_a_replay_chats_without_any_model_in_any_size(tmp_path: Path) -> None:
    with started(tmp_path, "--replay", str(RECORDING)) as session:
        tmux = session.tmux
        # The question is already there.
        tmux.until_shown("Write three short sentences about the sea.")
        tmux.keys("Enter")
        tmux.until_shown("tokens/s")
        for size in ((60, 20), (160, 50), (30, 8), (80, 24)):
            tmux.resize(*size)
        shown = tmux.until_shown("acceptance")
        assert len(shown.rstrip("\n").splitlines()) <= 24
        assert not engine_processes(session.app.pid)
        assert session.quit() == 0


# Terminals of all kinds.


@NEEDS_TMUX
@pytest.mark.slow
@pytest.mark.parametrize("term", ["xterm", "screen", "vt220", ""])
def test_any_terminal_will_do(tmp_path: Path, term: str) -> None:
    with started(tmp_path, environment={"TERM": term} if term else {"TERM": "unset"}) as session:
        session.tmux.until_shown(NO_MODELS)
        assert session.quit() == 0


@NEEDS_TMUX
@pytest.mark.slow
def test_without_colours_everything_is_grey(tmp_path: Path) -> None:
    with started(tmp_path, environment={"NO_COLOR": "1", "COLORTERM": "truecolor"}) as session:
        session.tmux.until_shown(NO_MODELS)
        for name in ("F3", "F4", "F5", "F6", "F1"):
            session.tmux.keys(name)
        assert colours_of(session.tmux.styled_screen()) <= {"grey"}
        session.tmux.keys("Escape")
        assert session.quit() == 0


def test_colours_would_be_seen() -> None:
    assert colours_of("\x1b[38;2;10;10;10m\x1b[48;5;240m\x1b[1m\x1b[37mx") == {"grey"}
    assert colours_of("\x1b[38;2;10;20;10mx") == {"2;10;20;10"}
    assert colours_of("\x1b[48;5;21mx") == {"5;21"}
    assert colours_of("\x1b[31mx") == {"31"}


def colours_of(text: str) -> set[str]:
    """Return the colours that a text with escape codes has; all shades of grey are one."""
    found: set[str] = set()
    for part in text.split("\x1b[")[1:]:
        codes = part.partition("m")[0].split(";")
        while codes:
            code = codes.pop(0)
            if code in ("38", "48"):
                number = 4 if codes[0] == "2" else 2
                shade, codes = codes[:number], codes[number:]
                is_grey = len(set(shade[1:])) == 1 if number == 4 else int(shade[1]) in (0, 7, 8, 15, *range(232, 256))
                found.add("grey" if is_grey else ";".join(shade))
            elif code.isdigit() and (30 <= int(code) <= 37 or 40 <= int(code) <= 47 or 90 <= int(code) <= 107):
                found.add("grey" if int(code) % 10 in (0, 7) else code)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{"LC_ALL": "C", "LANG": "C"}, {"LC_ALL": "POSIX"}, {"LANG": ""}])
def test_a_plain_locale_still_draws_boxes(tmp_path: Path, variables: dict[str, str]) -> None:
    with on_terminal(LOCALSPEC, own_environment(used_before(tmp_path), **variables)) as terminal:
        terminal.until_said(NO_MODELS)
        assert "╭".encode() in terminal.said
        assert leave(terminal) == 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1, 1), (10, 3), (500, 5), (20, 200)])
@pytest.mark.parametrize("variables", [{}, {"COLUMNS": "7", "LINES": "3"}], ids=["", "by variables"])
def test_any_size_will_do(tmp_path: Path, size: tuple[int, int], variables: dict[str, str]) -> None:
    with on_terminal(LOCALSPEC, own_environment(used_before(tmp_path), **variables), size) as terminal:
        until(lambda: b"\x1b[1;1H" in terminal.said, "something on the screen")
        for key in ("\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[17~", "\x1bOP", "\x1b[20~"):
            terminal.keys(key)
        terminal.resize(80, 24)
        terminal.resize(*size)
        assert leave(terminal) == 0


def leave(terminal: Terminal) -> int:
    """Press ctrl+q, and return the exit code of an app that has put everything back."""
    terminal.keys("\x11")
    code = terminal.wait()
    assert terminal.is_restored
    assert b"Traceback" not in terminal.said
    return code


# Places that are not there.


@pytest.mark.slow
def test_without_a_home_the_named_folders_do(tmp_path: Path) -> None:
    variables = own_environment(used_before(tmp_path))
    del variables["HOME"]
    with on_terminal(LOCALSPEC, variables) as terminal:
        terminal.until_said(NO_MODELS)
        assert leave(terminal) == 0


@pytest.mark.slow
def test_where_nothing_can_be_written_the_app_still_chats(tmp_path: Path) -> None:
    # Files where the folders should be: permissions would not stop an administrator.
    for name in ("data", "config", "cache", "log"):
        (tmp_path / name).write_text("in the way")
    model = tmp_path / "model.gguf"
    model.touch()
    command = (sys.executable, "-m", "tests.slow_app", str(model), str(tmp_path / "said"))
    with on_terminal(command, own_environment(tmp_path)) as terminal:
        terminal.until_said("loaded with your first")
        terminal.keys("one two three\r")
        terminal.until_said("not kept")
        terminal.until_said("3 tokens,")
        terminal.keys("\x1b[17~")
        terminal.until_said("Cannot make the folder")
        assert leave(terminal) == 0


@pytest.mark.slow
def test_the_folder_it_was_started_in_may_be_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {shlex.quote(str(gone))}; exec {shlex.join(LOCALSPEC)}"
    with on_terminal(("sh", "-c", script), own_environment(used_before(tmp_path)), folder=gone) as terminal:
        terminal.until_said(NO_MODELS)
        assert leave(terminal) == 0


# What is refused, in a sentence, before the screen is taken.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "arguments", "words"),
    [
        ({"TERM": "dumb"}, "", "TERM is dumb"),
        ({"PYTHONIOENCODING": "latin-1"}, "", "terminal with Unicode"),
        ({"LOCALSPEC_DRAFT__N_MAX": "many"}, "", "n_max"),
        ({}, "2>err.txt", "standard error"),
        ({}, "--replay nowhere.jsonl", "nowhere.jsonl cannot be read"),
        ({}, "--replay .", "cannot be read"),
        ({}, "--demo --replay nowhere.jsonl", "nowhere.jsonl"),
    ],
)
def test_what_cannot_work_is_said(tmp_path: Path, variables: dict[str, str], arguments: str, words: str) -> None:
    said = refusal(tmp_path, arguments, variables)
    assert words in said
    assert "hint:" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[draft\n", '[draft]\nn_max = "many"\n', "[nonsense]\nx = 1\n", "\0", "[draft]\n" * 2]
)
def test_bad_settings_are_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.toml").write_text(text)
    assert "settings.toml" in refusal(tmp_path, "", {})


def refusal(folder: Path, arguments: str, variables: Mapping[str, str]) -> str:
    """Run the app where it cannot work, and return what it says, on one line."""
    script = f"{shlex.join(LOCALSPEC)} {arguments}; code=$?; cat err.txt 2>/dev/null; exit $code"
    with on_terminal(("sh", "-c", script), own_environment(folder, **variables), folder=folder) as terminal:
        assert terminal.wait() in (1, 2)
        assert b"Traceback" not in terminal.said
        assert b"\x1b[?1049h" not in terminal.said
        assert terminal.modes() == terminal.modes_before
    return " ".join(terminal.said.decode().split())


def test_pipes_get_the_help(tmp_path: Path) -> None:
    done = subprocess.run(LOCALSPEC, env=own_environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0
    assert b"Usage: localspec" in done.stdout
    assert done.stderr == b""


def test_a_closed_standard_error_is_no_terminal() -> None:
    with pytest.raises(UsageError, match="standard error"):
        check_terminal(None, os.environ)
