"""The seam of all drafters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from localspec.engine.model import Progress
from localspec.engine.values import DraftStop


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the text, and why there are no more."""

    tokens: tuple[int, ...]
    stop: DraftStop
    probabilities: tuple[float, ...] | None = None
    """The draft's own probability of each token, where it was computed."""
    num_discarded: int = 0
    """Tokens drafted and thrown away."""


class Drafter(Protocol):
    """Proposes what follows the text. The text is the prompt plus everything observed."""

    @property
    def name(self) -> str:
        """What screens and reports call it."""

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Start over with a text; whatever is still usable of the old one is kept."""

    def forget(self) -> None:
        """Keep nothing of earlier texts, so that the next begin does all its work."""

    def draft(self, limit: int) -> Draft:
        """Propose at most `limit` tokens."""

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target really emitted; the first `num_accepted` are the last draft's."""

    def close(self) -> None:
        """Free what it holds. No call follows."""
