"""Memories that a plan is made for: this machine's, or those of a machine that a person describes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from localspec.errors import UsageError
from localspec.planning.sizes import is_size, parse_size

GIB = 1 << 30

DEFAULT_RESERVE_BYTES = GIB
"""Kept free on each device, as llama.cpp's own --fit-target does."""

HOST = "CPU"
"""Name of host memory in rows and among devices."""

MIN_DEVICE_BYTES = 64 << 20
MAX_DEVICE_BYTES = 16 << 40
MAX_NAME = 60
MAX_HYPOTHETICAL = 15
"""ggml computes with at most 16 backends at a time (GGML_SCHED_MAX_BACKENDS), and the processor is one of them."""

_LARGE_SHARE_BYTES = 36 * GIB
"""Above this much unified memory macOS lets the GPU have 3/4 of it, up to it 2/3."""

_EXAMPLE = 'Write [NAME:]SIZE, such as "RTX 4070:12GiB", or "M3 Pro:36GiB,unified" with limit=SIZE if you know it.'


@dataclass(frozen=True, slots=True)
class HypotheticalDevice:
    """A GPU that is not here. The engine registers it with ggml, so that llama.cpp plans for it as for a real one."""

    name: str
    """For people, such as `RTX 4070`."""
    total_bytes: int
    """Of the card; of the whole machine where memory is unified."""
    is_unified: bool = False
    limit_bytes: int | None = None
    """Unified only: how much of it the GPU may use; None for the usual share."""
    style: Literal["cuda", "metal"] = "cuda"
    """Whose rules of alignment and scratch space it follows."""

    @property
    def usable_bytes(self) -> int:
        """What the GPU may use.

        All of a card's memory. Of a Mac's, an assumption drawn from published logs of stock machines (32 GB: 21.3 GiB,
        64 GB: 48 GiB): 2/3 of up to 36 GiB and 3/4 of more; newer systems lend more, and a real Mac tells its limit
        (recommendedMaxWorkingSetSize). CUDA and ROCm lend integrated GPUs all that is free.
        """
        if self.limit_bytes is not None:
            return self.limit_bytes
        if not self.is_unified or self.style == "cuda":
            return self.total_bytes
        if self.total_bytes <= _LARGE_SHARE_BYTES:
            return self.total_bytes * 2 // 3
        return self.total_bytes * 3 // 4


def hypothetical_name(index: int) -> str:
    """Return what llama.cpp calls the hypothetical device with that index."""
    return f"HYPO{index}"


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Memory of the machine itself."""

    total_bytes: int
    """What this process may have: of the machine, or of a limit on it."""
    available_bytes: int
    """What can still be taken without swapping."""
    system: str = "Linux"
    """As platform.system() names it: Linux, Darwin or Windows."""
    limit: str = ""
    """What limits it, where it is less than the machine's, such as `ulimit -v`; empty otherwise."""


@dataclass(frozen=True, slots=True)
class PlanDevice:
    """One memory, with what may be used of it."""

    name: str
    """As llama.cpp calls the device in its rows, such as `CUDA0`; `CPU` for host memory."""
    description: str
    kind: Literal["gpu", "host"]
    total_bytes: int
    free_bytes: int
    reserve_bytes: int
    shares_host_memory: bool = False
    """Unified memory: what is on it counts against the host's memory too."""
    is_hypothetical: bool = False
    note: str = ""
    """A correction or an assumption behind the figures."""

    @property
    def budget_bytes(self) -> int:
        """What a plan may use, never negative."""
        return max(0, self.free_bytes - self.reserve_bytes)


class DeviceBytes(Protocol):
    """A row of a footprint or of a plan."""

    @property
    def device(self) -> str:
        """Name of the device whose memory it is."""

    @property
    def total_bytes(self) -> int:
        """All of it."""


@dataclass(frozen=True, slots=True)
class Overrun:
    """A device that rows do not fit on."""

    device: str
    used_bytes: int
    budget_bytes: int

    @property
    def over_bytes(self) -> int:
        """By how much."""
        return self.used_bytes - self.budget_bytes


def used_bytes(rows: Iterable[DeviceBytes], devices: Sequence[PlanDevice]) -> dict[str, int]:
    """Return what rows take on each device, as it is compared with the budget.

    What lies on a GPU that shares the host's memory counts on the GPU and again on the host: it has to fit under both
    limits. Devices come in their order; one that rows name and that is not among them comes last.
    """
    used = {device.name: 0 for device in devices}
    sharing = {device.name for device in devices if device.shares_host_memory}
    for row in rows:
        used[row.device] = used.get(row.device, 0) + row.total_bytes
        if row.device in sharing:
            used[HOST] = used.get(HOST, 0) + row.total_bytes
    return used


def check(rows: Iterable[DeviceBytes], devices: Sequence[PlanDevice]) -> tuple[Overrun, ...]:
    """Return which devices the rows do not fit on; empty if all fits.

    A device that is not among `devices` has no budget, so that no row goes uncounted.
    """
    budgets = {device.name: device.budget_bytes for device in devices}
    return tuple(
        Overrun(name, used, budgets.get(name, 0))
        for name, used in used_bytes(rows, devices).items()
        if used > budgets.get(name, 0)
    )


def parse_device(text: str) -> HypotheticalDevice:
    """Return the device that `[NAME:]SIZE[,unified][,limit=SIZE][,metal|cuda]` describes, such as `RTX 4070:12GiB`.

    The name is free text and ends at the last colon; without one it is a GPU of that size. Unified memory follows
    Metal's rules unless `cuda` is said.

    Raises:
        UsageError: it is not of that form, or a size makes no sense.
    """
    name, colon, rest = text.rpartition(":")
    size, *options = rest.split(",")
    if not colon and is_size(size):
        name, colon = f"GPU of {size.strip()}", ":"
    total_bytes = _device_size(size, "memory") if colon else 0
    name = name.strip()
    if not name or not name.isprintable():
        raise UsageError("That describes no device." if not colon else "The device has no readable name.", _EXAMPLE)
    if len(name) > MAX_NAME:
        raise UsageError(f"The device's name is longer than {MAX_NAME} characters.", _EXAMPLE)
    flags: set[str] = set()
    limit_bytes: int | None = None
    for option in (option.strip() for option in options):
        key, _, value = option.partition("=")
        key = key.strip().lower()
        if key == "limit" and limit_bytes is None:
            limit_bytes = _device_size(value, "limit")
        elif option.lower() in ("unified", "metal", "cuda"):
            flags.add(option.lower())
        else:
            shown = option if option.isprintable() and len(option) <= MAX_NAME else "That"
            raise UsageError(f"“{shown}” is no option of a device, or is said twice.", _EXAMPLE)
    if {"metal", "cuda"} <= flags:
        raise UsageError("A device follows the rules of either metal or cuda.", "Leave one of them out.")
    if limit_bytes is not None and "unified" not in flags:
        raise UsageError("Only unified memory has a limit.", "Add unified, or leave the limit out.")
    if limit_bytes is not None and limit_bytes > total_bytes:
        raise UsageError("The limit is more than the whole memory.", "Give the part that the GPU may use.")
    is_metal = "metal" in flags or ("unified" in flags and "cuda" not in flags)
    return HypotheticalDevice(name, total_bytes, "unified" in flags, limit_bytes, "metal" if is_metal else "cuda")


def _device_size(text: str, what: str) -> int:
    size_bytes = parse_size(text)
    if not MIN_DEVICE_BYTES <= size_bytes <= MAX_DEVICE_BYTES:
        raise UsageError(f"A {what} of {text.strip()} makes no sense.", "Sizes go from 64 MiB to 16 TiB.")
    return size_bytes
