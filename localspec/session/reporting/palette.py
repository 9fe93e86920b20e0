"""Colours. Each has a light and a dark value; a picture is drawn in the light ones and its SVG names both.

The hues are those of Okabe and Ito (Color Universal Design, 2008), which people with the common colour-blindnesses
tell apart; where they serve as text they are darkened until they stand out from white 4.5 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from localspec.session.arms import BASELINE_NAME


@dataclass(frozen=True, slots=True)
class Colour:
    """A colour with a name, which the page knows as `--NAME`; values are like `#0072b2`, no two light ones alike."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class ArmColour:
    """How an arm looks in every picture."""

    mark: Colour
    """Of lines, points and bars."""
    words: Colour
    """Of text."""


INK: Final = Colour("ink", "#1b1e23", "#e8eaed")
MUTED: Final = Colour("muted", "#5b626b", "#a9b0b8")
GRID: Final = Colour("grid", "#e3e6ea", "#2e343b")
PAPER: Final = Colour("paper", "#ffffff", "#15181c")

_OFF: Final = ArmColour(Colour("off", "#7d858e", "#9aa1a9"), Colour("off-words", "#636a73", "#b4bac1"))

_RESERVED: Final = {"draft": 0, "ngram": 1}
"""The two common arms look the same in all reports."""

_SPECULATIVE: Final = (
    ArmColour(Colour("blue", "#0072b2", "#56b4e9"), Colour("blue-words", "#00659e", "#6fc0ee")),
    ArmColour(Colour("vermilion", "#d55e00", "#e69f00"), Colour("vermilion-words", "#b34f00", "#efb02b")),
    ArmColour(Colour("green", "#009e73", "#1fbf92"), Colour("green-words", "#007a59", "#3ccfa5")),
    ArmColour(Colour("purple", "#cc79a7", "#d78fb7"), Colour("purple-words", "#9c4a78", "#e3a6c8")),
    ArmColour(Colour("sky", "#56b4e9", "#8fcdf2"), Colour("sky-words", "#1f77ab", "#a5d7f5")),
    ArmColour(Colour("amber", "#e69f00", "#f0c14f"), Colour("amber-words", "#8f6300", "#f3cd73")),
)

COLOURS: Final = (INK, MUTED, GRID, PAPER, *(part for arm in (_OFF, *_SPECULATIVE) for part in (arm.mark, arm.words)))
"""All that a picture may use."""


def arm_colours(names: Iterable[str]) -> dict[str, ArmColour]:
    """Return a colour for each arm: grey for the baseline; after six arms with drafts colours come again."""
    found: dict[str, ArmColour] = {}
    taken: set[int] = set()
    wanted = list(dict.fromkeys(names))
    for arm in wanted:
        if arm == BASELINE_NAME:
            found[arm] = _OFF
        elif arm in _RESERVED:
            taken.add(_RESERVED[arm])
            found[arm] = _SPECULATIVE[_RESERVED[arm]]
    free = [index for index in range(len(_SPECULATIVE)) if index not in taken] or list(range(len(_SPECULATIVE)))
    rest = (arm for arm in wanted if arm not in found)
    found.update((arm, _SPECULATIVE[free[index % len(free)]]) for index, arm in enumerate(rest))
    return found


def style_rules() -> tuple[str, str]:
    """Return the CSS declarations of all colours, light and dark."""
    light = " ".join(f"--{colour.name}: {colour.light};" for colour in COLOURS)
    dark = " ".join(f"--{colour.name}: {colour.dark};" for colour in COLOURS)
    return light, dark
