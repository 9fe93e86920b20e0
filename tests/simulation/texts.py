"""Made-up texts: for each position, what a draft would say there, whether that is right, and how sure it looks.

Everything hangs on the position alone, so all policies meet the same text.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Segment = tuple[float, int]
"""Acceptance of the draft model's tokens, and a number of tokens."""


@dataclass(frozen=True, slots=True)
class Text:
    """Columns by position; the token at position t is t itself, and a wrong proposal is its negative."""

    name: str
    is_right: tuple[bool, ...]
    """Whether the draft model's token is the target's, all before it being right."""
    confidence: tuple[float, ...]
    acceptance: tuple[float, ...]
    """The chance that it was drawn with, before its confidence was known."""
    match_length: tuple[int, ...]
    """What a free drafter finds of the text before this position; 0 for nothing."""
    copies: tuple[bool, ...]
    """Whether its token is right."""
    copy_acceptance: tuple[float, ...]
    """The chance that a free drafter's tokens are right here."""

    @property
    def length(self) -> int:
        """Tokens."""
        return len(self.is_right)


def model_text(name: str, segments: list[Segment], length: int, seed: int, sharpness: float) -> Text:
    """Return a text in which only the draft model has something to say.

    Args:
        name: for tables.
        segments: repeated until the text is full.
        length: tokens.
        seed: of all draws.
        sharpness: how much the confidence tells: 0 for nothing, else each token's own chance is drawn from
            Beta(a / sharpness', …) around the segment's acceptance and shown (a little bent) as its confidence.
    """
    rng = random.Random(f"{name} {seed}")
    right: list[bool] = []
    confidence: list[float] = []
    acceptance: list[float] = []
    while len(right) < length:
        for chance, count in segments:
            for _ in range(count):
                own = chance
                shown = rng.betavariate(4.0, 2.0)
                if sharpness and 0.0 < chance < 1.0:
                    weight = 1.5 / sharpness
                    own = rng.betavariate(chance * weight, (1.0 - chance) * weight)
                    shown = min(max(own, 1e-6) ** 0.8, 1.0)
                elif chance == 0.0:
                    shown = 0.999
                right.append(rng.random() < own)
                confidence.append(shown)
                acceptance.append(chance)
    nothing = (0,) * length
    return Text(
        name,
        tuple(right[:length]),
        tuple(confidence[:length]),
        tuple(acceptance[:length]),
        nothing,
        (False,) * length,
        (0.0,) * length,
    )


def copying_text(name: str, segments: list[tuple[float, int]], length: int, seed: int, model_acceptance: float) -> Text:
    """Return a text of copy-heavy and open stretches.

    Args:
        name: for tables.
        segments: (chance that a copied run goes on at each token, tokens); a chance of 0 makes an open stretch, in
            which short matches turn up by accident and are seldom right.
        length: tokens.
        seed: of all draws.
        model_acceptance: acceptance of a draft model's tokens, everywhere.
    """
    rng = random.Random(f"{name} {seed}")
    base = model_text(name, [(model_acceptance, length)], length, seed, 0.7)
    matches: list[int] = []
    copies: list[bool] = []
    chances: list[float] = []
    run = 0
    while len(matches) < length:
        for chance, count in segments:
            for _ in range(count):
                if chance:
                    # After a break it takes three tokens until the next run is found.
                    matches.append(max(run - 3, 0) and min(run, 32))
                    goes_on = rng.random() < chance
                    copies.append(goes_on)
                    chances.append(chance)
                    run = run + 1 if goes_on or run < 4 else 0
                else:
                    run = 0
                    matches.append(rng.choice((0, 0, 0, 2, 3)))
                    copies.append(rng.random() < 0.25)
                    chances.append(0.25)
    return Text(
        name,
        base.is_right,
        base.confidence,
        base.acceptance,
        tuple(matches[:length]),
        tuple(copies[:length]),
        tuple(chances[:length]),
    )


MakeText = Callable[[int, int], Text]
"""(length, seed) -> text."""


def _model(name: str, segments: list[Segment], sharpness: float) -> MakeText:
    return lambda length, seed: model_text(name, segments, length, seed, sharpness)


def _copying(name: str, segments: list[Segment], model_acceptance: float) -> MakeText:
    return lambda length, seed: copying_text(name, segments, length, seed, model_acceptance)


REGIMES: list[Segment] = [(0.25, 150), (0.9, 150), (0.55, 150), (0.75, 150)]

MODEL_TEXTS: dict[str, MakeText] = {
    "steady 0.8": _model("steady 0.8", [(0.8, 512)], 0.0),
    "steady 0.8, telling": _model("steady 0.8, telling", [(0.8, 512)], 1.0),
    "steady 0.3": _model("steady 0.3", [(0.3, 512)], 0.0),
    "steady 0.55, telling": _model("steady 0.55, telling", [(0.55, 512)], 1.0),
    "switching": _model("switching", REGIMES, 0.0),
    "switching, telling": _model("switching, telling", REGIMES, 1.0),
    "always wrong": _model("always wrong", [(0.0, 512)], 0.0),
}
"""Texts for a draft model alone; in the telling ones its confidence says something."""

COPYING_TEXTS: dict[str, MakeText] = {
    "copy, open, copy": _copying("copy, open, copy", [(0.95, 160), (0.0, 200)], 0.6),
    "copying": _copying("copying", [(0.96, 512)], 0.6),
    "open": _copying("open", [(0.0, 512)], 0.6),
}
"""Texts for a free drafter, alone or with a draft model."""
