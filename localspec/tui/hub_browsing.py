"""What the search of the Hub knows, and how it finds it out: repositories, what they offer, whether it fits here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from localspec.errors import LocalspecError

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoHit, RepoListing
    from localspec.engine.interface import Engine
    from localspec.planning.plan import MemoryPlan, Verdict
    from localspec.session.pulling import PullPlan
    from localspec.settings import Settings
    from localspec.tui.model_library import Library
    from localspec.tui.state import Workbench

NUM_HITS = 40
"""Repositories asked for in one search."""

Presence = Literal["here", "in part", ""]
"""How much of an offer is on this machine."""

BADGES: Mapping[Verdict, tuple[str, str]] = {
    "FITS": ("✓ fits", "$text-success"),
    "FITS_WITH_LESS_CONTEXT": ("~ less context", "$text-warning"),
    "FITS_WITH_PARTIAL_OFFLOAD": ("~ partly on GPU", "$text-warning"),
    "FITS_WITHOUT_DRAFT": ("~ without draft", "$text-warning"),
    "DOES_NOT_FIT": ("✗ does not fit", "$text-error"),
}
"""What a memory plan says, in a column: a sign, words, and a colour besides."""


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One thing that a repository offers."""

    offer: Offer
    presence: Presence
    fit: MemoryPlan | None = None
    """None as long as nobody has asked."""
    failure: str = ""
    """Why it cannot be said whether it fits."""


@dataclass(frozen=True, slots=True)
class PlannedFetch:
    """What would be fetched, with its memory plan."""

    plan: PullPlan
    fit: MemoryPlan | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Browsing:
    """Everything that the search of the Hub shows."""

    words: str = ""
    hits: tuple[RepoHit, ...] = ()
    listing: RepoListing | None = None
    """Of the highlighted repository."""
    rows: tuple[OfferRow, ...] = ()
    """What it offers."""
    planned: PlannedFetch | None = None
    """What Enter would fetch."""
    activity: str = ""
    """What is going on; empty for nothing."""
    failure: str = ""
    """Why the last thing could not be done."""
    hint: str = ""
    told: str = field(default="")
    """Something that was done, to be said in a line."""


def offer_rows(listing: RepoListing, library: Library) -> tuple[OfferRow, ...]:
    """Return what a repository offers, with how much of it is here. Looks at files."""
    from localspec.catalog.hub.offers import offers
    from localspec.session.located import copy_of
    from localspec.session.pulling import missing_bytes

    here = [entry.found for entry in library.entries]

    def presence(offer: Offer) -> Presence:
        if copy_of(listing, offer, here) is not None:
            return "here"
        missing = missing_bytes(listing, offer)
        return "here" if not missing and offer.size_bytes else "in part" if missing < offer.size_bytes else ""

    return tuple(OfferRow(offer, presence(offer)) for offer in offers(listing))


async def fit_offer(
    probe: Engine, hub: Hub, listing: RepoListing, offer: Offer, library: Library, bench: Workbench, settings: Settings
) -> MemoryPlan:
    """Return whether an offer fits into this machine's memory as the target. Of it only the header is fetched.

    Raises:
        LocalspecError: its header could not be had, or llama.cpp could not say what it takes.
    """
    from localspec.session.loading import reserve_bytes
    from localspec.session.located import locate_offer
    from localspec.session.pulling import PlannedPart, PullPlan, fit_of

    here = [entry.found for entry in library.entries]
    located = await locate_offer(hub, listing, offer, lambda text, fraction: None, here)
    part = PlannedPart(located.label, listing, offer, offer.size_bytes)
    plan = PullPlan(part, None, "", None, "", located.path)
    return await fit_of(probe, plan, bench.context, bench.draft_context, reserve_bytes(settings))


async def plan_fetch(
    probe: Engine,
    hub: Hub,
    reference: str,
    library: Library,
    bench: Workbench,
    settings: Settings,
    on_step: Callable[[str], None],
) -> PlannedFetch:
    """Return what to fetch of an offer and of the draft that goes with it best, and whether both fit.

    Raises:
        LocalspecError: the Hub could not be asked, or refused.
    """
    from localspec.session.loading import reserve_bytes
    from localspec.session.pulling import fit_of, plan_pull
    from localspec.tui.model_library import known_pairs

    notes: list[str] = []
    curated = await asyncio.to_thread(known_pairs)
    plan = await plan_pull(
        probe,
        hub,
        reference,
        "auto",
        curated.pairs,
        library.entries,
        lambda text, fraction: on_step(text),
        notes.append,
    )
    on_step("measuring whether both fit")
    try:
        fit = await fit_of(probe, plan, bench.context, bench.draft_context, reserve_bytes(settings))
    except LocalspecError as error:
        # Whether to fetch is not for the plan to say.
        notes.append(f"Whether it fits cannot be said: {error.message}")
        fit = None
    return PlannedFetch(plan, fit, tuple(notes))


def to_fetch(planned: PlannedFetch, with_draft: bool) -> Sequence[tuple[RepoListing, Offer]]:
    """Return what goes into the queue: only parts of which something is missing."""
    parts = planned.plan.parts if with_draft else planned.plan.parts[:1]
    return [(part.listing, part.offer) for part in parts if part.missing_bytes or not part.offer.size_bytes]
