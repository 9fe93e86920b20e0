"""What a model thinks before it answers, told apart from the answer, and counted apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_MARKS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))


@dataclass(frozen=True, slots=True)
class Split:
    """A model's text in two parts, complete or not."""

    thinking: str
    answer: str
    end: int
    """Characters of the whole text that belong to the thinking, its marks included."""
    is_open: bool
    """The thinking is not over."""


def split_thinking(text: str, is_complete: bool = True) -> Split:
    """Return thinking and answer.

    Thinking stands at the beginning. Its opening mark may be missing, since some chat templates write it themselves;
    the closing one then begins a line.

    Args:
        text: all that came so far.
        is_complete: nothing more will come, so that the beginning of a mark is text.
    """
    body = text.lstrip()
    begin = len(text) - len(body)
    for opening, closing in _MARKS:
        if body.startswith(opening):
            end = text.find(closing, begin)
            inner = begin + len(opening)
            if end < 0:
                return Split(text[inner:].strip(), "", len(text), True)
            return _split_at(text, inner, end, closing)
        if not is_complete and body and opening.startswith(body):
            return Split("", "", 0, False)
    for opening, closing in _MARKS:
        end = text.find(closing)
        if end >= 0 and text.find(opening, 0, end) < 0 and (not text[:end].strip() or text[end - 1] == "\n"):
            return _split_at(text, 0, end, closing)
    return Split("", text, 0, False)


def count_thinking(token_ends: Sequence[int], split: Split) -> int:
    """Return how many tokens belong to the thinking.

    Args:
        token_ends: characters of the text after each token.
    """
    return bisect_right(token_ends, split.end) if split.end else 0


def _split_at(text: str, begin: int, end: int, closing: str) -> Split:
    after = end + len(closing)
    return Split(text[begin:end].strip(), text[after:].lstrip("\n"), after, False)
