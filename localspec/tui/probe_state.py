"""What is shown of a probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from localspec.tui.braille import Point
from localspec.tui.runs.details import Figures


@dataclass(frozen=True, slots=True)
class NeedLine:
    """The acceptance from which drafts of one cost pay, by their length."""

    name: str
    points: tuple[Point, ...]
    """Tokens of a draft, and the acceptance; None where no draft pays."""


@dataclass(frozen=True, slots=True)
class ProbeSnapshot:
    """A probe at one moment."""

    doing: str = ""
    fraction: float = 0.0
    cost: tuple[Point, ...] = ()
    """Tokens of a step, and its time / that of a step of one token."""
    needed: tuple[NeedLine, ...] = ()
    verdict: str = ""
    facts: str = ""
    table: Figures = field(default_factory=lambda: Figures((), ()))
    """A row for each cost of a draft."""
    notes: tuple[str, ...] = ()
    """Texts in them may come from files; likewise above."""
    is_done: bool = False
