"""What the chat screen knows of an answer: a fold over events, given as frozen snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localspec.metrics.live import LiveFigures, LiveFold
from localspec.metrics.thinking import Split, count_thinking, split_thinking
from localspec.session.answer_line import AnswerFigures

if TYPE_CHECKING:
    from localspec.engine.events import Event, RoundFinished
    from localspec.tui.pace import Pace

SNAPSHOT_S = 1.0 / 15.0
"""Shortest time between two snapshots: more of them would be seen by nobody."""


@dataclass(frozen=True, slots=True)
class AnswerSnapshot:
    """An answer at one moment."""

    text: str = ""
    """All of it, thinking included."""
    split: Split = field(default_factory=lambda: split_thinking(""))
    num_thinking: int = 0
    """Tokens of the thinking."""
    live: LiveFigures = field(default_factory=LiveFigures)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A question and what was answered, complete or not."""

    question: str
    text: str
    figures: AnswerFigures
    rounds: tuple[RoundFinished, ...] = ()
    """Of the newest answers only: they take a hundred times the memory of the text."""
    num_thinking: int = 0
    attempt: int = 0
    """How often it was asked again."""


class AnswerFold:
    """Takes the events of one answer."""

    def __init__(self, pace: Pace) -> None:
        """Start an answer.

        Args:
            pace: of snapshots.
        """
        self._pace = pace
        self._live = LiveFold()
        self._parts: list[str] = []
        self._ends: list[int] = []
        self._length = 0
        self._rounds: list[RoundFinished] = []

    @property
    def rounds(self) -> tuple[RoundFinished, ...]:
        """The rounds so far."""
        return tuple(self._rounds)

    def observe(self, event: Event) -> bool:
        """Take an event, and say whether it is time for a snapshot."""
        self._live.observe(event)
        if event.type == "round_finished":
            self._rounds.append(event)
            for token in event.emitted:
                self._parts.append(token.text)
                self._length += len(token.text)
                self._ends.append(self._length)
        elif event.type == "generation_finished":
            self._parts.append(event.tail_text)
        return self._pace.is_due()

    def snapshot(self, is_complete: bool = False) -> AnswerSnapshot:
        """Return the answer so far."""
        text = "".join(self._parts)
        split = split_thinking(text, is_complete)
        return AnswerSnapshot(text, split, count_thinking(self._ends, split), self._live.figures())
