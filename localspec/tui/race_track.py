"""The time line of one run, so that it can be shown again as it was."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from localspec.metrics.latency import LatencyFold

if TYPE_CHECKING:
    from localspec.engine.events import Event


class RaceTrack:
    """Takes the events of one generation as they come, and gives what was there after any of its rounds.

    Times are seconds since the request was received.
    """

    def __init__(self, pair: int) -> None:
        """Begin a run of the pair of that number, from 0."""
        self.pair = pair
        self._latency = LatencyFold()
        self._at_s: list[float] = []
        self._counts: list[int] = []
        self._lengths: list[int] = []
        self._rates: list[float | None] = []
        self._parts: list[str] = []
        self._text = ""

    def observe(self, event: Event) -> None:
        """Take an event; those that bring no text are ignored."""
        if event.type == "round_finished":
            self._latency.observe(event)
            text = "".join(token.text for token in event.emitted)
            self._parts.append(text)
            self._at_s.append(event.at_s)
            self._counts.append(self.num_tokens + len(event.emitted))
            self._lengths.append((self._lengths[-1] if self._lengths else 0) + len(text))
            self._rates.append(self._latency.decode_tps)
        elif event.type == "generation_finished" and event.tail_text:
            self._parts.append(event.tail_text)
            if self._lengths:
                self._lengths[-1] += len(event.tail_text)

    @property
    def num_rounds(self) -> int:
        """Rounds by now."""
        return len(self._at_s)

    @property
    def num_tokens(self) -> int:
        """Tokens by now."""
        return self._counts[-1] if self._counts else 0

    @property
    def last_s(self) -> float:
        """When the newest round ended; 0 before the first."""
        return self._at_s[-1] if self._at_s else 0.0

    def rounds_until(self, at_s: float) -> int:
        """Return how many rounds had ended by a moment."""
        return bisect_right(self._at_s, at_s)

    def time_of(self, num_tokens: int) -> float | None:
        """Return when there were so many tokens; None if there never were."""
        place = bisect_left(self._counts, num_tokens)
        return self._at_s[place] if place < len(self._at_s) else None

    def tokens_after(self, num_rounds: int) -> int:
        """Return the tokens of the first rounds."""
        return self._counts[num_rounds - 1] if num_rounds else 0

    def rate_after(self, num_rounds: int) -> float | None:
        """Return the tokens per second of the first rounds."""
        return self._rates[num_rounds - 1] if num_rounds else None

    def text_after(self, num_rounds: int) -> str:
        """Return the text of the first rounds."""
        if self._parts:
            self._text += "".join(self._parts)
            self._parts.clear()
        return self._text[: self._lengths[num_rounds - 1]] if num_rounds else ""
