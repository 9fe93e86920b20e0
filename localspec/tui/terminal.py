"""The terminal that may go away: for good, or until the shell gives it back.

A window is closed, a connection breaks: the app then ends, and never hangs. Textual's own driver writes from a thread;
without a terminal that thread dies of the first failure, and the app waits for ever for room in its queue.

Ctrl+Z, or a signal, stops the app, and `fg` has it go on: the terminal is as before in between, and drawn whole
afterwards. Textual's own driver does this inside of the signal, where a lock may be held; takes the terminal twice from
a shell that has stopped the app unasked; and draws nothing of what the shell has wiped away.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import signal
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, cast

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp

LOOK_S = 1.0
"""Between two looks at whether the terminal is still there: the signal may be kept from us."""

HUNG_UP = 128 + signal.SIGHUP
"""Exit code of an app whose terminal went away."""


class LosingFile:
    """A text file that loses what cannot be written."""

    def __init__(self, file: IO[str]) -> None:
        """Write to that file."""
        self._file = file

    def write(self, text: str) -> int:
        """Write, or lose the text."""
        with suppress(OSError, ValueError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what waits, or lose it."""
        with suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        """Return the file's number."""
        return self._file.fileno()


class TerminalDriver(LinuxDriver):
    """Textual's driver, which ends the app when the terminal has gone, and waits for one that will come back."""

    def __init__(
        self,
        app: App[object],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Take what Textual gives to every driver."""
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        if self._file is not None:
            self._file = LosingFile(self._file)  # type: ignore[assignment]
        self._look: asyncio.TimerHandle | None = None
        self._is_drawing = False
        self._num_continued = self._num_heeded = 0

    def start_application_mode(self) -> None:
        """Take the terminal, as soon as the shell lets us, and watch it."""
        while self._is_ours():
            super().start_application_mode()  # type: ignore[no-untyped-call]
            if self._can_write:
                break
        else:
            self._loop.call_soon(self._end)
        self._num_heeded = self._num_continued
        self._is_drawing = True
        self._look_later()

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        self._is_drawing = False
        if self._look is not None:
            self._look.cancel()
            self._look = None
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Write, or lose the text while there is no terminal to write to."""
        if self._can_write:
            super().write(data)

    def stop_process(self, whom: int) -> None:
        """Give the terminal back and stop; when the shell has it go on, take the terminal again and draw everything.

        Args:
            whom: to stop, as in `os.kill`: this process, or 0 for all that the shell takes for one job.
        """
        was_drawing = self._is_drawing
        if was_drawing:
            self.suspend_application_mode()
        heard = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # Not SIGSTOP: where there is no shell that could have it go on, this one does nothing.
        os.kill(whom, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, heard)
        if was_drawing:
            self._come_back()

    def _sigtstp_application(self, *_: object) -> None:
        # Not in here: the queue of what is written may be locked.
        self._soon(self.stop_process, os.getpid())

    def _sigcont_application(self, *_: object) -> None:
        self._num_continued += 1
        self._soon(self._go_on)

    def _soon(self, do: Callable[..., None], *given: int) -> None:
        # Signals come after the app has ended, too.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(do, *given)

    def _go_on(self) -> None:
        """Take the terminal anew after a stop that was not asked for: it has been another program's meanwhile."""
        if self._is_drawing and self._num_heeded != self._num_continued and self._is_ours():
            self.suspend_application_mode()
            self._come_back()

    def _come_back(self) -> None:
        self._must_signal_resume = True
        self.resume_application_mode()
        # Textual draws what has changed, and the screen is empty now.
        self._app.call_later(self._app.refresh, layout=True)

    def _is_ours(self) -> bool:
        """Wait until this is what the shell has in the foreground, and say whether it will ever be."""
        while True:
            try:
                # Whoever is in the background is stopped by it, even though it changes nothing.
                termios.tcsetattr(self.fileno, termios.TCSANOW, termios.tcgetattr(self.fileno))
            except termios.error as error:
                if error.args[0] == errno.EINTR:
                    continue
                return bool(error.args[0] != errno.EIO)
            return True

    @property
    def _can_write(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def run_input_thread(self) -> None:
        """Read keys. A terminal that went away is no failure of the app."""
        try:
            super().run_input_thread()
        except OSError:
            self._loop.call_soon_threadsafe(self._end)

    def _look_later(self) -> None:
        self._look = self._loop.call_later(LOOK_S, self._look_now)

    def _look_now(self) -> None:
        if has_hung_up(self.fileno):
            self._look = None
            self._end()
        else:
            self._look_later()

    def _end(self) -> None:
        cast("LocalspecApp", self._app).end(HUNG_UP)


def has_hung_up(descriptor: int) -> bool:
    """Say whether nobody is at the other end of a terminal any more."""
    poll = select.poll()
    # Hanging up is told whatever is asked for.
    poll.register(descriptor, 0)
    with suppress(OSError):
        return any(event & (select.POLLHUP | select.POLLNVAL | select.POLLERR) for _, event in poll.poll(0))
    return True
