"""What is shown of a probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from localspec.tui.braille import Point
from localspec.tui.runs.details import Figures


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """A line of a picture."""

    name: str
    points: tuple[Point, ...]
    """Tokens, and what belongs to so many; None where nothing does."""


@dataclass(frozen=True, slots=True)
class ProbeSnapshot:
    """A probe at one moment."""

    doing: str = ""
    fraction: float = 0.0
    cost: tuple[ProbeLine, ...] = ()
    """For each depth: tokens of a step, and its time / that of a step of one token."""
    needed: tuple[ProbeLine, ...] = ()
    """For each depth and cost of a draft: its tokens, and the acceptance from which it pays."""
    verdict: str = ""
    facts: str = ""
    table: Figures = field(default_factory=lambda: Figures((), ()))
    """A row for each cost of a draft, for one depth after the other."""
    notes: tuple[str, ...] = ()
    """Texts in them may come from files; likewise above."""
    is_done: bool = False
