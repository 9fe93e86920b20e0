"""Values of the memory plan: what is wished for, what is possible, what could be given up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from localspec.planning.devices import PlanDevice
from localspec.planning.footprint import ModelRole, PairFootprint, Placement

Verdict = Literal["FITS", "FITS_WITH_LESS_CONTEXT", "FITS_WITH_PARTIAL_OFFLOAD", "FITS_WITHOUT_DRAFT", "DOES_NOT_FIT"]

Measure = Callable[[Placement, Placement | None], Awaitable[PairFootprint]]
"""Asks llama.cpp what target and draft take with these placements; None leaves the draft out."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person wants; the plan says what of it is possible."""

    target: Placement
    """n_ctx 0 asks for the most that fits; n_gpu_layers -1 for as many layers on GPUs as fit."""
    draft: Placement | None
    """None: no draft model. n_ctx 0 follows the target's."""
    min_ctx: int = 4096
    """A context below this is no offer, unless less was asked for."""


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What one model takes on one device."""

    device: str
    model: ModelRole
    weights_bytes: int
    kv_bytes: int
    recurrent_bytes: int
    compute_bytes: int
    output_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes + self.output_bytes


@dataclass(frozen=True, slots=True)
class TradeOffer:
    """One thing to give up, and what it brings."""

    code: str
    """Such as `less_context`, `kv_q8_0`, `draft_kv_q8_0`, `draft_context`, `draft_layers`, `target_layers`,
    `experts_on_cpu`, `without_draft`, `smaller_draft`."""
    text: str
    """In the user's terms, with figures: "KV q8_0: context 22016 instead of 11776; rounds a little"."""
    wishes: Wishes
    """What to ask for to take it."""
    n_ctx: int
    """The context that then fits."""
    is_estimate: bool = False
    """Not measured: another file is needed for that, and the wishes are for it."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Where everything goes, whether that fits, and what else could be done."""

    verdict: Verdict
    sentence: str
    devices: tuple[PlanDevice, ...]
    rows: tuple[PlanRow, ...]
    """Of the plan as it would be carried out; of what was wished for where nothing fits."""
    n_ctx: int
    """Of the plan."""
    max_n_ctx: int
    """The most that fits with this placement, exact to 256; 0 if nothing does."""
    target: Placement
    draft: Placement | None
    """As to be loaded."""
    offers: tuple[TradeOffer, ...]
    notes: tuple[str, ...] = ()
    slow_draft: str = ""
    """That of the notes which says that the draft would run on a slower device than the target; empty if none does."""

    @property
    def fits(self) -> bool:
        """Whether it can be carried out."""
        return self.verdict != "DOES_NOT_FIT"


@dataclass(frozen=True, slots=True)
class DraftAlternative:
    """A smaller file of the same draft model, for an offer that is estimated and not measured."""

    quantisation: str
    """As files name it, such as `Q4_K_M`."""
    weights_bytes: int
    """Of its tensors; the file's size is near enough."""
