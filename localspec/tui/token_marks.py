"""How tokens are told apart by where they came from: by colour, by type, and by a letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len

from localspec.session.plain_text import printable

if TYPE_CHECKING:
    from localspec.engine.events import RoundFinished

Mark = Literal["draft", "suffix", "n-gram", "correction", "bonus", "plain"]
"""Who drafted it, if it was accepted; else what of the target's own it is."""

LETTERS: dict[Mark, str] = {"draft": "D", "suffix": "S", "n-gram": "N", "correction": "C", "bonus": "B", "plain": "P"}

MEANINGS: dict[Mark, str] = {
    "draft": "draft model",
    "suffix": "suffix",
    "n-gram": "n-gram",
    "correction": "correction",
    "bonus": "bonus",
    "plain": "plain step",
}

OF_DRAFTERS: tuple[Mark, ...] = ("draft", "suffix", "n-gram")
"""Those that an answer need not have."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line that one token showed."""

    text: str
    mark: Mark
    round_index: int
    """Place in the sequence of rounds."""


Line = tuple[Piece, ...]


def mark_of(round_: RoundFinished, place: int) -> Mark:
    """Return where a round's token came from. Without a draft there is nothing that it could be the bonus of."""
    origin = round_.emitted[place].origin
    if origin == "accepted":
        return drafter_mark(round_.drafter)
    return origin if round_.drafted else "plain"


def drafter_mark(name: str) -> Mark:
    """Return the kind of a drafter, as the engine names it."""
    if name.startswith(("n-gram", "ngram")):
        return "n-gram"
    return "suffix" if name.startswith("suffix") else "draft"


def token_lines(rounds: Sequence[RoundFinished], width: int) -> tuple[Line, ...]:
    """Return an answer's tokens in lines of at most `width` cells. A line break of the text shows as a sign."""
    lines: list[Line] = []
    line: list[Piece] = []
    used = 0
    for index, round_ in enumerate(rounds):
        for place, token in enumerate(round_.emitted):
            mark = mark_of(round_, place)
            for number, part in enumerate(printable(token.text).expandtabs(4).split("\n")):
                if number:
                    line.append(Piece("⏎", mark, index))
                    lines.append(tuple(line))
                    line, used = [], 0
                for chunk in _chunks(part, width - used - 1, width - 1):
                    size = cell_len(chunk)
                    if used and used + size > width - 1:
                        lines.append(tuple(line))
                        line, used = [], 0
                    line.append(Piece(chunk, mark, index))
                    used += size
    if line:
        lines.append(tuple(line))
    return tuple(lines)


def first_line_of(lines: Sequence[Line], round_index: int) -> int:
    """Return the line that a round begins in; 0 for one that shows nothing."""
    return next((y for y, line in enumerate(lines) if any(piece.round_index == round_index for piece in line)), 0)


def _chunks(text: str, first: int, width: int) -> list[str]:
    """Return a token's text in parts that fit in a line; nearly always it is one."""
    if not text:
        return []
    if cell_len(text) <= max(first, width):
        return [text]
    chunks, chunk, used = [], "", 0
    for character in text:
        size = cell_len(character)
        if used + size > width:
            chunks.append(chunk)
            chunk, used = "", 0
        chunk += character
        used += size
    return [*chunks, chunk]
