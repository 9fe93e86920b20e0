"""A profile's settings for kinds of text on the workbench: the kind of each question decides how it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from localspec.engine.values import SpeculationSettings
from localspec.tui.state import Workbench

if TYPE_CHECKING:
    from localspec.tui.chat_fold import ChatTurn


def kinds_in_force(bench: Workbench) -> Mapping[str, SpeculationSettings]:
    """Return how to draft for which kind of text; empty where nothing depends on it.

    It counts for as long as the bench drafts as the profile says, with its target: a person who chooses another way
    means it for all texts.
    """
    kinds = bench.kinds
    if kinds is None or bench.target is None or bench.target.path != kinds.target:
        return {}
    own = replace(bench.speculation, remembers=kinds.usual.remembers)
    return dict(kinds.by_kind) if own == kinds.usual else {}


def drafting_for(bench: Workbench, question: str, turns: tuple[ChatTurn, ...]) -> tuple[str, SpeculationSettings]:
    """Return the kind of a question, and how to draft for it; no kind where nothing depends on it. Blocks a little.

    Args:
        bench: in force.
        question: just asked.
        turns: before it.
    """
    by_kind = kinds_in_force(bench)
    if not by_kind:
        return "", bench.speculation
    from localspec.session.kind_drafting import wanted_for

    earlier = (turns[-1].question, turns[-1].text) if turns else ()
    return wanted_for(by_kind, question, earlier, bench.speculation)
