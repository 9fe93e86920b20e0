"""Reading documents that may be older than this program, or cut short: what is absent or odd is None or empty."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from localspec.session.records import Record

MAX_NAME: Final = 60
"""Characters of a name that a picture shows."""

_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def value(record: object, *keys: str) -> Any:
    """Return what lies under nested keys; None if there is nothing."""
    for key in keys:
        if not isinstance(record, Mapping):
            return None
        record = record.get(key)
    return record


def part(record: object, *keys: str) -> Record:
    """Return an object; an empty one if there is none."""
    found = value(record, *keys)
    return dict(found) if isinstance(found, Mapping) else {}


def items(record: object, *keys: str) -> list[Any]:
    """Return a list; an empty one if there is none."""
    found = value(record, *keys)
    return list(found) if isinstance(found, list | tuple) else []


def objects(record: object, *keys: str) -> list[Record]:
    """Return the objects of a list."""
    return [dict(item) for item in items(record, *keys) if isinstance(item, Mapping)]


def number(record: object, *keys: str) -> float | None:
    """Return a finite number; None for anything else."""
    return finite(value(record, *keys))


def finite(found: object) -> float | None:
    """Return a value if it is a finite number; None for anything else, true and false among it."""
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        return float(found) if math.isfinite(found) else None
    except OverflowError:
        return None


def numbers(record: object, *keys: str) -> list[float] | None:
    """Return a list of finite numbers; None if there is none, or if anything else is in it."""
    if not isinstance(value(record, *keys), list | tuple):
        return None
    found = [finite(item) for item in items(record, *keys)]
    kept = [item for item in found if item is not None]
    return kept if len(kept) == len(found) else None


def text(record: object, *keys: str) -> str:
    """Return a text in one line, without control characters and marks that reorder; empty if there is none."""
    found = value(record, *keys)
    return clean(found) if isinstance(found, str) else ""


def name(record: object, *keys: str) -> str:
    """Return a text that is short enough for a picture."""
    found = text(record, *keys)
    return found if len(found) <= MAX_NAME else f"{found[: MAX_NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


def clean(words: str) -> str:
    """Return a text in one line; characters that XML forbids, controls and marks that reorder are dropped."""
    kept = (" " if character.isspace() else character for character in words if not _is_unsafe(character))
    return " ".join("".join(kept).split())


def _is_unsafe(character: str) -> bool:
    if character in "\ufffe\uffff" or character in _REORDERING:
        return True
    return unicodedata.category(character) in ("Cc", "Cs") and not character.isspace()
