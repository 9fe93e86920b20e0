"""The seam of all drafters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from localspec.engine.distribution import Distribution
from localspec.engine.model import Progress
from localspec.engine.values import DraftStop

GoOn = Callable[[int, float], bool]
"""Asked with (tokens drafted so far, the draft's probability of the last of them) before another is computed."""


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens proposed to follow the text, and why there are no more."""

    tokens: tuple[int, ...]
    stop: DraftStop
    probabilities: tuple[float, ...] | None = None
    """The draft's own probability of each token, where it was computed."""
    num_discarded: int = 0
    """Tokens drafted and thrown away."""
    drafter: str = ""
    """Who of a cascade has spoken; empty for the drafter itself."""
    match_length: int = 0
    """Tokens of the text that were found again earlier; 0 where nothing was searched."""
    distributions: tuple[Distribution, ...] | None = None
    """What each token was drawn from; None where it was not drawn (then it stands for itself with probability 1).

    Whoever throws such a draft away, or a part of it, must have decided so before that part was drawn: a choice by what
    was drawn is a choice of texts."""


class Drafter(Protocol):
    """Proposes what follows the text. The text is the prompt plus everything observed."""

    @property
    def name(self) -> str:
        """What screens and reports call it."""

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        """Start over with a text; whatever is still usable of the old one is kept."""

    def forget(self) -> None:
        """Keep nothing of earlier texts, so that the next begin does all its work."""

    @property
    def num_unseen(self) -> int:
        """Tokens of the text that a model must read before its first proposal; 0 for a drafter without a model."""

    @property
    def is_free(self) -> bool:
        """Whether a draft costs no model's steps, so that asking is worth it even where the answer is not used."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        """Propose at most `limit` tokens.

        Args:
            limit: at least 1.
            go_on: asked before each further step of a model; None for always. A free drafter need not ask.
        """

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        """Append what the target really emitted; the first `num_accepted` are the last draft's."""

    def close(self) -> None:
        """Free what it holds. No call follows."""
