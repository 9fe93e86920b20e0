"""What a person turns on the fit screen: frozen values, and what each turn makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, get_args

from localspec.engine.values import MAX_CTX, ContextSettings
from localspec.errors import UsageError
from localspec.planning.devices import GIB, HypotheticalDevice, parse_device
from localspec.planning.footprint import ModelRole, Placement
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.plan import MemoryPlan, Wishes
from localspec.planning.wording import as_asked
from localspec.session.fit import placement_of, wishes_of
from localspec.settings import KvType

if TYPE_CHECKING:
    from localspec.tui.state import ChosenModel, Workbench

KV_TYPES: tuple[KvType, ...] = get_args(KvType)
FINE_STEP, COARSE_STEP, COARSE_FROM = CONTEXT_PADDING, 1024, 8192
RESERVE_STEP_BYTES = GIB // 4
MAX_RESERVE_BYTES = 1024 * GIB
MOST = "max"
NO_DRAFT = "none"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine to plan for."""

    title: str = "this machine"
    """As a person described it: foreign text."""
    devices: tuple[HypotheticalDevice, ...] = ()
    """Empty for this one."""


@dataclass(frozen=True, slots=True)
class FitKnobs:
    """Where every knob stands."""

    target: ChosenModel
    draft: ChosenModel | None
    reserve_bytes: int
    machine: Machine = field(default_factory=Machine)
    placement: Placement = field(default_factory=lambda: Placement(4096))
    """The target's; n_ctx 0 asks for the most that fits."""
    draft_placement: Placement = field(default_factory=lambda: Placement(0))
    """The draft's, kept while there is none; n_ctx 0 follows the target's."""

    @property
    def wishes(self) -> Wishes:
        """What is asked of the plan."""
        return Wishes(self.placement, None if self.draft is None else self.draft_placement)

    def of(self, role: ModelRole) -> Placement:
        """Return one model's placement."""
        return self.placement if role == "target" else self.draft_placement

    def placed(self, role: ModelRole, placement: Placement) -> FitKnobs:
        """Return the knobs with another placement of one model."""
        if role == "target":
            return replace(self, placement=placement)
        return replace(self, draft_placement=placement)

    def with_context(self, n_ctx: int) -> FitKnobs:
        """Return the knobs with so many positions of the target, 0 for the most that fits."""
        return replace(self, placement=replace(self.placement, n_ctx=min(max(0, n_ctx), MAX_CTX)))

    def with_kv(self, role: ModelRole, kv_type: KvType) -> FitKnobs:
        """Return the knobs with a type for one model's cached keys and values."""
        old = self.of(role)
        # llama.cpp has no quantised V without flash attention.
        flash = old.flash_attn or kv_type not in ("f32", "f16", "bf16")
        return self.placed(role, replace(old, type_k=kv_type, type_v=kv_type, flash_attn=flash))

    def with_layers(self, role: ModelRole, n_gpu_layers: int) -> FitKnobs:
        """Return the knobs with so many layers of a model on GPUs, -1 for as many as fit."""
        return self.placed(role, replace(self.of(role), n_gpu_layers=max(-1, n_gpu_layers)))

    def with_reserve(self, reserve_bytes: int) -> FitKnobs:
        """Return the knobs with so much to keep free on each device."""
        return replace(self, reserve_bytes=min(max(0, reserve_bytes), MAX_RESERVE_BYTES))

    def with_wishes(self, wishes: Wishes) -> FitKnobs:
        """Return the knobs where the wishes of an offer put them; a draft given up keeps its settings."""
        draft = self.draft if wishes.draft is not None else None
        return replace(self, placement=wishes.target, draft=draft, draft_placement=wishes.draft or self.draft_placement)


def knobs_of(bench: Workbench, reserve_bytes: int, machine: Machine | None = None) -> FitKnobs | None:
    """Return the knobs as the workbench has them; None while it has no target.

    Args:
        bench: models and contexts.
        reserve_bytes: kept free on each device.
        machine: None for this one.
    """
    if bench.target is None:
        return None
    wishes = wishes_of(bench.context, bench.draft_context)
    return FitKnobs(
        target=bench.target,
        draft=bench.draft,
        reserve_bytes=reserve_bytes,
        machine=machine or Machine(),
        placement=placement_of(bench.context),
        draft_placement=wishes.draft or Placement(0),
    )


def stepped_context(n_ctx: int, steps: int) -> int:
    """Return the context some steps further: 256 up to 8192, 1024 above; on multiples of the step."""
    for _ in range(abs(steps)):
        step = COARSE_STEP if n_ctx > COARSE_FROM or (n_ctx == COARSE_FROM and steps > 0) else FINE_STEP
        n_ctx = (n_ctx // step + 1) * step if steps > 0 else (-(-n_ctx // step) - 1) * step
    return min(max(CONTEXT_PADDING, n_ctx), MAX_CTX)


def stepped_layers(n_gpu_layers: int, steps: int, num_layers: int) -> int:
    """Return the layers some steps further; above all of them comes -1, as many as fit."""
    place = num_layers + 1 if n_gpu_layers < 0 else min(n_gpu_layers, num_layers)
    place = min(max(0, place + steps), num_layers + 1)
    return -1 if place > num_layers else place


def stepped_kv(placement: Placement, steps: int) -> KvType:
    """Return the type some steps towards the smaller ones."""
    place = KV_TYPES.index(placement.type_k) + steps
    return KV_TYPES[min(max(0, place), len(KV_TYPES) - 1)]


def read_positions(text: str) -> int:
    """Return positions, given as a number, as in `32k`, which is 32 * 1024, or as `max`, which is 0.

    Raises:
        UsageError: it is none of these.
    """
    word = text.strip().lower()
    if word == MOST:
        return 0
    digits = word.removesuffix("k")
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
        raise UsageError("That is no number of positions.", f"Write a number such as 8192 or 32k, or {MOST}.")
    positions = int(digits) * (1024 if word.endswith("k") else 1)
    if not 1 <= positions <= MAX_CTX:
        raise UsageError("A context has 1 to 16777216 positions.", f"Write {MOST} for as many as fit.")
    return positions


def read_layers(text: str) -> int:
    """Return layers, given as a number or as `auto`, which is -1.

    Raises:
        UsageError: it is neither.
    """
    word = text.strip().lower()
    if word in ("auto", "-1"):
        return -1
    if not (word.isascii() and word.isdecimal()) or len(word) > 5:
        raise UsageError("That is no number of layers.", "Write a number, 0 for none, or auto for as many as fit.")
    return int(word)


def read_machine(text: str) -> Machine:
    """Return the machine that a person describes, its devices parted by semicolons.

    Raises:
        UsageError: it is not of the form that `parse_device` takes.
    """
    devices = tuple(parse_device(part) for part in text.split(";") if part.strip()) if text.strip() else ()
    if not devices:
        raise UsageError("No device is described.", "Write one such as RTX 4070:12GiB, or M3 Pro:36GiB,unified.")
    return Machine(" + ".join(device.name for device in devices), devices)


PRESETS: tuple[Machine, ...] = (
    Machine(),
    *(
        read_machine(text)
        for text in (
            "8 GB card:8GiB",
            "12 GB card:12GiB",
            "16 GB card:16GiB",
            "24 GB card:24GiB",
            "Mac with 16 GB:16GiB,unified",
            "Mac with 36 GB:36GiB,unified",
            "Mac with 64 GB:64GiB,unified",
        )
    ),
)
"""Machines to choose from; the first is this one."""


def applied(bench: Workbench, knobs: FitKnobs, plan: MemoryPlan) -> Workbench:
    """Return the workbench as a plan that fits would have it.

    Layers that the plan could place as wished stay as wished, so that a load may place them anew. For a described
    machine layers are as on the knobs, since this one has other devices.
    """
    is_here = not knobs.machine.devices
    n_ctx = as_asked(knobs.placement.n_ctx, plan.n_ctx)
    target = plan.target if is_here else knobs.placement
    context = _settings(bench.context, target, n_ctx)
    draft_context = bench.draft_context
    if plan.draft is not None:
        own = knobs.draft_placement
        placed = plan.draft if is_here else own
        draft_context = _settings(draft_context, placed, own.n_ctx or n_ctx)
    return replace(
        bench,
        target=knobs.target,
        draft=None if plan.draft is None else knobs.draft,
        context=context,
        draft_context=draft_context,
    )


def _settings(settings: ContextSettings, placement: Placement, n_ctx: int) -> ContextSettings:
    return replace(
        settings,
        n_ctx=n_ctx,
        n_gpu_layers=placement.n_gpu_layers,
        type_k=placement.type_k,
        type_v=placement.type_v,
        flash_attn=placement.flash_attn,
        experts_on_cpu=placement.experts_on_cpu,
    )
