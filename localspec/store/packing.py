"""JSON records as they lie in the database."""

from __future__ import annotations

import json
import zlib

from localspec.errors import StoreError
from localspec.store.values import Record


def pack(record: Record) -> bytes:
    """Return a record as compressed JSON.

    Raises:
        ValueError: it holds a number that JSON lacks.
    """
    # Level 6 takes the rounds of a long run to a tenth; higher ones gain next to nothing.
    return zlib.compress(encode(record).encode("ascii"), 6)


def unpack(blob: bytes) -> Record:
    """Return what `pack` was given.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return decode(zlib.decompress(blob).decode("ascii"))
    except (zlib.error, TypeError, UnicodeDecodeError) as error:
        raise _unreadable(error) from error


def encode(record: Record) -> str:
    """Return a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def decode(text: str) -> Record:
    """Return what `encode` was given.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        record = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise _unreadable(error) from error
    if not isinstance(record, dict):
        raise _unreadable(TypeError("no object"))
    return record


def _unreadable(error: Exception) -> StoreError:
    return StoreError(f"A stored record cannot be read: {error}.", "Delete this entry; the others are not touched.")
