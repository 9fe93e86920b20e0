"""What loading other models would give back: the memory of those that are loaded now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from localspec.planning.devices import HOST, PlanDevice

if TYPE_CHECKING:
    from localspec.planning.footprint import MemoryRow, PairFootprint

_MAPPED = "Mapped"
"""Part of the names of llama.cpp's buffers over a mapped file: in host memory the system counts those as free."""


def with_released(devices: Sequence[PlanDevice], loaded: PairFootprint | None) -> tuple[PlanDevice, ...]:
    """Return the memories as they are once the loaded models are gone, since a load replaces them.

    Args:
        devices: as they are now.
        loaded: what the loaded models really take; None for none.
    """
    if loaded is None:
        return tuple(devices)
    released: dict[str, int] = {}
    for footprint in (loaded.target, loaded.draft):
        for row in () if footprint is None else footprint.rows:
            released[row.device] = released.get(row.device, 0) + _held_bytes(row)
    # What lies on a GPU that shares the host's memory is the host's too.
    shared = sum(released.get(device.name, 0) for device in devices if device.shares_host_memory)
    released[HOST] = released.get(HOST, 0) + shared
    return tuple(
        replace(device, free_bytes=min(device.total_bytes, device.free_bytes + released.get(device.name, 0)))
        for device in devices
    )


def _held_bytes(row: MemoryRow) -> int:
    is_file = row.device == HOST and _MAPPED in row.buffer
    return row.total_bytes - (row.weights_bytes if is_file else 0)
