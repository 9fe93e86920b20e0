"""Where in a Markdown text that is still being written its last block begins."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

_BELOW_HEAD = re.compile(r" {0,3}(?=[^|\n]*\|)\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-*:?[ \t]*")
"""The second line of a table."""


def last_block_at(text: str, start: int = 0) -> int:
    """Return the place behind which a text may still change its meaning: what is before it is whole blocks.

    A block ends at an empty line, one of code at its closing fence. Of a table each row is one, from the first on. An
    unfinished line is never whole.

    Args:
        text: as far as it is written.
        start: a place that was returned before for the beginning of the same text.
    """
    place, whole, fence = start, start, ""
    before = _line_before(text, start)
    is_table = bool(before)
    while (end := text.find("\n", place)) >= 0:
        line = text[place:end]
        place = end + 1
        found = _FENCE.match(line)
        if fence:
            closes = found is not None and found[1].startswith(fence) and not line.strip().strip(fence[0])
            if closes:
                fence, whole = "", place
        elif found is not None:
            fence, is_table = found[1], False
        elif not line.strip():
            whole, is_table = place, False
        else:
            is_table = is_table or ("|" in before and _BELOW_HEAD.fullmatch(line) is not None)
            whole = place if is_table else whole
        before = line
    return whole


def _line_before(text: str, start: int) -> str:
    """Return the table's row that ends at a place that was returned before; empty if there is none there."""
    line = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)]
    return "" if _FENCE.match(line) else line.strip()
