"""Measured placements of a target and its draft, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from localspec.planning.devices import HOST, DeviceBytes, PlanDevice, check
from localspec.planning.footprint import Footprint, MemoryRow, ModelRole, PairFootprint, Placement
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.values import Measure, PlanRow, Wishes

_LEAST_SWAY_BYTES = 256 << 20
_SWAY_SHARE = 32
"""By a thirty-second of all memory, 1 GiB of 32, what is free changes within seconds on a machine that is in use."""


class MeasuresSpentError(Exception):
    """As many placements were measured as this plan may."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One pair of placements, with what it takes."""

    target: Placement
    draft: Placement | None
    footprint: PairFootprint
    rows: tuple[PlanRow, ...]
    fits: bool
    gpus_fit: bool
    """Whether at least no GPU is over its budget: what layers in host memory can help with."""

    @property
    def n_ctx(self) -> int:
        """Positions of the target's context, as llama.cpp pads them."""
        return self.footprint.target.n_ctx

    @property
    def keeps_experts(self) -> bool:
        """Whether the target has experts, and they are to stay in host memory."""
        return self.target.experts_on_cpu and self.footprint.target.num_experts > 0

    def num_layers(self, role: ModelRole) -> int:
        """Return how many layers a model has, its output layer counted; 0 without that model."""
        footprint = self.footprint.target if role == "target" else self.footprint.draft
        return 0 if footprint is None else footprint.num_layers


class Fitting:
    """Measures placements, each once.

    Args:
        devices: with the host's memory among them.
        measure: asks llama.cpp.
    """

    def __init__(self, devices: Sequence[PlanDevice], measure: Measure) -> None:
        self.devices = tuple(devices)
        self.has_gpu = any(device.kind == "gpu" for device in devices)
        self.limit: int | None = None
        """Most placements to measure; None for any number."""
        self.budget_bytes = sum(device.budget_bytes for device in devices if not device.shares_host_memory)
        """Of all memories together; what a GPU shares with the host is the host's."""
        self._steady = tuple(map(_less_by_sway, devices))
        self._gpus = {device.name for device in devices if device.kind == "gpu"}
        self._measure = measure
        self._trials: dict[tuple[Placement, Placement | None], Trial] = {}

    @property
    def num_measures(self) -> int:
        """How many placements were measured."""
        return len(self._trials)

    async def trial(self, wishes: Wishes, n_ctx: int | None = None) -> Trial:
        """Return what the wished placements take.

        Args:
            wishes: a draft's n_ctx of 0 follows the target's.
            n_ctx: the target's context, where it is another than wished for.

        Raises:
            LocalspecError: llama.cpp could not say.
            MeasuresSpentError: the limit is reached.
        """
        target, draft = placements(wishes if n_ctx is None else at_context(wishes, n_ctx))
        known = self._trials.get((target, draft))
        if known is not None:
            return known
        if self.limit is not None and self.num_measures >= self.limit:
            raise MeasuresSpentError
        footprint = await self._measure(target, draft)
        rows = plan_rows(footprint, self.devices)
        trial = Trial(target, draft, footprint, rows, self.fits(rows), self.gpus_fit(rows))
        self._trials[target, draft] = trial
        return trial

    def fits(self, rows: Iterable[DeviceBytes]) -> bool:
        """Say whether no device is over its budget."""
        return not check(rows, self.devices)

    def holds(self, rows: Iterable[DeviceBytes]) -> bool:
        """Say whether no device is over its budget, and none will be in a while: host memory sways by itself."""
        return not check(rows, self._steady)

    def gpus_fit(self, rows: Iterable[DeviceBytes]) -> bool:
        """Say whether no GPU is over its budget."""
        return not any(overrun.device in self._gpus for overrun in check(rows, self.devices))


def padded(n_ctx: int) -> int:
    """Return n_ctx as llama.cpp pads it."""
    return -(-n_ctx // CONTEXT_PADDING) * CONTEXT_PADDING


def at_context(wishes: Wishes, n_ctx: int) -> Wishes:
    """Return the wishes with another context of the target; a draft that follows it still does."""
    return replace(wishes, target=replace(wishes.target, n_ctx=n_ctx))


def with_layers(wishes: Wishes, role: ModelRole, n_gpu_layers: int) -> Wishes:
    """Return the wishes with so many layers of a model on GPUs."""
    if role == "target":
        return replace(wishes, target=replace(wishes.target, n_gpu_layers=n_gpu_layers))
    if wishes.draft is None:
        return wishes
    return replace(wishes, draft=replace(wishes.draft, n_gpu_layers=n_gpu_layers))


def placements(wishes: Wishes) -> tuple[Placement, Placement | None]:
    """Return what to load."""
    draft = wishes.draft
    if draft is not None and draft.n_ctx == 0:
        draft = replace(draft, n_ctx=wishes.target.n_ctx)
    return wishes.target, draft


def plan_rows(footprint: PairFootprint, devices: Sequence[PlanDevice]) -> tuple[PlanRow, ...]:
    """Return the sums of a footprint's rows for each device and model, in the devices' order; empty ones are left out.

    Nothing goes uncounted: rows of a device that is not among `devices` come last.
    """
    models: tuple[tuple[ModelRole, Footprint | None], ...] = (("target", footprint.target), ("draft", footprint.draft))
    parts = [(row.device, role, row) for role, model in models if model is not None for row in model.rows]
    names = dict.fromkeys([*(device.name for device in devices), *(device for device, _, _ in parts)])
    rows: list[PlanRow] = []
    for name in names:
        for role, _ in models:
            summed = _sum(name, role, [row for device, model, row in parts if device == name and model == role])
            if summed.total_bytes:
                rows.append(summed)
    return tuple(rows)


def without_layers(rows: Sequence[PlanRow], role: ModelRole) -> tuple[PlanRow, ...]:
    """Return about what rows would be with no layer of a model on a GPU: a first guess, to be measured."""
    return tuple(
        row if row.model != role or row.device == HOST else replace(row, weights_bytes=0, kv_bytes=0, recurrent_bytes=0)
        for row in rows
    )


def _less_by_sway(device: PlanDevice) -> PlanDevice:
    """Return a device with what other programs may soon take of it; memories that are not here stay as they are."""
    if device.kind != "host" or device.is_hypothetical:
        return device
    sway_bytes = min(max(_LEAST_SWAY_BYTES, device.total_bytes // _SWAY_SHARE), device.budget_bytes // 8)
    return replace(device, free_bytes=device.free_bytes - sway_bytes)


def _sum(device: str, role: ModelRole, rows: Sequence[MemoryRow]) -> PlanRow:
    return PlanRow(
        device=device,
        model=role,
        weights_bytes=sum(row.weights_bytes for row in rows),
        kv_bytes=sum(row.kv_bytes for row in rows),
        recurrent_bytes=sum(row.recurrent_bytes for row in rows),
        compute_bytes=sum(row.compute_bytes for row in rows),
        output_bytes=sum(row.output_bytes for row in rows),
    )
