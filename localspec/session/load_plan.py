"""A memory plan for models that are about to be loaded: refuse what would not fit, and place the rest as planned.

A plan that cannot be made never stands in the way of loading.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError, ModelLoadError
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.planning.fitting import Fitting
from localspec.planning.plan import MemoryPlan, TradeOffer, Wishes, make_plan
from localspec.planning.wording import excess_words
from localspec.session.fit import changes, wishes_of
from localspec.session.footprints import ProbeEngine, placement_words
from localspec.session.journal import write_note
from localspec.session.memory_devices import machine_devices
from localspec.session.released_memory import with_released

if TYPE_CHECKING:
    from localspec.engine.interface import Engine
    from localspec.engine.values import ContextSettings
    from localspec.planning.footprint import PairFootprint, Placement

MAX_OFFERS = 3
"""Offers that a refusal names."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """How to load, and the plan behind it."""

    context: ContextSettings
    draft_context: ContextSettings
    plan: MemoryPlan | None
    """None if it could not be made."""
    notes: tuple[str, ...] = ()
    """What is not as it was asked for."""


async def plan_load(
    engine: Engine,
    target: Path,
    draft: Path | None,
    context: ContextSettings,
    draft_context: ContextSettings,
    *,
    reserve_bytes: int = DEFAULT_RESERVE_BYTES,
    is_forced: bool = False,
    loaded: PairFootprint | None = None,
    log: Callable[[str], None] = write_note,
) -> LoadPlan:
    """Return how to load models so that they fit in this machine's memory.

    Args:
        engine: the one that is to load them; it measures them first.
        target: a file; likewise the draft.
        draft: None for none.
        context: the target's. n_ctx 0 and n_gpu_layers -1 leave the choice to the plan; all else is kept as it is.
        draft_context: the draft's, likewise.
        reserve_bytes: kept free on each device.
        is_forced: load as asked, whatever the plan says.
        loaded: what is loaded now and will be gone: its memory counts as free.
        log: hears why there is no plan.

    Raises:
        ModelLoadError: they would not fit; says what would.
    """
    as_asked = LoadPlan(context, draft_context, None)
    probe = ProbeEngine(engine)
    own = None if draft is None else draft_context
    # Nobody's context is cut unasked, so that one of a stated length either fits as it is or is refused.
    wishes = wishes_of(context, own, min_ctx=context.n_ctx or None)
    try:
        devices = with_released(await machine_devices(engine, reserve_bytes), loaded)
        measure = probe.measure(target, draft)
        plan = await make_plan(devices, measure, wishes, with_offers=False)
        if is_forced:
            return replace(as_asked, plan=plan)
        if _keeps(wishes, plan):
            return _applied(as_asked, wishes, plan)
        # With less context among its offers, which the first plan was not allowed to think of.
        wishes = wishes_of(context, own)
        plan = await make_plan(devices, measure, wishes)
        refusal = await _refusal(Fitting(devices, measure), wishes, plan)
    except Exception as error:
        # A plan is a service: whatever is wrong with it, models that would load must load.
        reason = error.message if isinstance(error, LocalspecError) else repr(error)
        log(f"No memory plan for {target.name}: {reason}")
        return as_asked
    raise ModelLoadError(refusal, _hint(plan.offers, wishes))


def _keeps(wishes: Wishes, plan: MemoryPlan) -> bool:
    """Whether a plan gives everything that was stated, and only what was left open is the plan's own choice."""
    if plan.verdict in ("DOES_NOT_FIT", "FITS_WITHOUT_DRAFT") or (wishes.draft is None) != (plan.draft is None):
        return False
    if plan.draft is not None and wishes.draft is not None and not _is_kept(wishes.draft, plan.draft):
        return False
    return _is_kept(wishes.target, plan.target)


def _is_kept(asked: Placement, given: Placement) -> bool:
    same_length = asked.n_ctx == 0 or given.n_ctx >= asked.n_ctx
    same_layers = asked.n_gpu_layers == -1 or given.n_gpu_layers == asked.n_gpu_layers
    same_types = (asked.type_k, asked.type_v) == (given.type_k, given.type_v)
    return same_length and same_layers and same_types


def _applied(as_asked: LoadPlan, wishes: Wishes, plan: MemoryPlan) -> LoadPlan:
    context = _placed(as_asked.context, plan.target, plan.n_ctx)
    draft_context = as_asked.draft_context
    if plan.draft is not None:
        draft_context = _placed(draft_context, plan.draft, context.n_ctx)
    notes: list[str] = []
    if plan.verdict != "FITS":
        has_gpu = any(device.kind == "gpu" for device in plan.devices)
        notes.append(f"memory: {plan.sentence}")
        words = placement_words(replace(plan.target, n_ctx=context.n_ctx), has_gpu)
        notes.append(f"memory: the target is loaded with {words}.")
        if plan.draft is not None:
            words = placement_words(replace(plan.draft, n_ctx=draft_context.n_ctx), has_gpu)
            notes.append(f"memory: the draft is loaded with {words}.")
    return LoadPlan(context, draft_context, plan, tuple(notes))


def _placed(settings: ContextSettings, placement: Placement, n_ctx: int) -> ContextSettings:
    """Return settings with what the plan decides; a length that was stated stays as it is, llama.cpp pads it."""
    return replace(
        settings,
        n_ctx=settings.n_ctx or placement.n_ctx or n_ctx,
        n_gpu_layers=placement.n_gpu_layers,
        experts_on_cpu=placement.experts_on_cpu,
    )


async def _refusal(fitting: Fitting, wishes: Wishes, plan: MemoryPlan) -> str:
    """Return what is too much, and where, of what was asked for.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    asked = wishes.target.n_ctx
    trial = await fitting.trial(wishes, asked or min(wishes.min_ctx, plan.n_ctx or wishes.min_ctx))
    parts = [f"context {asked or 'as large as fits'}"]
    if wishes.target.n_gpu_layers >= 0 and fitting.has_gpu:
        parts.append(f"{wishes.target.n_gpu_layers} layers on the GPU")
    if wishes.draft is not None:
        parts.append("with the draft")
    excess = excess_words(trial, fitting.devices)
    if not excess:
        return plan.sentence
    least = "" if asked else f"with {trial.n_ctx} positions "
    return f"Does not fit as asked ({', '.join(parts)}): {least}it is {excess}."


def _hint(offers: tuple[TradeOffer, ...], wishes: Wishes) -> str:
    lines = [f"{offer.text.rstrip('.')} ({_options(wishes, offer)})." for offer in offers[:MAX_OFFERS]]
    return "\n".join((*lines, "To load all the same: --force."))


def _options(wishes: Wishes, offer: TradeOffer) -> str:
    """Return the options of `bench` and `chat` that take an offer."""
    words: list[str] = []
    for name, value in changes(wishes, offer.wishes).items():
        if value is None:
            words.append(f"without {name}")
        elif name == "--kv":
            key, _, values = value.partition("/")
            words += ["--type-k", key, "--type-v", values or key]
        else:
            words.append(f"{name} {value}".rstrip())
    return " ".join(words) or "as it is"
