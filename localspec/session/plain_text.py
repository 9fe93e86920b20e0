"""Text from models, files and users, made safe for a terminal."""

from __future__ import annotations

import unicodedata

_KEPT = frozenset("\n\t")

_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """Return the text without control characters, escape codes and marks that reorder what is displayed.

    Newlines and tabs stay. Works piece by piece on a stream: without its first byte an escape code is plain text.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_safe, text))


def one_line(text: str) -> str:
    """Return printable text with every run of white space as one space."""
    return " ".join(printable(text).split())


def _safe(character: str) -> str:
    if character in _KEPT:
        return character
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category == "Cc" or character in _REORDERING else character
