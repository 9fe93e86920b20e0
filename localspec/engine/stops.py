"""What becomes visible of a token stream, and where it ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from localspec.engine.values import FinishReason


class TokenText(Protocol):
    """An incremental decoder of token ids."""

    def feed(self, token: int) -> str:
        """Return the text that became readable with this token."""

    def finish(self) -> str:
        """Return what is left at the end."""


class VisibleText:
    """Decodes emitted tokens, holds back what may begin a stop string, and says when the text ends."""

    def __init__(self, decoder: TokenText, end_tokens: Collection[int], stop: Sequence[str]) -> None:
        """Start an answer.

        Args:
            decoder: fresh.
            end_tokens: ids that end it; they show nothing.
            stop: strings that end it; they are not shown. Empty ones are ignored.
        """
        self._decoder = decoder
        self._end_tokens = end_tokens
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self._texts: list[str] = []

    def ends(self, token: int) -> FinishReason | None:
        """Take the next emitted token and say whether the answer ends with it."""
        if token in self._end_tokens:
            self._texts.append("")
            return "stop"
        self._held += self._decoder.feed(token)
        found = self._first_stop()
        if found is not None:
            self._texts.append(self._held[:found])
            self._held = ""
            return "stop_string"
        keep = self._held_length()
        self._texts.append(self._held[: len(self._held) - keep])
        self._held = self._held[len(self._held) - keep :]
        return None

    def take(self) -> list[str]:
        """Return the texts of the tokens since the last call, one per token."""
        texts, self._texts = self._texts, []
        return texts

    def finish(self, reason: FinishReason) -> str:
        """Return what was held back until the end; nothing after a stop string."""
        if reason == "stop_string":
            return ""
        self._held += self._decoder.finish()
        found = self._first_stop()
        tail, self._held = self._held[:found], ""
        return tail

    def _first_stop(self) -> int | None:
        positions = [position for text in self._stop if (position := self._held.find(text)) >= 0]
        return min(positions, default=None)

    def _held_length(self) -> int:
        """Length of the longest end of the text that begins some stop string."""
        longest = max((len(text) for text in self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            if any(text.startswith(self._held[-length:]) for text in self._stop):
                return length
        return 0
