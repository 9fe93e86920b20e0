"""What is shown of a comparison that has ended. compare_card.py makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from localspec.session.figures import DASH
from localspec.tui.runs.rows import FASTER, SLOWER, UNCLEAR, UNUSABLE

Tone = Literal["faster", "slower", "no_clear_difference", "unusable", "unknown"]

MARKS: dict[Tone, str] = {
    "faster": FASTER,
    "slower": SLOWER,
    "no_clear_difference": UNCLEAR,
    "unusable": UNUSABLE,
    "unknown": DASH,
}
"""So that colour is never the only sign."""


@dataclass(frozen=True, slots=True)
class TextCard:
    """One workload's part of the card."""

    title: str
    tone: Tone
    headline: str
    """The speedup with its interval, or why there is none."""
    arms: tuple[str, ...]
    """Heads of the columns."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """(label, a cell for each arm)."""
    sentences: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultCard:
    """All that is said of one comparison."""

    title: str
    texts: tuple[TextCard, ...]
    notes: tuple[str, ...]
    """On the machine and the models."""
    run_id: int | None
    """None if it is not kept."""
    arms: tuple[str, ...]
    """Those that have run, which a profile can be made of."""
    best: str
    """The one to use for text like this; the baseline where nothing is clearly faster."""
    has_kinds: bool = False
    """Drafting pays for some kind of the user's own texts: a profile can hold a setting for each."""

    @property
    def tone(self) -> Tone:
        """The texts' one, if they agree."""
        tones = {text.tone for text in self.texts}
        return next(iter(tones)) if len(tones) == 1 else "unknown"

    @property
    def summary(self) -> str:
        """A few words for a list."""
        figures = ", ".join(f"{MARKS[text.tone]} {text.headline.partition(' ')[0]}" for text in self.texts)
        kept = f"run {self.run_id}" if self.run_id is not None else "not kept"
        return f"{kept}  {figures}  {self.title}"
