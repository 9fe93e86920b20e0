"""A plan in words."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.planning.decision import Decision
from localspec.planning.devices import HOST, PlanDevice, check, used_bytes
from localspec.planning.draft_placement import slow_draft_note
from localspec.planning.fitting import Trial, padded
from localspec.planning.notes import context_note
from localspec.planning.values import PlanRow
from localspec.units import memory_scale


def sentence(decision: Decision, devices: Sequence[PlanDevice]) -> str:
    """Return the verdict with its figures."""
    trial, n_ctx = decision.placed.trial, decision.n_ctx
    if not decision.placed.fits:
        return _does_not_fit(decision, devices)
    used = memory_words(trial.rows, devices)
    reach = f"up to {decision.max_n_ctx} positions"
    shorter = n_ctx < decision.bounds.asked
    context = f"{n_ctx} positions instead of {as_asked(decision.as_wished.target.n_ctx, decision.as_wished.n_ctx)}"
    has_gpu = any(device.kind == "gpu" for device in devices)
    match decision.verdict:
        case "FITS_WITH_LESS_CONTEXT":
            return f"Fits with less context, {context}: {used}."
        case "FITS_WITH_PARTIAL_OFFLOAD":
            parts = offload_words(trial) + (f", {context}" if shorter else "")
            return f"Fits with a part in host memory ({parts}): {used}; {reach}."
        case "FITS_WITHOUT_DRAFT":
            given_up = [offload_words(trial)] if has_gpu and is_partial(trial) else []
            parts = ", ".join(given_up + ([context] if shorter else []))
            return f"Fits only without the draft{f' ({parts})' if parts else ''}: {used}; {reach}."
        case _:
            return f"Fits: {used}; {reach}."


def memory_words(rows: Sequence[PlanRow], devices: Sequence[PlanDevice]) -> str:
    """Return what rows take of what each device may give."""
    used = used_bytes(rows, devices)
    return ", ".join(
        f"{share_words(used[device.name], device.budget_bytes)} {_place(device.name, devices)}" for device in devices
    )


def share_words(used: int, budget: int) -> str:
    """Return what is taken of what there is, such as `10.9 of 11.0 GiB`."""
    (giga, giga_name), (mega, mega_name), _ = memory_scale()
    if budget >= giga // 10 and used >= giga // 20:
        return f"{used / giga:.1f} of {budget / giga:.1f} {giga_name}"
    return f"{-(-used // mega)} {mega_name} of {size_text(budget)}"


def device_title(device: PlanDevice, devices: Sequence[PlanDevice]) -> str:
    """Return what a person calls a device: a described one by its own name, a real one by llama.cpp's too."""
    if not device.is_hypothetical:
        known = device.description in ("", device.name)
        return device.name if known else f"{device.description} ({device.name})"
    alike = [other.name for other in devices if other.description == device.description]
    return device.description if len(alike) == 1 else f"{device.description} no. {alike.index(device.name) + 1}"


def as_asked(asked: int, n_ctx: int) -> int:
    """Return the positions of a context: as asked for, where llama.cpp only pads them."""
    return asked if padded(asked) == n_ctx else n_ctx


def excess_words(trial: Trial, devices: Sequence[PlanDevice]) -> str:
    """Return how much is too much where, such as `1.2 GiB too much on RTX 4070`; empty if nothing is."""
    return " and ".join(
        f"{size_text(overrun.over_bytes)} too much {_place(overrun.device, devices)}"
        for overrun in check(trial.rows, devices)
    )


def offload_words(trial: Trial) -> str:
    """Return what lies on GPUs, such as `30 of 37 layers of the target and the whole draft on the GPU`."""
    target = _layers(trial.target.n_gpu_layers, trial.num_layers("target"), "target")
    if trial.keeps_experts:
        target += " but its experts"
    if trial.draft is None:
        return f"{target} on the GPU"
    draft = _layers(trial.draft.n_gpu_layers, trial.num_layers("draft"), "draft")
    return f"{target} and {draft} on the GPU"


def is_partial(trial: Trial) -> bool:
    """Say whether layers or experts lie in host memory that could be on a GPU."""
    layers = [(trial.target.n_gpu_layers, trial.num_layers("target"))]
    if trial.draft is not None:
        layers.append((trial.draft.n_gpu_layers, trial.num_layers("draft")))
    return trial.keeps_experts or any(0 <= on_gpu < num_layers for on_gpu, num_layers in layers)


def plan_notes(trial: Trial) -> tuple[str, ...]:
    """Return what a person should know of the figures and of the contexts."""
    found: list[str] = []
    if trial.target.experts_on_cpu and not trial.keeps_experts:
        found.append(
            "The target is no mixture and has no experts, so that keeping them in host memory changes nothing."
        )
    models = (("target", trial.target, trial.footprint.target), ("draft", trial.draft, trial.footprint.draft))
    for role, placement, model in models:
        if model is None:
            continue
        n_ctx = as_asked(0 if placement is None else placement.n_ctx, model.n_ctx)
        over = context_note(role, n_ctx, model.n_ctx_train)
        found.extend(text for text in (over.text if over is not None else "", model.note) if text)
    if slow := slow_draft_note(trial):
        found.append(slow)
    return tuple(dict.fromkeys(found))


def size_text(size_bytes: int) -> str:
    """Return a size in GiB or GB, a small one in MiB or MB, rounded up: what is missing is at least that."""
    (giga, giga_name), (mega, mega_name), _ = memory_scale()
    if size_bytes >= giga // 10:
        return f"{-(-size_bytes * 10 // giga) / 10:.1f} {giga_name}"
    return f"{-(-size_bytes // mega)} {mega_name}"


def _does_not_fit(decision: Decision, devices: Sequence[PlanDevice]) -> str:
    as_wished, least = decision.as_wished, decision.placed.trial
    asked = as_asked(as_wished.target.n_ctx, as_wished.n_ctx)
    text = f"Does not fit: with {asked} positions it is {excess_words(as_wished, devices)}"
    given_up = ["without the draft"] if least.draft is None and as_wished.draft is not None else []
    if least.n_ctx < as_wished.n_ctx:
        given_up.append(f"with {as_asked(least.target.n_ctx, least.n_ctx)} positions")
    if decision.placed.short_bytes:
        even = f"even {' and '.join(given_up)} " if given_up else ""
        return f"{text}; {even}all memories together are {size_text(decision.placed.short_bytes)} too small."
    if is_partial(least) and not is_partial(as_wished):
        given_up.append("with layers in host memory")
    return f"{text}; even {' and '.join(given_up)} it is {excess_words(least, devices)}." if given_up else f"{text}."


def _place(name: str, devices: Sequence[PlanDevice]) -> str:
    is_shared = any(device.shares_host_memory for device in devices)
    if name == HOST:
        return "in all of the memory that they share" if is_shared else "in host memory"
    device = next((device for device in devices if device.name == name), None)
    return f"on {name if device is None else device_title(device, devices)}"


def _layers(on_gpu: int, num_layers: int, role: str) -> str:
    if on_gpu < 0 or on_gpu >= num_layers:
        return f"the whole {role}"
    return f"{on_gpu} of {num_layers} layers of the {role}"
