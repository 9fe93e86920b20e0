"""How far a search for drafts went: what it looked at, and what it passed over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from localspec.catalog.facts import ModelFacts
from localspec.catalog.families import Family
from localspec.session.nominations import CandidateTarget, LeftOut, why_left_out

if TYPE_CHECKING:
    from localspec.session.library import ModelEntry

_LEFT_OUT: dict[LeftOut | Literal["demo"], tuple[str, str]] = {
    "vocabulary": ("has another vocabulary", "have another vocabulary"),
    "size": ("reads as much per token as the target", "read as much per token as the target"),
    "head": ("drafts for another target only", "draft for other targets only"),
    "unread": ("cannot be read", "cannot be read"),
    "demo": ("belongs to the demo", "belong to the demo"),
}


@dataclass(frozen=True, slots=True)
class SearchExtent:
    """What a search looked at, and what it passed over."""

    num_local: int
    """Models on this machine, the target not counted."""
    left_out: Mapping[LeftOut | Literal["demo"], int]
    """How many of them were not considered, by reason; `demo` for the demo's own copies."""
    hub_words: tuple[str, ...]
    """What the Hub was searched for; empty where it was not."""

    @property
    def passed_over(self) -> str:
        """The models that were not considered, as a sentence; empty for none."""
        parts: list[str] = []
        for reason, (one, many) in _LEFT_OUT.items():
            if count := self.left_out.get(reason, 0):
                noun = "" if parts else " other local model" if count == 1 else " other local models"
                parts.append(f"{count}{noun} {one if count == 1 else many}")
        return f"{'; '.join(parts)}." if parts else ""

    @property
    def searched(self) -> str:
        """Where drafts were looked for, as a sentence."""
        local = "1 other model" if self.num_local == 1 else f"{self.num_local or 'no'} other models"
        hub = f" and the Hub ({', '.join(self.hub_words)})" if self.hub_words else ""
        middle = "," if hub else " and"
        return f"Looked at: the curated list{middle} {local} on this machine{hub}."


def without_demo(target: CandidateTarget, local: Sequence[ModelEntry]) -> Sequence[ModelEntry]:
    """Leave out the demo's copies, which are there for the demo's own target."""
    if any(entry.found.place == "demo" and entry.found.path == target.path for entry in local):
        return local
    return [entry for entry in local if entry.found.place != "demo"]


def extent_of(
    target: CandidateTarget,
    facts: ModelFacts,
    families: Sequence[Family],
    everything: Sequence[ModelEntry],
    nominated: Set[str],
    words: tuple[str, ...],
) -> SearchExtent:
    """Return what a search looked at.

    Args:
        target: for which drafts were sought; its facts and families likewise.
        facts: of the target.
        families: of the target.
        everything: the models on this machine, the demo's among them.
        nominated: names of those that were considered.
        words: what the Hub was searched for.
    """
    kept = {entry.found.path for entry in without_demo(target, everything)}
    left_out: Counter[LeftOut | Literal["demo"]] = Counter()
    for entry in everything:
        if entry.found.name in nominated:
            continue
        reason = why_left_out(target, facts, families, entry)
        if reason and reason != "itself" and entry.found.path not in kept:
            left_out["demo"] += 1
        elif reason or entry.found.path not in kept:
            left_out[reason or "demo"] += 1
    num_local = len(everything) - left_out.pop("itself", 0)
    return SearchExtent(num_local, dict(left_out), words)
