"""From what llama.cpp reports of devices to what a plan may use of them.

Sources: `get_memory` of each ggml backend; llama.cpp's choice of devices (llama_prepare_model_devices in llama.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence

from localspec.errors import UsageError
from localspec.hardware.profile import Device
from localspec.planning.devices import (
    DEFAULT_RESERVE_BYTES,
    GIB,
    HOST,
    MAX_HYPOTHETICAL,
    HostMemory,
    HypotheticalDevice,
    PlanDevice,
    hypothetical_name,
)

_METAL = "MTL"
_REMOTE = "RPC"
_WRAPPED = 1 << 63


def reserve_of(total_bytes: int, reserve_bytes: int = DEFAULT_RESERVE_BYTES, holds_two: bool = False) -> int:
    """Return what is kept free of a memory.

    1 GiB is what llama.cpp's own --fit-target keeps: the driver's context (0.3 to 0.6 GB with CUDA), its pools and
    the display are in no account of llama.cpp's. Host memory that a GPU shares keeps twice as much, since both sides'
    surprises meet there. A memory under four times that keeps a quarter, so that a card of 2 GiB or a small container
    can be planned for at all; only a reserve above the usual one is kept in full, since somebody asked for it.

    Args:
        total_bytes: of the memory.
        reserve_bytes: as asked for, for one device.
        holds_two: it is the host's and a GPU shares it.
    """
    wanted = max(0, reserve_bytes) * (2 if holds_two else 1)
    most = total_bytes // 4 if reserve_bytes <= DEFAULT_RESERVE_BYTES else total_bytes
    return min(wanted, most)


def plan_devices(
    reported: Sequence[Device], host: HostMemory, reserve_bytes: int = DEFAULT_RESERVE_BYTES
) -> tuple[PlanDevice, ...]:
    """Return the memories of this machine: GPUs that llama.cpp would use, in its order, then the host.

    A GPU that it would not use, or of which nothing is known, is left out, and a note on the host row says so.

    Args:
        reported: devices as the engine's probe lists them; those that are no GPUs are passed over, since what llama.cpp
            says of the CPU is the whole memory as free, and accelerators such as BLAS have none of their own.
        host: as the system and the control group say.
        reserve_bytes: to keep free on each device.
    """
    gpus, notes = _used_gpus(reported)
    devices = tuple(_gpu(device, host, reserve_bytes) for device in gpus)
    return (*devices, _host(host, reserve_bytes, any(device.shares_host_memory for device in devices), notes))


def hypothetical_plan_devices(
    devices: Sequence[HypotheticalDevice], host: HostMemory, reserve_bytes: int = DEFAULT_RESERVE_BYTES
) -> tuple[PlanDevice, ...]:
    """Return the memories of a machine with these GPUs and no others, then its host memory.

    Beside cards of their own memory the host is this machine's. A unified device is a whole machine: its memory is
    the host's, and all of it counts as free but for the reserve.

    Raises:
        UsageError: there are none or too many, or a unified one is not alone.
    """
    if not devices:
        raise UsageError("No device is described.", "Name at least one, such as --device “RTX 4070:12GiB”.")
    if len(devices) > MAX_HYPOTHETICAL:
        raise UsageError(
            f"{len(devices)} devices are too many: llama.cpp uses at most {MAX_HYPOTHETICAL} beside the processor.",
            "Describe fewer.",
        )
    unified = next((device for device in devices if device.is_unified), None)
    if unified is not None and len(devices) > 1:
        raise UsageError(
            "A device with unified memory is a whole machine and stands alone.", "Leave out unified, or the others."
        )
    gpus = tuple(
        PlanDevice(
            name=hypothetical_name(index),
            description=device.name,
            kind="gpu",
            total_bytes=device.usable_bytes,
            free_bytes=device.usable_bytes,
            reserve_bytes=reserve_of(device.usable_bytes, reserve_bytes),
            shares_host_memory=device.is_unified,
            is_hypothetical=True,
            note=_assumption(device),
        )
        for index, device in enumerate(devices)
    )
    if unified is None:
        return (*gpus, _host(host, reserve_bytes, False, ["Of the machine that this runs on."]))
    machine = PlanDevice(
        name=HOST,
        description=f"memory of {unified.name}",
        kind="host",
        total_bytes=unified.total_bytes,
        free_bytes=unified.total_bytes,
        reserve_bytes=reserve_of(unified.total_bytes, reserve_bytes, True),
        is_hypothetical=True,
        note="As if nothing but the system ran, and the system took no more than the reserve.",
    )
    return (*gpus, machine)


def _used_gpus(reported: Sequence[Device]) -> tuple[list[Device], list[str]]:
    """Return the GPUs that llama.cpp uses by default, remote ones first, and notes on the others."""
    notes: list[str] = []
    known: list[Device] = []
    for device in reported:
        if not device.is_gpu:
            continue
        twin = next((other for other in known if device.device_id and other.device_id == device.device_id), None)
        if device.total_bytes <= 0:
            notes.append(f"{device.name} does not say how much memory it has and is left out.")
        elif twin is not None:
            notes.append(f"{device.name} is {twin.name} by another name.")
        else:
            known.append(device)
    remote = [device for device in known if device.backend == _REMOTE]
    discrete = [device for device in known if device.type == "gpu" and device.backend != _REMOTE]
    integrated = [device for device in known if device.type == "integrated_gpu" and device.backend != _REMOTE]
    # Of integrated GPUs it uses those of one backend, since several backends may see the same one.
    integrated = [device for device in integrated if device.backend == integrated[0].backend]
    if discrete and integrated:
        names = ", ".join(device.name for device in integrated)
        notes.append(f"llama.cpp leaves {names} unused beside a GPU with memory of its own.")
        integrated = []
    return [*remote, *discrete, *integrated], notes


def _gpu(device: Device, host: HostMemory, reserve_bytes: int) -> PlanDevice:
    notes: list[str] = []
    free_bytes = _signed(device.free_bytes)
    if not 0 <= free_bytes <= device.total_bytes:
        counted = "none of it counts" if free_bytes < 0 else "all of it counts"
        notes.append(f"{device.backend} reports an impossible amount of free memory; {counted} as free.")
        free_bytes = min(max(0, free_bytes), device.total_bytes)
    shares = device.is_unified or device.type == "integrated_gpu"
    if device.backend == _METAL:
        notes.append(
            "macOS lends the GPU no more than this; until the next start “sudo sysctl iogpu.wired_limit_mb=…” moves it."
        )
    if shares:
        notes.append("Its memory is the host's.")
    reserve = reserve_of(device.total_bytes, reserve_bytes)
    is_nvidia = device.backend == "CUDA" or "nvidia" in device.description.lower()
    if is_nvidia and host.system == "Windows" and reserve < GIB:
        notes.append(
            "With less than 1 GiB kept free the Windows driver may move data into host memory without a word, which is "
            "about ten times slower (“CUDA - Sysmem Fallback Policy” in its control panel turns that off)."
        )
    return PlanDevice(
        name=device.name,
        description=device.description or device.name,
        kind="gpu",
        total_bytes=device.total_bytes,
        free_bytes=free_bytes,
        reserve_bytes=reserve,
        shares_host_memory=shares,
        note=" ".join(notes),
    )


def _host(host: HostMemory, reserve_bytes: int, is_shared: bool, notes: Sequence[str]) -> PlanDevice:
    total_bytes = max(0, host.total_bytes)
    return PlanDevice(
        name=HOST,
        description="host memory",
        kind="host",
        total_bytes=total_bytes,
        free_bytes=min(max(0, host.available_bytes), total_bytes),
        reserve_bytes=reserve_of(total_bytes, reserve_bytes, is_shared),
        note=" ".join([*notes, f"No more because of {host.limit}."] if host.limit else notes),
    )


def _signed(free_bytes: int) -> int:
    """Undo the wrap of an unsigned difference: Vulkan subtracts a heap's use from its budget, which may be less."""
    return free_bytes - (1 << 64) if free_bytes >= _WRAPPED else free_bytes


def _assumption(device: HypotheticalDevice) -> str:
    if not device.is_unified:
        return "Not here: as if nothing else used it."
    if device.limit_bytes is not None:
        return "Not here: the GPU's share as given."
    if device.style == "cuda":
        return "Not here: as if the GPU could use all of the machine's memory."
    share = "2/3" if device.usable_bytes == device.total_bytes * 2 // 3 else "3/4"
    return (
        f"Not here: {share} of the machine's memory is assumed for the GPU, the usual share of a Mac of this size; "
        "a real Mac tells the exact limit, and limit=SIZE sets it."
    )
