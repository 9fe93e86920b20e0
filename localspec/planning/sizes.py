"""Sizes of memory as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

from localspec.errors import UsageError

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT])(I?B)?", re.IGNORECASE | re.ASCII)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}


def is_size(text: str) -> bool:
    """Say whether a text is a size that `parse_size` takes."""
    return _SIZE.fullmatch(text.strip()) is not None


def parse_size(text: str) -> int:
    """Return the bytes that `12GiB`, `12G` (both binary), `12GB` (decimal) or `1.5 TiB` stands for, rounded down.

    A zero needs no unit.

    Raises:
        UsageError: it is not a number with a unit.
    """
    match = _SIZE.fullmatch(text.strip())
    if text.strip() == "0":
        return 0
    if match is None:
        shown = text.strip()[:40]
        raise UsageError(
            f"“{shown}” is no size." if shown else "A size is missing.",
            "Write a number and a unit, such as 12GiB or 8192MiB; GB and MB are decimal, G and M are GiB and MiB.",
        )
    number, letter, ending = match.groups()
    base = 1000 if (ending or "").upper() == "B" else 1024
    return int(Decimal(number) * base ** _POWERS[letter.upper()])
