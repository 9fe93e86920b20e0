"""What else could be given up, and what each such thing brings: measured, and offered only where it helps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from localspec.errors import LocalspecError
from localspec.planning.alternatives import smaller_draft
from localspec.planning.decision import Decision, fewer_layers, place
from localspec.planning.fitting import Fitting, MeasuresSpentError, at_context, padded, with_layers
from localspec.planning.footprint import Placement
from localspec.planning.gains import Basis, context_words, gain_of
from localspec.planning.search import most_layers, steady_context
from localspec.planning.values import DraftAlternative, TradeOffer, Wishes
from localspec.planning.wording import as_asked, offload_words, size_text

MAX_UNNEEDED = 4
"""Offers to a plan that fits as wished."""

_WIDE = ("f32", "f16", "bf16")
_SLOWER = "slower, since the rest runs on the processor"


@dataclass(frozen=True, slots=True)
class Change:
    """Something to give up."""

    code: str
    label: str
    wishes: Wishes
    price: str


Source = Callable[[Fitting, Basis], AsyncIterator[TradeOffer]]


async def make_offers(
    fitting: Fitting, wishes: Wishes, decision: Decision, alternatives: Sequence[DraftAlternative] = ()
) -> tuple[TradeOffer, ...]:
    """Return what helps, cheap things first; fewer where the limit on measures is reached.

    Args:
        fitting: measures, up to its limit.
        wishes: as the person has them.
        decision: about these wishes.
        alternatives: smaller files of the same draft model that could be fetched.
    """
    basis = Basis(wishes, decision)
    is_needed = decision.verdict != "FITS" or (not decision.bounds.asked and decision.n_ctx < decision.bounds.cap)

    async def smaller(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
        for offer in await smaller_draft(fitting, basis, alternatives):
            yield offer

    sources: tuple[Source, ...] = (_less_context, _changes, smaller, _without_draft)
    if not decision.placed.fits:
        sources = (_rescues,)
    elif is_needed:
        sources = (*sources, _experts, _draft_layers, _target_layers)
    offers: list[TradeOffer] = []
    for source in sources:
        try:
            async for offer in source(fitting, basis):
                offers.append(offer)
        except MeasuresSpentError:
            break
        except LocalspecError:
            # Such as a cache type that this model cannot have: then that is no offer.
            continue
    return tuple(offers if is_needed else offers[:MAX_UNNEEDED])


async def _less_context(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    decision, asked = basis.decision, basis.decision.bounds.asked
    if decision.n_ctx < asked and decision.verdict != "FITS_WITHOUT_DRAFT":
        where = f": {offload_words(decision.placed.trial)}" if fitting.has_gpu else ""
        wished = as_asked(basis.wishes.target.n_ctx, asked)
        n_ctx, about = await steady_context(fitting, decision.placed.wishes, decision.bounds.floor, decision.n_ctx)
        text = f"Context {about}{n_ctx} instead of {wished}{where}"
        yield TradeOffer("less_context", text, at_context(basis.wishes, n_ctx), n_ctx)


async def _changes(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    """Yield what smaller caches bring."""
    wishes, draft = basis.wishes, basis.wishes.draft
    changes: list[Change] = []
    if _is_wide(wishes.target):
        changes.append(Change("kv_q8_0", "KV q8_0", replace(wishes, target=_q8_0(wishes.target)), "rounds a little"))
    if draft is not None and _is_wide(draft):
        price = "hardly any price, since the target verifies every draft"
        changes.append(Change("draft_kv_q8_0", "KV q8_0 of the draft", replace(wishes, draft=_q8_0(draft)), price))
    if draft is not None:
        reached = basis.decision.max_n_ctx if basis.decision.is_whole else basis.decision.bounds.floor
        n_ctx = padded(max(1, min(wishes.min_ctx, reached // 2)))
        if n_ctx < (draft.n_ctx or reached):
            label, price = f"Context of the draft {n_ctx}", f"beyond {n_ctx} positions the drafter falls silent"
            shorter = replace(wishes, draft=replace(draft, n_ctx=n_ctx))
            changes.append(Change("draft_context", label, shorter, price))
    for change in changes:
        async for offer in _offer(fitting, basis, change):
            yield offer


async def _without_draft(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    if basis.wishes.draft is None:
        return
    alone = replace(basis.wishes, draft=None)
    price = "n-gram drafting costs nothing"
    if basis.decision.verdict == "FITS_WITHOUT_DRAFT":
        decision = basis.decision
        n_ctx, about = await steady_context(fitting, decision.placed.wishes, decision.bounds.floor, decision.n_ctx)
        text = f"No draft model: context {about}{n_ctx}; {price}"
        yield TradeOffer("without_draft", text, at_context(alone, n_ctx), n_ctx)
        return
    async for offer in _offer(fitting, basis, Change("without_draft", "No draft model", alone, price)):
        yield offer


async def _experts(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    target = basis.wishes.target
    num_experts = basis.decision.as_wished.footprint.target.num_experts
    if fitting.has_gpu and basis.decision.is_whole and num_experts and not target.experts_on_cpu:
        moved = replace(basis.wishes, target=replace(target, experts_on_cpu=True))
        async for offer in _offer(fitting, basis, Change("experts_on_cpu", "Experts in host memory", moved, "slower")):
            yield offer


async def _draft_layers(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    """Yield what a draft outside the GPU brings; no more of it is moved than is needed for the context."""
    wishes, draft = basis.wishes, basis.wishes.draft
    if not fitting.has_gpu or draft is None or draft.n_gpu_layers >= 0:
        return
    gain = await gain_of(fitting, basis, with_layers(wishes, "draft", 0))
    if gain is None:
        return
    found = gain.wishes
    if found.target.n_gpu_layers == wishes.target.n_gpu_layers:
        at_gain = at_context(wishes, gain.n_ctx)
        most = await most_layers(fitting, at_gain, "draft", await fitting.trial(at_gain))
        found = most if (await fitting.trial(most)).fits else found
    trial = await fitting.trial(found)
    on_gpu = found.draft.n_gpu_layers if found.draft is not None else 0
    label = f"{on_gpu} of {trial.num_layers('draft')} layers of the draft on the GPU"
    yield TradeOffer("draft_layers", f"{label}: {gain.words}; drafts take longer", found, gain.n_ctx)


async def _target_layers(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    """Yield the context that was asked for with fewer layers on the GPU, or layers in the place of experts."""
    decision, wishes = basis.decision, basis.wishes
    found = decision.placed.trial.target
    is_cut = decision.verdict == "FITS_WITH_LESS_CONTEXT"
    instead_of_experts = found.experts_on_cpu and not wishes.target.experts_on_cpu
    if not fitting.has_gpu or wishes.target.n_gpu_layers >= 0 or not (is_cut or instead_of_experts):
        return
    if decision.verdict == "FITS_WITHOUT_DRAFT":
        wishes = replace(wishes, draft=None)
    n_ctx = decision.bounds.asked if is_cut else decision.n_ctx
    at_goal = at_context(wishes, n_ctx)
    whole = await fitting.trial(at_goal)
    if whole.gpus_fit:
        return
    placed = await fewer_layers(fitting, at_goal, whole)
    if not fitting.holds(placed.trial.rows) or placed.wishes.target.n_gpu_layers < 1:
        return
    words = offload_words(placed.trial)
    gain = f": {context_words(basis, n_ctx)}; {_SLOWER}" if is_cut else ", experts and all: measure which is faster"
    yield TradeOffer("target_layers", f"{words[0].upper()}{words[1:]}{gain}", placed.wishes, n_ctx)


async def _rescues(fitting: Fitting, basis: Basis) -> AsyncIterator[TradeOffer]:
    """Yield what makes a plan possible where none is."""
    wishes = basis.wishes
    changes: list[Change] = []
    if fitting.has_gpu and wishes.target.n_gpu_layers >= 0:
        freed = with_layers(with_layers(wishes, "target", -1), "draft", -1)
        changes.append(Change("target_layers", "As many layers on the GPU as fit", freed, "the rest runs slower"))
    if _is_wide(wishes.target):
        rounded = replace(wishes, target=_q8_0(wishes.target), draft=wishes.draft and _q8_0(wishes.draft))
        changes.append(Change("kv_q8_0", "KV q8_0", rounded, "rounds a little"))
    for change in changes:
        for changed in (change.wishes, replace(change.wishes, draft=None)):
            placed = await place(fitting, changed, basis.decision.bounds)
            if not placed.fits:
                continue
            bounds = basis.decision.bounds
            n_ctx, about = await steady_context(fitting, placed.wishes, bounds.floor, placed.trial.n_ctx)
            label = f"{change.label}, no draft model" if wishes.draft and not changed.draft else change.label
            text = f"{label}: fits with context {about}{n_ctx}; {change.price}"
            yield TradeOffer(change.code, text, at_context(changed, n_ctx), n_ctx)
            break


async def _offer(fitting: Fitting, basis: Basis, change: Change) -> AsyncIterator[TradeOffer]:
    """Yield a change if it brings something."""
    try:
        gain = await gain_of(fitting, basis, change.wishes)
        price = f"{change.price}{await _side_effects(fitting, basis, change)}" if gain is not None else ""
    except LocalspecError:
        return
    if gain is not None:
        yield TradeOffer(change.code, f"{change.label}: {gain.words}; {price}", gain.wishes, gain.n_ctx)


async def _side_effects(fitting: Fitting, basis: Basis, change: Change) -> str:
    """Return what else a smaller cache does: scratch for rounding back, and flash attention where that was off."""
    if not change.code.endswith("kv_q8_0"):
        return ""
    words = ""
    before, after = await fitting.trial(basis.wishes, basis.start), await fitting.trial(change.wishes, basis.start)
    more = sum(row.compute_bytes for row in after.rows) - sum(row.compute_bytes for row in before.rows)
    if more > 0:
        words += f"; takes {size_text(more)} more to compute"
    models = zip((before.target, before.draft), (after.target, after.draft), strict=True)
    if any(old is not None and new is not None and old.flash_attn != new.flash_attn for old, new in models):
        words += "; needs flash attention, which it switches on"
    return words


def _is_wide(placement: Placement) -> bool:
    return placement.type_k in _WIDE or placement.type_v in _WIDE


def _q8_0(placement: Placement) -> Placement:
    """Return a placement with a cache of half the size; one that is smaller already stays."""
    return replace(
        placement,
        type_k="q8_0" if placement.type_k in _WIDE else placement.type_k,
        type_v="q8_0" if placement.type_v in _WIDE else placement.type_v,
        # llama.cpp has no quantised V without it.
        flash_attn=True,
    )
