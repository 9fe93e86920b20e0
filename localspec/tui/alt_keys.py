"""Keys together with alt, which most terminals send as escape and the key: each is a key of its own, and no text."""

from __future__ import annotations

from typing import cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.events import Key


def hear_alt_keys() -> None:
    """Take alt and a digit as that key: Textual has it as what one terminal on macOS would write, such as ™."""
    known = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    for digit in "0123456789":
        known.pop(f"\x1b{digit}", None)


def without_text(event: Key) -> None:
    """Take the text from a key with alt: an input would write its letter before any binding is asked."""
    if "alt" in event.key.split("+")[:-1]:
        event.character = None
