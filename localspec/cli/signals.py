"""Who hears Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | signal.Handlers | int | None
"""As the signal module takes and returns them; None where there is none of Python's."""


def handle_interrupts(handler: Handler) -> None:
    """Put in a handler of Ctrl-C. Only the main thread can; elsewhere nothing changes."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def ignore_interrupts() -> None:
    """Let Ctrl-C do nothing from here on."""
    handle_interrupts(signal.SIG_IGN)
