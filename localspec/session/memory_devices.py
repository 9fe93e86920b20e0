"""The memories of this machine, or of one that a person describes, as plans take them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from localspec.engine.events import Probed
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Probe
from localspec.errors import LocalspecError
from localspec.hardware.host import Host, read_host
from localspec.hardware.profile import Device
from localspec.planning.budgets import hypothetical_plan_devices, plan_devices
from localspec.planning.devices import DEFAULT_RESERVE_BYTES, HostMemory, HypotheticalDevice, PlanDevice

if TYPE_CHECKING:
    from localspec.engine.values import DeviceInfo


def reported_devices(devices: Sequence[DeviceInfo]) -> tuple[Device, ...]:
    """Return what the engine reported as facts about this machine."""
    return tuple(
        Device(
            name=device.name,
            description=device.description,
            type=device.type,
            backend=device.backend,
            free_bytes=device.free_bytes,
            total_bytes=device.total_bytes,
            is_unified=device.is_unified,
            device_id=device.device_id,
        )
        for device in devices
    )


def host_memory(host: Host, system: str = platform.system()) -> HostMemory:
    """Return the host's memory within the limits of the control group and of the process."""
    limit = "this container's or service's limit" if host.is_memory_limited else ""
    if host.process_limit:
        limit = f"this process's limit ({host.process_limit})"
    return HostMemory(host.memory_total_bytes, host.memory_available_bytes, system, limit)


async def machine_devices(
    engine: Engine, reserve_bytes: int = DEFAULT_RESERVE_BYTES, read: Callable[[], Host] = read_host
) -> tuple[PlanDevice, ...]:
    """Ask the engine for its devices and return this machine's memories, the host last.

    Models that the engine has loaded count as taken. Asking makes a context on CUDA GPUs (0.3 to 0.6 GB), so what is
    reported as free is already without it.

    Raises:
        LocalspecError: the engine could not be asked.
    """
    answer = await last_event(engine, Probe(id=engine.next_id()))
    if not isinstance(answer, Probed):
        raise LocalspecError("The engine gave another answer than the one asked for.", "Install localspec again.")
    return plan_devices(reported_devices(answer.devices), host_memory(read()), reserve_bytes)


def described_devices(
    devices: Sequence[HypotheticalDevice],
    reserve_bytes: int = DEFAULT_RESERVE_BYTES,
    read: Callable[[], Host] = read_host,
) -> tuple[PlanDevice, ...]:
    """Return the memories of a machine with the GPUs that a person describes, the host last.

    Raises:
        UsageError: the devices make no machine.
    """
    return hypothetical_plan_devices(devices, host_memory(read()), reserve_bytes)
