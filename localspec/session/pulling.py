"""What a download would bring, decided before a byte of weights is fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.catalog.curated import CuratedPair
from localspec.catalog.pairing import PairVerdict
from localspec.engine.interface import Engine
from localspec.engine.values import ContextSettings
from localspec.errors import LocalspecError
from localspec.planning.plan import MemoryPlan, make_plan
from localspec.session.candidates import Candidate, find_candidates
from localspec.session.fit import wishes_of
from localspec.session.footprints import ProbeEngine
from localspec.session.header_questions import ask_verdicts
from localspec.session.library import ModelEntry
from localspec.session.located import LocatedModel, OnStep, locate_offer, locate_on_hub
from localspec.session.memory_devices import machine_devices

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoListing

PAIRED = ("PAIR", "PAIR_WITH_NOTE")


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """One model to fetch."""

    label: str
    listing: RepoListing
    offer: Offer
    missing_bytes: int
    """What is still to be fetched of it."""


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What is fetched, and which draft goes with it."""

    target: PlannedPart
    draft: PlannedPart | None
    """None if none was wanted or found, or if it is here."""
    draft_here: str
    """Name of a local model that is the draft; empty if there is none."""
    verdict: PairVerdict | None
    """On target and draft."""
    remark: str
    """Why this draft, or why none."""
    target_header: Path
    """The file that holds the target's header; likewise the draft's."""
    draft_header: Path | None = None

    @property
    def parts(self) -> tuple[PlannedPart, ...]:
        """Everything to fetch, the target first."""
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def missing_bytes(self) -> int:
        """Bytes to fetch."""
        return sum(part.missing_bytes for part in self.parts)


async def plan_pull(
    engine: Engine,
    hub: Hub,
    reference: str,
    draft: str,
    curated: Sequence[CuratedPair],
    local: Sequence[ModelEntry],
    on_step: OnStep,
    on_note: Callable[[str], None],
) -> PullPlan:
    """Return what to fetch. Only headers are fetched for it.

    Args:
        engine: compares vocabularies.
        hub: where from.
        reference: OWNER/NAME[:QUANT] of the target.
        draft: `auto`, `none`, or an OWNER/NAME[:QUANT].
        curated: pairs that are known.
        local: models that are here.
        on_step: progress.
        on_note: hears what kept part of the search from being done.

    Raises:
        UsageError: a repository or quantisation does not exist.
        HubError: the Hub could not be asked or refused.
    """
    target = await locate_on_hub(hub, reference, on_step)
    part = _part(target.label, *_download(target))
    if draft == "none":
        return PullPlan(part, None, "", None, "", target.path)
    if draft != "auto":
        other = await locate_on_hub(hub, draft, on_step)
        verdict = (await ask_verdicts(engine, target.path, [other.path]))[other.path]
        if isinstance(verdict, LocalspecError):
            verdict = PairVerdict("UNKNOWN", verdict.message.removesuffix("."))
        return PullPlan(part, _part(other.label, *_download(other)), "", verdict, "", target.path, other.path)
    candidates = await find_candidates(
        engine, target.as_target(), curated=curated, local=local, hub=hub, on_progress=on_step, on_note=on_note
    )
    best = next((one for one in candidates if one.is_runnable and one.method == "draft" and _is_pair(one)), None)
    if best is None:
        return PullPlan(part, None, "", None, _why_none(candidates), target.path)
    if best.download is None:
        return PullPlan(part, None, best.label, best.verdict, best.reason, target.path, best.path)
    # Its header was fetched to judge it, so that this asks the Hub for nothing more.
    chosen = await locate_offer(hub, *best.download, on_step)
    return PullPlan(part, _part(best.label, *best.download), "", best.verdict, best.reason, target.path, chosen.path)


async def fit_of(
    engine: Engine, plan: PullPlan, context: ContextSettings, draft_context: ContextSettings, reserve_bytes: int
) -> MemoryPlan:
    """Return whether what is to be fetched fits into this machine's memory, by its headers.

    Args:
        engine: measures it.
        plan: what is to be fetched.
        context: the target's, as a load would have it; likewise the draft's.
        reserve_bytes: kept free on each device.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    devices = await machine_devices(engine, reserve_bytes)
    measure = ProbeEngine(engine).measure(plan.target_header, plan.draft_header)
    wishes = wishes_of(context, None if plan.draft_header is None else draft_context)
    return await make_plan(devices, measure, wishes, with_offers=False)


def _is_pair(candidate: Candidate) -> bool:
    return candidate.verdict is not None and candidate.verdict.status in PAIRED


def _why_none(candidates: Sequence[Candidate]) -> str:
    refused = [one for one in candidates if one.refusal]
    text = "No draft was found for it; n-gram drafting needs none: localspec bench --method ngram."
    if refused:
        more = len(refused) - 1
        also = "" if not more else f", and {more} more" if more > 1 else ", and one more"
        text += f" Refused: {refused[0].label}, {refused[0].refusal.rstrip('.')}{also}."
    return text


def _download(model: LocatedModel) -> tuple[RepoListing, Offer]:
    assert model.listing is not None and model.offer is not None
    return model.listing, model.offer


def _part(label: str, listing: RepoListing, offer: Offer) -> PlannedPart:
    return PlannedPart(label, listing, offer, missing_bytes(listing, offer))


def missing_bytes(listing: RepoListing, offer: Offer, cache: Path | None = None) -> int:
    """Return how much of an offer is not in the cache yet; what broken-off downloads left counts as there."""
    from localspec.catalog.hub.cache_layout import blob_path, hub_cache, is_whole, snapshot_path
    from localspec.catalog.hub.partials import partial_path

    cache = hub_cache() if cache is None else cache
    missing = 0
    for file in offer.files:
        if is_whole(snapshot_path(cache, listing.repo, listing.commit, file.path), file.size_bytes):
            continue
        missing += file.size_bytes
        if file.sha256:
            blob = blob_path(cache, listing.repo, file.sha256)
            part = _size(partial_path(blob))
            missing -= file.size_bytes if is_whole(blob, file.size_bytes) else min(part, file.size_bytes)
    return missing


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
