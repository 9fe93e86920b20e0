"""The terminal that may go away: a window is closed, a connection breaks. The app then ends, and never hangs.

Textual's own driver writes from a thread. Without a terminal that thread dies of the first failure, and the app waits
for ever for room in its queue.
"""

from __future__ import annotations

import asyncio
import select
import signal
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
    """Textual's driver, which ends the app when the terminal has gone."""

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

    def start_application_mode(self) -> None:
        """Take the terminal, and watch it."""
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self._look_later()

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        super().stop_application_mode()

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
