"""Does it fit, with how much context, and what could be given up: the memory plan."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.planning.decision import decide
from localspec.planning.devices import PlanDevice
from localspec.planning.draft_placement import slow_draft_note
from localspec.planning.fitting import Fitting
from localspec.planning.offers import make_offers
from localspec.planning.values import (
    DraftAlternative,
    Measure,
    MemoryPlan,
    PlanRow,
    TradeOffer,
    Verdict,
    Wishes,
)
from localspec.planning.wording import plan_notes, sentence

__all__ = [
    "MAX_MEASURES",
    "DraftAlternative",
    "Measure",
    "MemoryPlan",
    "PlanRow",
    "TradeOffer",
    "Verdict",
    "Wishes",
    "make_plan",
]

MAX_MEASURES = 40
"""Placements measured for one plan with its offers; offers end there."""


async def make_plan(
    devices: Sequence[PlanDevice],
    measure: Measure,
    wishes: Wishes,
    *,
    alternatives: Sequence[DraftAlternative] = (),
    with_offers: bool = True,
) -> MemoryPlan:
    """Return the best plan for the wishes; decision.py says what is the best.

    Args:
        devices: memories to plan for, the host's among them.
        measure: asks llama.cpp.
        wishes: what a person wants.
        alternatives: smaller files of the draft that could be fetched, for an offer.
        with_offers: measure what else could be done.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    fitting = Fitting(devices, measure)
    decision = await decide(fitting, wishes)
    offers: tuple[TradeOffer, ...] = ()
    if with_offers:
        fitting.limit = MAX_MEASURES
        offers = await make_offers(fitting, wishes, decision, alternatives)
    shown = decision.placed.trial if decision.placed.fits else decision.as_wished
    return MemoryPlan(
        verdict=decision.verdict,
        sentence=sentence(decision, fitting.devices),
        devices=fitting.devices,
        rows=shown.rows,
        n_ctx=decision.n_ctx,
        max_n_ctx=decision.max_n_ctx,
        target=shown.target,
        draft=shown.draft,
        offers=offers,
        notes=plan_notes(shown),
        slow_draft=slow_draft_note(shown),
    )
