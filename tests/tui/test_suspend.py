"""The app stops for the shell and comes back: nothing is lost, and the screen is whole each time."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from localspec.store.chats import Chats
from localspec.store.database import Database

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are of Unix", allow_module_level=True)

from tests.terminal_kit import (
    HAS_TMUX,
    Tmux,
    have_ended,
    in_tmux,
    on_terminal,
    own_environment,
    until,
    used_before,
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HAS_TMUX, reason="there is no tmux")]

LOCALSPEC = (sys.executable, "-m", "localspec")
NO_MODELS = "There are no models here yet"
STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell with job control in tmux, and the app as its job."""

    tmux: Tmux
    folder: Path

    def app(self) -> psutil.Process:
        """Return the app's process, as soon as there is one."""
        found: list[psutil.Process] = []

        def is_there() -> bool:
            below = psutil.Process(self.tmux.shell_pid).children(recursive=True)
            found[:] = [process for process in below if any(name.endswith("python") for name in process.cmdline()[:1])]
            return bool(found)

        until(is_there, "the app")
        return found[0]

    def modes(self, name: str) -> str:
        """Return what `stty` says in the shell; it is typed there, so that the shell must be listening."""
        path = self.folder / name
        self.tmux.command(f"stty -g >{shlex.quote(str(path))}.new; mv {shlex.quote(str(path))}.new {path}")
        until(path.exists, "the shell's answer")
        return path.read_text()

    def come_back(self, words: str) -> str:
        """Have the app go on, and return the screen once the words are on it."""
        self.tmux.text("fg")
        # Not Enter: what a stopped program has done to the terminal, this shell leaves as it is.
        self.tmux.keys("C-j")
        return self.tmux.until_shown(words)

    def leave(self) -> None:
        """Leave the app, and check that the shell has its terminal again."""
        app = self.app()
        self.tmux.keys("C-q")
        assert have_ended([app])
        until(lambda: self.tmux.leftovers == "", "the end of the app's screen")


@contextmanager
def shell_with(folder: Path, command: str, size: tuple[int, int] = (100, 30)) -> Iterator[Shell]:
    """Give a shell that was told the command."""
    home = used_before(folder / "home")
    with in_tmux(own_environment(home), folder, size) as tmux:
        shell = Shell(tmux, folder)
        assert shell.modes("first")
        tmux.command(f"clear; {command}")
        yield shell


def test_the_screen_is_whole_after_ctrl_z_and_fg(tmp_path: Path) -> None:
    with shell_with(tmp_path, shlex.join(LOCALSPEC)) as shell:
        tmux = shell.tmux
        before = tmux.until_shown(NO_MODELS)
        taken = tmux.leftovers
        for turn in ("once", "twice"):
            tmux.keys("C-z")
            tmux.until_shown(STOPPED)
            assert tmux.leftovers == ""
            # The shell's modes are its own: they would have been mixed up if the app had taken the terminal twice.
            assert shell.modes(turn) == (tmp_path / "first").read_text()
            shell.come_back(NO_MODELS)
            until(lambda: tmux.screen() == before, "the whole screen")
            assert tmux.leftovers == taken
        # Keys are read again, and by one reader only.
        tmux.keys("F5")
        tmux.until_shown("No target model is chosen")
        shell.leave()
        assert shell.modes("last") == (tmp_path / "first").read_text()


def test_another_size_when_it_comes_back(tmp_path: Path) -> None:
    with shell_with(tmp_path, shlex.join(LOCALSPEC)) as shell:
        tmux = shell.tmux
        tmux.until_shown(NO_MODELS)
        tmux.keys("C-z")
        tmux.until_shown(STOPPED)
        tmux.resize(64, 22)
        shell.come_back("Palette")
        until(lambda: tmux.screen().startswith("F2 Models"), "the small screen")
        assert len(tmux.screen().rstrip("\n").splitlines()) == 22
        shell.leave()


def test_a_stop_that_nobody_asked_for_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with shell_with(tmp_path, shlex.join(LOCALSPEC)) as shell:
        tmux = shell.tmux
        before = tmux.until_shown(NO_MODELS)
        shell.app().send_signal(signal.SIGSTOP)
        tmux.until_shown(STOPPED)
        shell.come_back(NO_MODELS)
        until(lambda: tmux.screen() == before, "the whole screen")
        # Continued without having been stopped: nothing is to be taken twice.
        shell.app().send_signal(signal.SIGCONT)
        until(lambda: tmux.screen() == before, "the whole screen")
        shell.leave()
        assert shell.modes("last") == (tmp_path / "first").read_text()


def test_a_start_in_the_background_waits_for_the_terminal(tmp_path: Path) -> None:
    with shell_with(tmp_path, f"{shlex.join(LOCALSPEC)} &") as shell:
        app = shell.app()
        until(lambda: app.status() == psutil.STATUS_STOPPED, "the stop in the background")
        assert shell.modes("meanwhile") == (tmp_path / "first").read_text()
        assert shell.tmux.leftovers == ""
        assert "F4 Chat" in shell.come_back(NO_MODELS)
        shell.leave()
        assert shell.modes("last") == (tmp_path / "first").read_text()


def test_an_answer_goes_on_after_a_stop(tmp_path: Path) -> None:
    model, said = tmp_path / "model.gguf", tmp_path / "said"
    model.touch()
    words = [f"w{number}" for number in range(60)]
    command = shlex.join([sys.executable, "-m", "tests.slow_app", str(model), str(said)])
    with shell_with(tmp_path, command) as shell:
        tmux = shell.tmux
        tmux.until_shown("loaded with your first")
        tmux.text(" ".join(words))
        tmux.until_shown("w59")
        tmux.keys("Enter")
        until(lambda: said.exists() and said.read_text().count("\n") > 5, "the first words")
        # The prompt takes Ctrl+Z for undoing; anybody may send the signal.
        shell.app().send_signal(signal.SIGTSTP)
        tmux.until_shown(STOPPED)
        num_said = said.read_text().count("\n")
        assert num_said < 50
        time.sleep(0.3)
        assert said.read_text().count("\n") == num_said
        shown = shell.come_back("60 tokens,")
        assert "w58 w59" in shown
        shell.leave()
    with Database(tmp_path / "home" / "data" / "localspec.sqlite3") as database:
        (summary,) = Chats(database).summaries(10)
        _, answer = Chats(database).get(summary.id).messages
    assert answer.content.split() == words


def test_it_ends_with_the_shell_that_could_have_continued_it(tmp_path: Path) -> None:
    # A shell in a shell, since tmux ends with the outer one.
    with shell_with(tmp_path, "sh") as shell:
        shell.tmux.command(shlex.join(LOCALSPEC))
        shell.tmux.until_shown(NO_MODELS)
        app = shell.app()
        shell.tmux.keys("C-z")
        shell.tmux.until_shown(STOPPED)
        os.kill(app.ppid(), signal.SIGKILL)
        assert have_ended([app])


def test_without_a_shell_it_does_not_stop(tmp_path: Path) -> None:
    with on_terminal(LOCALSPEC, own_environment(used_before(tmp_path / "home"))) as terminal:
        terminal.until_said(NO_MODELS)
        num_said = terminal.said.count(NO_MODELS.encode())
        terminal.keys("\x1a")
        until(lambda: terminal.said.count(NO_MODELS.encode()) > num_said, "the screen drawn anew")
        assert psutil.Process(terminal.pid).status() != psutil.STATUS_STOPPED
        terminal.keys("\x11")
        assert terminal.wait() == 0
        assert terminal.is_restored
