"""Where in a Markdown text that is still being written its last block begins."""

from __future__ import annotations

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def last_block_at(text: str, start: int = 0) -> int:
    """Return the place behind which a text may still change its meaning: what is before it is whole blocks.

    A block ends at an empty line, one of code at its closing fence. An unfinished line is never whole.

    Args:
        text: as far as it is written.
        start: a place that was returned before for the beginning of the same text.
    """
    place, whole, fence = start, start, ""
    while (end := text.find("\n", place)) >= 0:
        line = text[place:end]
        place = end + 1
        found = _FENCE.match(line)
        if fence:
            closes = found is not None and found[1].startswith(fence) and not line.strip().strip(fence[0])
            if closes:
                fence, whole = "", place
        elif found is not None:
            fence = found[1]
        elif not line.strip():
            whole = place
    return whole
