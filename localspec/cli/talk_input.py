"""What a person types in a chat, line by line."""

from __future__ import annotations

import contextlib
import sys

from localspec.cli.interruption import Interruptions
from localspec.cli.screen import notices_console, say


def read_line(interruptions: Interruptions) -> str | None:
    """Return the next line of the input, or None at its end."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        with interruptions.allowed():
            return sys.stdin.readline() or None
    # Lets input() edit its line, and show again what was typed while keys were hidden.
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401
    while True:
        try:
            with interruptions.allowed():
                return input("> ")
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            say(notices_console(), "Ctrl-D or /quit leaves.", style="dim")
