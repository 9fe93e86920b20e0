"""Does it fit? From models and settings to a memory plan, and from a plan to the document that programs read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from localspec.planning.footprint import Placement
from localspec.planning.plan import DraftAlternative, MemoryPlan, Wishes, make_plan
from localspec.planning.wording import as_asked

if TYPE_CHECKING:
    from localspec.engine.values import ContextSettings
    from localspec.planning.devices import PlanDevice
    from localspec.session.footprints import ProbeEngine
    from localspec.session.located import LocatedModel

Changes = dict[str, str | None]
"""Options of `localspec fit` that differ, with their values; None: the option is to be left out, "": it is a flag."""


@dataclass(frozen=True, slots=True)
class FitRequest:
    """What is to fit, and where. Of the models only headers are needed."""

    target: LocatedModel
    draft: LocatedModel | None
    wishes: Wishes
    devices: tuple[PlanDevice, ...]
    smaller_drafts: tuple[DraftAlternative, ...] = ()
    """Other files of the same draft that could be taken."""


async def fit(probe: ProbeEngine, request: FitRequest, *, with_offers: bool = True) -> MemoryPlan:
    """Return the plan for what is asked.

    Args:
        probe: measures on the devices of the request.
        request: the models, the wishes and the devices.
        with_offers: measure what else could be done, which takes several times as long.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    draft = request.draft
    measure = probe.measure(request.target.path, None if draft is None else draft.path)
    return await make_plan(
        request.devices, measure, request.wishes, alternatives=request.smaller_drafts, with_offers=with_offers
    )


def placement_of(settings: ContextSettings) -> Placement:
    """Return what of a context's settings decides about memory."""
    return Placement(
        n_ctx=settings.n_ctx,
        n_gpu_layers=settings.n_gpu_layers,
        type_k=settings.type_k,
        type_v=settings.type_v,
        flash_attn=settings.flash_attn,
        n_batch=settings.n_batch,
        n_ubatch=settings.n_ubatch,
        experts_on_cpu=settings.experts_on_cpu,
    )


def wishes_of(context: ContextSettings, draft_context: ContextSettings | None, min_ctx: int | None = None) -> Wishes:
    """Return the wishes that settings make up.

    Args:
        context: the target's; n_ctx 0 asks for the most that fits.
        draft_context: the draft's, None for no draft model; as many positions as the target's, or 0, follow the target.
        min_ctx: the least context that is of use; None for what is usual.
    """
    draft = None
    if draft_context is not None:
        own = 0 if draft_context.n_ctx == context.n_ctx else draft_context.n_ctx
        placed = placement_of(draft_context)
        draft = Placement(**{**asdict(placed), "n_ctx": own})
    wishes = Wishes(placement_of(context), draft)
    return wishes if min_ctx is None else Wishes(wishes.target, draft, min_ctx)


def changes(before: Wishes, after: Wishes) -> Changes:
    """Return the options of `localspec fit` that turn one set of wishes into another.

    Where an option of the target's changes that a draft without its own would follow, the draft's is stated too.
    """
    found: Changes = {}
    one, other = before.target, after.target
    if one.n_ctx != other.n_ctx:
        found["--n-ctx"] = "max" if other.n_ctx == 0 else str(other.n_ctx)
    if (one.type_k, one.type_v) != (other.type_k, other.type_v):
        found["--kv"] = _types(other)
    if one.n_gpu_layers != other.n_gpu_layers:
        found["--n-gpu-layers"] = str(other.n_gpu_layers)
    if one.experts_on_cpu != other.experts_on_cpu:
        found["--experts-on-cpu"] = "" if other.experts_on_cpu else None
    if one.flash_attn != other.flash_attn:
        found["--flash-attn"] = "" if other.flash_attn else None
        found["--no-flash-attn"] = None if other.flash_attn else ""
    if before.draft is None or after.draft is None:
        if before.draft is not None:
            found["--draft"] = None
        return found
    one, other = before.draft, after.draft
    if one.n_ctx != other.n_ctx:
        found["--draft-n-ctx"] = str(other.n_ctx)
    if (one.type_k, one.type_v) != (other.type_k, other.type_v) or "--kv" in found:
        found["--draft-kv"] = _types(other)
    if one.n_gpu_layers != other.n_gpu_layers or "--n-gpu-layers" in found:
        found["--draft-n-gpu-layers"] = str(other.n_gpu_layers)
    return found


def plan_record(plan: MemoryPlan, offer_commands: Sequence[str] = ()) -> dict[str, Any]:
    """Return a plan as JSON has it. Keys that are here stay; others may come.

    Args:
        plan: the plan.
        offer_commands: the command that takes each offer, in their order; none where there are no commands.
    """
    commands = [*offer_commands, *[None] * (len(plan.offers) - len(offer_commands))]
    return {
        "verdict": plan.verdict,
        "sentence": plan.sentence,
        "n_ctx": as_asked(plan.target.n_ctx, plan.n_ctx),
        "max_n_ctx": plan.max_n_ctx,
        "n_gpu_layers": {
            "target": plan.target.n_gpu_layers,
            "draft": None if plan.draft is None else plan.draft.n_gpu_layers,
        },
        "devices": [device_record(device) for device in plan.devices],
        "rows": [asdict(row) for row in plan.rows],
        "placement": {
            "target": asdict(plan.target),
            "draft": None if plan.draft is None else asdict(plan.draft),
        },
        "offers": [
            {"code": offer.code, "text": offer.text, "n_ctx": offer.n_ctx, "command": command}
            for offer, command in zip(plan.offers, commands, strict=True)
        ],
        "notes": list(plan.notes),
    }


def device_record(device: PlanDevice) -> dict[str, Any]:
    """Return a device as JSON has it."""
    return {
        "name": device.name,
        "description": device.description,
        "kind": device.kind,
        "total_bytes": device.total_bytes,
        "free_bytes": device.free_bytes,
        "reserve_bytes": device.reserve_bytes,
        "budget_bytes": device.budget_bytes,
        "shares_host_memory": device.shares_host_memory,
        "is_hypothetical": device.is_hypothetical,
        "note": device.note or None,
    }


def _types(placement: Placement) -> str:
    same = placement.type_k == placement.type_v
    return placement.type_k if same else f"{placement.type_k}/{placement.type_v}"
