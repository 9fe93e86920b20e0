"""Can the app be drawn here? Said in words before the screen is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from localspec.errors import UsageError

_SAMPLE = "╭▁⠿…"
"""What the screens are made of."""


def check_terminal(screen: TextIO | None, environ: Mapping[str, str]) -> None:
    """Do nothing if the app can be drawn.

    Args:
        screen: what Textual draws on: standard error.
        environ: environment variables.

    Raises:
        UsageError: it cannot.
    """
    other = "or use a command: localspec -h."
    if screen is None or not screen.isatty():
        raise UsageError(
            "The terminal app draws on standard error, which is no terminal here.", f"Run it without 2>, {other}"
        )
    if (term := environ.get("TERM", "")) in ("dumb", "unknown"):
        raise UsageError(
            f"The terminal app needs a terminal that can place text, and TERM is {term}.",
            f"Set TERM to what the terminal is, such as xterm-256color, {other}",
        )
    try:
        _SAMPLE.encode(screen.encoding)
    except (UnicodeEncodeError, LookupError):
        raise UsageError(
            f"The terminal app needs a terminal with Unicode, and this one is set to {screen.encoding}.",
            f"Set LC_ALL to a UTF-8 locale, such as C.UTF-8, {other}",
        ) from None
