"""A device's memory as a bar of coloured letters."""

from __future__ import annotations

from rich.text import Text

from localspec.session.memory_parts import LEGEND, Part, bar, legend, limit_mark, parts_of

__all__ = ["LEGEND", "WIDTH", "Part", "bar", "coloured", "legend", "limit_mark", "parts_of"]

WIDTH = 64
"""Characters between the ends of a bar."""

_STYLES = {"T": "blue", "d": "cyan", "K": "magenta", "k": "bright_magenta", "c": "yellow", "x": "dim", "=": "dim"}


def coloured(text: str) -> Text:
    """Return a bar with a colour for each kind of part."""
    shown = Text("|")
    for character in text:
        shown.append(character, _STYLES.get(character, ""))
    shown.append("|")
    return shown
