"""Prompt lookup: propose what followed the same words earlier in the text."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.model import Progress


class NgramDrafter:
    """Copies from the most recent earlier occurrence of the text's last tokens, longest match first.

    For each length n from n_min to n_max a dictionary maps the n tokens before a position to that position. A
    new token adds one entry per length, and a draft looks one up per length, so a round costs the same at
    any text length. Prompt lookup decoding is Saxena's (2023); reading on into the proposal itself, so that a
    loop is continued to any length, is how LZ77 copies.
    """

    def __init__(self, n_min: int, n_max: int) -> None:
        """Take the shortest and longest match, in tokens."""
        self._lengths = tuple(range(n_max, n_min - 1, -1))
        self._text: list[int] = []
        self._followers: dict[int, dict[tuple[int, ...], int]] = {}
        self.forget()

    @property
    def name(self) -> str:
        """What screens and reports call it."""
        return f"n-gram {self._lengths[-1]}-{self._lengths[0]}"

    def forget(self) -> None:
        """Empty the index."""
        self._text = []
        self._followers = {length: {} for length in self._lengths}

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Index a prompt; if it continues the old text, only its new part."""
        known = len(self._text)
        if list(prompt[:known]) != self._text:
            self.forget()
            known = 0
        self._append(prompt[known:])

    @property
    def num_unseen(self) -> int:
        """Nothing: there is no model."""
        return 0

    @property
    def is_free(self) -> bool:
        """Yes: a draft is a few look-ups."""
        return True

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose at most `limit` tokens."""
        text = self._text
        for length in self._lengths:
            position = self._followers[length].get(tuple(text[-length:]))
            if position is not None:
                copied = text[position : position + limit]
                period = len(text) - position
                while len(copied) < limit:
                    copied.append(copied[-period])
                return Draft(tuple(copied), "n_max", match_length=length)
        return Draft((), "no_match")

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target emitted."""
        self._append(tokens)

    def _append(self, tokens: Sequence[int]) -> None:
        text = self._text
        for token in tokens:
            position = len(text)
            for length in self._lengths:
                if position >= length:
                    # Entered only now that it has a follower: the end of the text must not find itself.
                    self._followers[length][tuple(text[position - length :])] = position
            text.append(token)

    def close(self) -> None:
        """Free nothing."""
