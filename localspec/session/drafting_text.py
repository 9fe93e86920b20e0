"""How something drafts, in words. Names of drafters in them may come from files: they are not markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from localspec.methods import is_adaptive, longest_draft, settings_read_by

if TYPE_CHECKING:
    from localspec.metrics.pacing import PacingStats

_USUAL: dict[str, object] = {
    "n_min": 0,
    "p_min": 0.0,
    "suffix_factor": 2.0,
    "suffix_p_min": 0.3,
    "draft_temperature": -1.0,
}


class Drafting(Protocol):
    """Settings of drafting: the engine's, or the group of settings.toml."""

    @property
    def method(self) -> str:
        """Its name."""

    @property
    def n_max(self) -> int:
        """Most tokens of a draft."""

    @property
    def pacing(self) -> str:
        """How the length is chosen."""

    @property
    def verification(self) -> str:
        """Which tokens are kept."""


def settings_phrase(settings: Drafting) -> str:
    """Return how an arm drafts, such as `draft n_max 4, p_min 0.5`: what its method reads, where it is not as usual.

    The length of a match of n-gram drafting is left out.
    """
    method = settings.method
    if method == "off":
        return "off"
    longest = longest_draft(method, settings.n_max)
    if method == "auto":
        parts = [f"auto up to {longest}"]
    elif is_adaptive(method, settings.pacing):
        parts = [f"{method} adaptive up to {longest}"]
    else:
        parts = [f"{method} n_max {settings.n_max}"]
    read = settings_read_by(method, settings.verification)
    for name, usual in _USUAL.items():
        if name in read and (value := getattr(settings, name, usual)) != usual:
            parts.append(f"{name} {value:g}")
    if "remembers" in read and getattr(settings, "remembers", False):
        parts.append("with earlier answers")
    if settings.verification != "exact":
        parts.append(settings.verification)
    return ", ".join(parts)


def drafter_phrase(drafter: str, method: str, n_max: int, pacing: str = "fixed", verification: str = "exact") -> str:
    """Return what is in use, such as `draft X, n_max 4` or `auto: suffix + draft X, up to 16`.

    Args:
        drafter: its name, as the engine gives it.
        method: in force; likewise the rest.
    """
    longest = longest_draft(method, n_max)
    if method == "auto":
        text = f"auto: {drafter}, up to {longest}"
    elif is_adaptive(method, pacing):
        text = f"{drafter}, adaptive up to {longest}"
    else:
        text = f"{drafter}, n_max {n_max}"
    # What it is named for makes no difference where the most probable token is taken.
    return text if verification == "exact" else f"{text}, {verification} at a temperature"


def resting_phrase(pacing: PacingStats) -> str:
    """Return why adaptive drafting rests, such as `resting: acceptance 0.31, needs 0.58 here`; empty where it does not.

    Args:
        pacing: of an answer; what counts is its end.
    """
    last = pacing.last
    if last is None or not last.is_resting:
        return ""
    if last.needed >= 1.0:
        return "resting: drafts cost too much here, whatever is accepted"
    return f"resting: acceptance {last.acceptance:.2f}, needs {last.needed:.2f} here"
