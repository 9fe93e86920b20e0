"""The memories of a machine as they are shown: one bar each, and one for what a GPU shares with the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.planning.devices import PlanDevice, used_bytes
from localspec.planning.wording import device_title, share_words, size_text
from localspec.session.figures import bytes_text
from localspec.session.memory_parts import Part, parts_of

if TYPE_CHECKING:
    from localspec.planning.plan import PlanRow


@dataclass(frozen=True, slots=True)
class Pool:
    """One memory. Texts are foreign: no markup."""

    name: str
    """llama.cpp's, of the device whose size the bar has."""
    title: str
    share: str
    """What a plan takes of what it may, in the figures of the plan's own sentence."""
    taken: str
    """The same with what others use and what is kept free."""
    total_bytes: int
    parts: tuple[Part, ...]
    over_bytes: int
    """By how much a plan is more than may be used; 0 if it is not."""
    limit_bytes: int | None = None
    """What a GPU may use of a memory that it shares; None where that is no question."""
    notes: tuple[str, ...] = ()


def pools(devices: Sequence[PlanDevice], rows: Sequence[PlanRow]) -> tuple[Pool, ...]:
    """Return the memories in the devices' order. One that a GPU shares with the host is one pool with two budgets."""
    sharing = [device for device in devices if device.shares_host_memory]
    pooled = sharing[0] if len(sharing) == 1 and devices[-1].kind == "host" else None
    found: list[Pool] = []
    for device in devices:
        if device is pooled:
            continue
        is_host = device.kind == "host"
        others = [other.name for other in sharing] if is_host else []
        title = _title(device, devices)
        share, taken = _share(device, devices, rows), _taken(device, devices, rows)
        over, limit, notes = _over(device, devices, rows), None, [device.note]
        if pooled is not None and is_host:
            title = f"{_title(pooled, devices)}, one memory with two budgets"
            share = f"on the GPU {_share(pooled, devices, rows)}, and in all {share}"
            taken = f"on the GPU {_taken(pooled, devices, rows)}, and in all {taken}"
            over, limit = max(over, _over(pooled, devices, rows)), pooled.total_bytes
            notes = [pooled.note, device.note]
        found.append(
            Pool(
                name=device.name,
                title=title,
                share=share,
                taken=taken,
                total_bytes=device.total_bytes,
                parts=parts_of(device, rows, others),
                over_bytes=over,
                limit_bytes=limit,
                notes=tuple(note for note in notes if note),
            )
        )
    return tuple(found)


def _share(device: PlanDevice, devices: Sequence[PlanDevice], rows: Sequence[PlanRow]) -> str:
    used = used_bytes(rows, devices).get(device.name, 0)
    over = used - device.budget_bytes
    return f"{share_words(used, device.budget_bytes)}{f', {size_text(over)} too much' if over > 0 else ''}"


def _taken(device: PlanDevice, devices: Sequence[PlanDevice], rows: Sequence[PlanRow]) -> str:
    parts = [_share(device, devices, rows)]
    if others := device.total_bytes - device.free_bytes:
        parts.append(f"{bytes_text(others)} used by others")
    parts.append(f"{share_words(device.reserve_bytes, device.total_bytes)} kept free")
    return "; ".join(parts)


def _over(device: PlanDevice, devices: Sequence[PlanDevice], rows: Sequence[PlanRow]) -> int:
    return max(0, used_bytes(rows, devices).get(device.name, 0) - device.budget_bytes)


def _title(device: PlanDevice, devices: Sequence[PlanDevice]) -> str:
    name = "host memory" if device.kind == "host" else device_title(device, devices)
    return f"{name}, hypothetical" if device.is_hypothetical else name
