"""Text that arrives in pieces, broken at words."""

from __future__ import annotations

from rich.cells import cell_len

TAB = 8
"""Columns from one tab stop to the next."""

_JOINER = "\u200d"

_NO_LINE_STARTS = frozenset(
    "\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1a\uff1b\uff09\u300d\u300f\u3011\u3009\u300b\u2026\u30fc"
)
"""East Asian punctuation that stays with the character before it."""


class WordWrap:
    """Breaks a stream of text at words. Spaces at a break give way to it; nothing else is lost, added or moved.

    A word comes out when it is complete, so the end of the text needs a flush().

    Args:
        width: columns of the terminal.
    """

    def __init__(self, width: int) -> None:
        self._width = max(1, width)
        self._column = 0
        self._gap = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """Take more text and return what can be shown by now."""
        return "".join(map(self._take, text))

    def flush(self) -> str:
        """Return what was held back, at the end of the text."""
        shown = self._end_word() + self._gap
        self._column = self._after(self._gap)
        self._gap = ""
        return shown

    def _take(self, character: str) -> str:
        if character == "\n":
            shown = self._end_word()
            if self._after(self._gap) <= self._width:
                shown += self._gap
            self._column, self._gap = 0, ""
            return f"{shown}\n"
        if character in " \t":
            shown = self._end_word()
            self._gap += character
            return shown
        before = self._word[-1:]
        # Scripts with wide characters have no spaces and break between any two of them.
        is_break = before and before != _JOINER and _may_break(before, character)
        shown = self._end_word() if is_break else ""
        self._word += character
        return shown

    def _end_word(self) -> str:
        if not self._word:
            return ""
        word, gap = self._word, self._gap
        self._word = self._gap = ""
        start = self._after(gap)
        size = cell_len(word)
        if self._column and start + size > self._width:
            gap, start = "\n", 0
        self._column = start + size
        if self._column > self._width:
            # The terminal itself breaks a word that is longer than its lines.
            self._column = self._column % self._width or self._width
        return gap + word

    def _after(self, gap: str) -> int:
        column = self._column
        for character in gap:
            column += TAB - column % TAB if character == "\t" else 1
        return column


def _may_break(before: str, after: str) -> bool:
    if cell_len(after) == 0 or after in _NO_LINE_STARTS:
        return False
    return cell_len(before) == 2 or cell_len(after) == 2
