"""What adaptive pacing has learnt, as text that outlives the process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from localspec.engine.cost_model import MAX_WIDTH

VERSION = 1
MOST_DRAFTERS = 8
"""Drafters that a state may hold."""
_LONGEST = 1 << 16
_MOST_CELLS = 64
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class DrafterState:
    """What is known of one drafter."""

    is_free: bool
    cells: tuple[tuple[float, float], ...]
    """(kept, judged) by cell of acceptance_model.py."""
    step: float = 0.0
    """Cost of a drafted token in units of StepCosts; 0 for unknown or none."""
    catch_up: float = 0.0
    """Cost of a token that the draft has not seen."""


@dataclass(frozen=True, slots=True)
class PacingState:
    """What is known of a target, its drafters and the machine."""

    step_s: Mapping[int, float] = field(default_factory=dict)
    """Seconds of a target step by width."""
    drafters: Mapping[str, DrafterState] = field(default_factory=dict)
    """By the drafters' names."""


def to_text(state: PacingState) -> str:
    """Return compact JSON."""
    document = {
        "version": VERSION,
        "step_s": {str(width): _short(seconds) for width, seconds in state.step_s.items()},
        "drafters": {
            name: {
                "is_free": drafter.is_free,
                "cells": [[_short(kept), _short(judged)] for kept, judged in drafter.cells],
                "step": _short(drafter.step),
                "catch_up": _short(drafter.catch_up),
            }
            for name, drafter in state.drafters.items()
        },
    }
    return json.dumps(document, separators=(",", ":"))


def from_text(text: str) -> PacingState | None:
    """Return the state that a text holds, or None for anything else: another version, damage, values out of range.

    The text comes from a file, so nothing in it is believed unchecked; without it, learning starts over.
    """
    if not 0 < len(text) <= _LONGEST:
        return None
    try:
        return _read(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _read(document: Any) -> PacingState | None:
    if document["version"] != VERSION or len(document["drafters"]) > MOST_DRAFTERS:
        return None
    step_s = {int(width): _number(seconds, 1e-7, 1e4) for width, seconds in document["step_s"].items()}
    if not all(1 <= width <= MAX_WIDTH for width in step_s):
        return None
    if step_s and 1 not in step_s:
        return None
    drafters = {}
    for name, found in document["drafters"].items():
        cells = tuple((_number(kept, 0.0, 1e4), _number(judged, 0.0, 1e4)) for kept, judged in found["cells"])
        if len(cells) > _MOST_CELLS or any(kept > judged * 1.001 for kept, judged in cells):
            return None
        drafters[str(name)] = DrafterState(
            found["is_free"] is True, cells, _number(found["step"], 0.0, 1e3), _number(found["catch_up"], 0.0, 1e3)
        )
    return PacingState(dict(sorted(step_s.items())), drafters)


def _number(value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if not (isfinite(value) and low <= value <= high):
        raise ValueError(value)
    return float(value)


def _short(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
