"""How useful a candidate may be, as an order and in words. All of it is expectation: only a measurement decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from localspec.catalog.costs import cost_words as cost_words
from localspec.catalog.costs import share_text as share_text
from localspec.catalog.costs import too_dear_words as too_dear_words
from localspec.catalog.curated import CuratedPair
from localspec.catalog.facts import ModelFacts
from localspec.catalog.families import MIN_TIMES_SMALLER, Family, is_same_line
from localspec.catalog.pairing import PairStatus, PairVerdict
from localspec.engine.values import Method
from localspec.metrics.prediction import break_even_acceptance
from localspec.units import memory_scale

N_DRAFTED = 4
"""Drafted tokens per round that break-even is stated for."""

CAVEAT = (
    "A smaller draft is cheaper and usually agrees less often, so this order is an expectation: "
    "only `localspec bench` decides."
)
"""What is to be said once of any ranking."""

RUNNABLE = frozenset(get_args(Method)) - {"off"}
"""Methods that the engine can draft with."""

_STATUS_ORDER: dict[PairStatus, int] = {"PAIR": 0, "PAIR_WITH_NOTE": 1, "UNKNOWN": 2, "NO_PAIR": 3}
_COMMON_KINDS = frozenset({"instruct", "small", "medium", "large", "mini", "nano", "micro", "tiny", "lite"})
"""Kinds that do not change what a model writes about."""

SAME_KIND, SAME_VERSION, SAME_LINE, OTHER_LINE = range(4)

_RELATIONS = {
    SAME_KIND: "same family, version and kind as the target",
    SAME_VERSION: "same family and version as the target",
    SAME_LINE: "same family as the target in another version",
    OTHER_LINE: "by its names of another family than the target",
}


def relation(target: Family, draft: Family) -> int:
    """Return how near of kin two models are by name: SAME_KIND, SAME_VERSION, SAME_LINE or OTHER_LINE."""
    if not is_same_line(target, draft):
        return OTHER_LINE
    if target.version != draft.version:
        return SAME_LINE
    is_same_kind = set(target.variant) - _COMMON_KINDS == set(draft.variant) - _COMMON_KINDS
    return SAME_KIND if is_same_kind else SAME_VERSION


def nearest_relation(targets: Sequence[Family], drafts: Sequence[Family]) -> int:
    """Return the nearest relation among all that the names of two models tell."""
    return min((relation(one, other) for one in targets for other in drafts), default=OTHER_LINE)


def cost_ratio(target: ModelFacts, draft: ModelFacts) -> float | None:
    """Return the bytes that a draft step reads / those that a target step reads; None if either is unknown.

    Where memory bandwidth limits both models, which is usual for single tokens, this is the ratio of their times.
    """
    if not target.active_bytes or not draft.active_bytes:
        return None
    return draft.active_bytes / target.active_bytes


def break_even(ratio: float | None) -> float | None:
    """Return the acceptance from which N_DRAFTED tokens a round pay, if checking them cost as much as one token.

    None if the ratio is unknown or even a perfect draft would lose.
    """
    return None if ratio is None else break_even_acceptance(N_DRAFTED, ratio)


def refusal_of(verdict: PairVerdict, ratio: float | None, is_curated: bool) -> str:
    """Return why something is no candidate, or nothing.

    The size rule is for models that draft; heads that read the target's states are small by their making. Curated
    pairs are exempt from it, as somebody found them useful, but not from losing even with a perfect draft.
    """
    if verdict.status == "NO_PAIR":
        return verdict.reason
    if ratio is None or verdict.method != "draft":
        return ""
    return too_dear_words(ratio) if ratio >= 1.0 or not is_curated else ""


def order_key(
    verdict: PairVerdict, kinship: int, is_curated: bool, ratio: float | None, label: str
) -> tuple[bool, int, bool, int, bool, float, str]:
    """Return what accepted candidates are sorted by, the most useful first.

    What the engine cannot draft with comes last; then a sure pair goes before a doubtful one, small enough before too
    large, near of kin before far, curated before found, cheap before dear.
    """
    return (
        verdict.method not in RUNNABLE,
        _STATUS_ORDER[verdict.status],
        ratio is not None and verdict.method == "draft" and 1.0 / ratio < MIN_TIMES_SMALLER,
        kinship,
        not is_curated,
        float("inf") if ratio is None else ratio,
        label,
    )


def reason_of(
    verdict: PairVerdict,
    kinship: int,
    ratio: float | None,
    curated: CuratedPair | None,
    target: ModelFacts,
    draft: ModelFacts | None,
) -> str:
    """Return why an accepted candidate has its rank, in one line. What holds for all of them is CAVEAT."""
    parts = []
    if verdict.status == "UNKNOWN":
        parts.append(f"Whether it is a pair cannot be said: {verdict.reason.rstrip('.') or 'no reason given'}.")
    if verdict.method not in RUNNABLE:
        parts.append(f"localspec cannot draft with {verdict.method} heads yet.")
    origin = _RELATIONS[kinship]
    if curated is not None:
        tried = "measured with localspec" if curated.is_tried else "not measured with localspec"
        origin = f"on the curated list ({tried}), {origin}"
    if ratio is None or draft is None:
        cost = "what a draft step costs is unknown"
    else:
        cost = f"a token reads {_mega(draft.active_bytes)}, the target's {_mega(target.active_bytes)}"
        if verdict.method == "draft" and too_dear_words(ratio):
            cost += ", which is over a quarter"
    parts.append(f"{origin[0].upper()}{origin[1:]}; {cost}.")
    return " ".join(parts)


def _mega(size: int) -> str:
    # Both in one unit, so that they are compared at a glance.
    unit, name = memory_scale()[1]
    return f"{size / unit:,.1f} {name}" if size < 10 * unit else f"{size / unit:,.0f} {name}"
