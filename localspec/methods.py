"""The ways of drafting by name: what each needs, and which settings it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

Method = Literal["off", "draft", "ngram", "suffix", "cascade", "auto"]
"""How tokens are drafted; `off` is the baseline. `cascade`: suffix decoding where it has much to say, else the draft
model. `auto`: the same drafters with adaptive pacing, or suffix decoding alone where no draft model is loaded."""

PacingKind = Literal["fixed", "adaptive"]
"""`fixed`: n_max tokens each round. `adaptive`: the length, 0 included, of the most expected tokens per second."""

Verification = Literal["exact", "rejection", "block"]
"""Which drafted tokens are kept; all three leave the target's distribution as it is. `exact`: also the same text for
the same seed. `rejection`: token by token with min(1, p/q). `block`: all of a draft jointly."""

METHODS: Final[tuple[Method, ...]] = get_args(Method)
PACINGS: Final[tuple[PacingKind, ...]] = get_args(PacingKind)
VERIFICATIONS: Final[tuple[Verification, ...]] = get_args(Verification)

WORDS: Final[dict[Method, str]] = {
    "off": "nothing is drafted",
    "draft": "a draft model",
    "ngram": "the last earlier place with the same words",
    "suffix": "all earlier places, the more often seen the better",
    "cascade": "suffix where it has much to say, else the draft model",
    "auto": "whatever pays at the moment, of any length, or nothing",
}
"""What each copies or asks, in a few words."""

AUTO_N_MAX: Final = 16
"""Longest draft that `auto` may choose, unless n_max is greater."""

_USE_DRAFT: Final = frozenset(("draft", "cascade", "auto"))
_USE_SUFFIXES: Final = frozenset(("suffix", "cascade", "auto"))

DRAFTING_SETTINGS: Final = (
    *("n_max", "n_min", "p_min", "ngram_max", "ngram_min", "suffix_factor", "suffix_p_min", "remembers"),
    *("pacing", "verification", "draft_temperature"),
)
"""Every setting of drafting beside the method, as SpeculationSettings and the group [draft] name them."""


def needs_draft(methods: Iterable[str]) -> bool:
    """Whether one of these methods can do nothing without a draft model."""
    return any(method in ("draft", "cascade") for method in methods)


def takes_draft(methods: Iterable[str]) -> bool:
    """Whether one of these methods uses a draft model, if there is one."""
    return any(method in _USE_DRAFT for method in methods)


def is_adaptive(method: str, pacing: str) -> bool:
    """Whether the length of each draft is chosen by what is measured."""
    return method == "auto" or (method != "off" and pacing == "adaptive")


def longest_draft(method: str, n_max: int) -> int:
    """Return the most tokens that may be drafted in a round."""
    return max(n_max, AUTO_N_MAX) if method == "auto" else n_max


def settings_read_by(method: str, verification: str = "exact") -> tuple[str, ...]:
    """Return the names of the settings that make a difference to a method, in the order of DRAFTING_SETTINGS.

    A name that is not known, which a later release may have written, reads all.
    """
    if method == "off":
        return ()
    if method not in METHODS:
        return DRAFTING_SETTINGS
    unread = set()
    if method not in _USE_DRAFT:
        unread |= {"p_min", "draft_temperature"}
    if method not in _USE_SUFFIXES:
        unread |= {"suffix_factor", "suffix_p_min", "remembers"}
    if method != "ngram":
        unread |= {"ngram_max", "ngram_min"}
    if method == "auto":
        unread.add("pacing")
    if verification == "exact":
        unread.add("draft_temperature")
    return tuple(name for name in DRAFTING_SETTINGS if name not in unread)
