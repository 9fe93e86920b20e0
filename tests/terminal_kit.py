"""Programs on a terminal of their own: a bare pseudo-terminal for signals, tmux where the screen is looked at.

tmux is a real terminal that many people use, and tells what a program has left behind: whether it is still on the
alternate screen, has the mouse, or hides the cursor. An emulator in Python would be one more thing to trust.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

PATIENCE_S = 60.0
"""Until a test gives up; a machine under load needs some of it."""

_OWN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Makes the terminal the controlling one, so that closing it hangs up."""


def own_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return an environment in which everything that a program keeps lies in a folder, and nothing is the user's.

    Args:
        folder: of everything.
        more: further variables.
    """
    taken_out = ("LOCALSPEC_", "HF_", "XDG_", "LC_", "TMUX", "TEXTUAL", "PYTEST")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(taken_out)}
    for name in ("NO_COLOR", "COLUMNS", "LINES", "LANG", "COLORTERM"):
        kept.pop(name, None)
    places = {f"LOCALSPEC_{name}": str(folder / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "LOG")}
    here = {"HOME": str(folder), "HF_HOME": str(folder / "hf"), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    return kept | places | here | {"PYTHONPATH": str(Path(__file__).parents[1])} | more


def used_before(folder: Path) -> Path:
    """Make the folder of `own_environment` that of somebody who is no newcomer, and return it."""
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "app.json").write_text("{}")
    return folder


def have_ended(processes: Sequence[psutil.Process], patience_s: float = 10.0) -> bool:
    """Wait for processes to end, and say whether all of them have. One that nobody has buried yet counts."""

    def is_over(process: psutil.Process) -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    deadline_s = time.monotonic() + patience_s
    while not all(map(is_over, processes)):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def engine_processes(pid: int) -> list[psutil.Process]:
    """Return the engine processes below a process."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process for process in below if "localspec.engine.worker" in _command_line(process)]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def until(is_so: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for something; fail if it does not come."""
    deadline_s = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < deadline_s, f"{what}: it did not come"
        time.sleep(0.02)


class Terminal:
    """A program on a pseudo-terminal that is its controlling one. A thread reads what it writes, as a window does."""

    def __init__(self, process: subprocess.Popen[bytes], main: int, side: int) -> None:
        self.process = process
        self._main = main
        self._side = side
        self.modes_before = self.modes()
        self.said = b""
        """All that it wrote."""
        self._is_open = True
        self._reading = threading.Thread(target=self._read, name="terminal", daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while self._is_open:
            if not select.select([self._main], [], [], 0.05)[0]:
                continue
            try:
                self.said += os.read(self._main, 65536)
            except OSError:
                # How Linux tells that nobody has it open any more.
                return

    @property
    def pid(self) -> int:
        """Of the program."""
        return self.process.pid

    def modes(self) -> list[Any]:
        """Return what `stty` tells: echo, line buffering and so on."""
        return termios.tcgetattr(self._side)

    def keys(self, text: str) -> None:
        """Type."""
        os.write(self._main, text.encode())

    def paste(self, text: str) -> None:
        """Put in a text, as terminals pass on what is pasted."""
        self.keys(f"\x1b[200~{text}\x1b[201~")

    def until_said(self, words: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until it has written the words, since the start."""
        until(lambda: words.encode() in self.said or not self.is_alive, words, patience_s)
        assert words.encode() in self.said, f"it ended, having said {self.said[-2000:]!r}"

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Wait until it has ended and all that it wrote is read, and return its exit status."""
        until(lambda: not self.is_alive, "the end of the program", patience_s)
        said = -1
        while self._is_open and said != len(self.said):
            said = len(self.said)
            time.sleep(0.1)
        return self.process.returncode

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self) -> None:
        """Close the terminal, as a window is closed."""
        if self._is_open:
            self._is_open = False
            self._reading.join()
            os.close(self._side)
            os.close(self._main)

    @property
    def is_restored(self) -> bool:
        """Whether the alternate screen was entered and left, the cursor shown again, and the modes are as before."""
        ends = ((b"\x1b[?1049h", b"\x1b[?1049l"), (b"\x1b[?25l", b"\x1b[?25h"), (b"\x1b[?1000h", b"\x1b[?1000l"))
        are_ended = all(-1 < self.said.rfind(begin) < self.said.rfind(end) for begin, end in ends)
        return are_ended and self.modes() == self.modes_before


@contextmanager
def on_terminal(
    command: Sequence[str],
    environment: Mapping[str, str],
    size: tuple[int, int] = (100, 30),
    folder: Path | None = None,
    is_controlling: bool = True,
) -> Iterator[Terminal]:
    """Run a program on a terminal of its own; it is killed at the end, with all that it started.

    Args:
        command: it and its arguments.
        environment: all of its variables.
        size: columns and rows.
        folder: where it runs.
        is_controlling: whether the terminal sends signals, as when it is closed.
    """
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *command] if is_controlling else command,
        stdin=side,
        stdout=side,
        stderr=side,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
    )
    terminal = Terminal(process, main, side)
    try:
        yield terminal
    finally:
        for engine in engine_processes(process.pid):
            engine.kill()
        process.kill()
        process.wait()
        terminal.hang_up()


class Tmux:
    """A shell in tmux. Its server is its own, and ends with it."""

    def __init__(self, socket: Path, environment: Mapping[str, str], size: tuple[int, int], folder: Path) -> None:
        self._socket = socket
        self._environment = dict(environment) | {"PS1": "$ ", "ENV": ""}
        columns, rows = map(str, size)
        self._do("-f", "/dev/null", "new-session", "-d", "-x", columns, "-y", rows, "-c", str(folder), "sh")

    def _do(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments], env=self._environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def screen(self) -> str:
        """Return what is on the screen, in lines."""
        return self._do("capture-pane", "-p")

    def styled_screen(self) -> str:
        """Return what is on the screen, with its colours as escape codes."""
        return self._do("capture-pane", "-p", "-e")

    def keys(self, *names: str) -> None:
        """Press keys, by tmux's names of them."""
        self._do("send-keys", *names)

    def text(self, text: str) -> None:
        """Type a text."""
        self._do("send-keys", "-l", text)

    def command(self, line: str) -> None:
        """Type a line, and Enter."""
        self.text(line)
        self.keys("Enter")

    def until_shown(self, words: str, patience_s: float = PATIENCE_S) -> str:
        """Wait until the words are on the screen, and return the screen."""
        deadline_s = time.monotonic() + patience_s
        while words not in (shown := self.screen()):
            assert time.monotonic() < deadline_s, f"{words!r} is not on the screen:\n{shown}"
            time.sleep(0.05)
        return shown

    def until_gone(self, words: str, patience_s: float = PATIENCE_S) -> str:
        """Wait until the words are no longer on the screen, and return the screen."""
        deadline_s = time.monotonic() + patience_s
        while words in (shown := self.screen()):
            assert time.monotonic() < deadline_s, f"{words!r} is still on the screen:\n{shown}"
            time.sleep(0.05)
        return shown

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size."""
        self._do("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def shell_pid(self) -> int:
        """Of the shell."""
        return int(self._do("display-message", "-p", "#{pane_pid}"))

    @property
    def leftovers(self) -> str:
        """What a program has changed and not put back, in words; empty if nothing."""
        facts = "alternate-screen:#{alternate_on} hidden-cursor:#{?cursor_flag,0,1} mouse:#{mouse_any_flag}"
        said = self._do("display-message", "-p", f"{facts} no-wrap:#{{?wrap_flag,0,1}}")
        return " ".join(word for word in said.strip().split(" ") if word.endswith(":1"))

    def close(self) -> None:
        """End the server, and all that runs in it."""
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], capture_output=True)


@contextmanager
def in_tmux(
    environment: Mapping[str, str], folder: Path, size: tuple[int, int] = (100, 30), socket_folder: Path = Path("/tmp")
) -> Iterator[Tmux]:
    """Give a shell in tmux, in a folder.

    Args:
        environment: of the shell.
        folder: where it is, and where what it started is killed at the end.
        size: columns and rows.
        socket_folder: a short path, since sockets bear no long ones.
    """
    socket = socket_folder / f"localspec-{os.getpid()}-{abs(hash(folder)) % 10**8}"
    tmux = Tmux(socket, environment, size, folder)
    try:
        until(lambda: tmux.screen().strip(), "the shell's prompt")
        yield tmux
    finally:
        for left in psutil.Process(tmux.shell_pid).children(recursive=True):
            left.kill()
        tmux.close()
        socket.unlink(missing_ok=True)


HAS_TMUX = shutil.which("tmux") is not None


def main() -> int:
    """Run `WORDS COMMAND ...` on a terminal until it has said the words, press ctrl+q, and exit as it does."""
    words, *command = sys.argv[1:]
    with on_terminal(command, os.environ) as terminal:
        terminal.until_said(words)
        # What begins only once the screen is there is to be seen as well.
        time.sleep(1.0)
        terminal.keys("\x11")
        code = terminal.wait()
    sys.stdout.buffer.write(terminal.said)
    return code


if __name__ == "__main__":
    sys.exit(main())
