"""Everything known of a machine in one value: the host, and the devices that the engine's probe reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from localspec.hardware.drivers import read_drivers
from localspec.hardware.host import Host, read_host
from localspec.hardware.throttling import ClockReading, read_clock


@dataclass(frozen=True, slots=True)
class Device:
    """A device that llama.cpp can compute on, as it reports it."""

    name: str
    description: str
    type: Literal["cpu", "gpu", "integrated_gpu", "accelerator", "other"]
    backend: str
    free_bytes: int
    total_bytes: int
    is_unified: bool = False
    """Its memory is the host's."""
    device_id: str = ""
    """Where it sits on the bus; empty where the backend does not say."""

    @property
    def is_gpu(self) -> bool:
        """Whether layers can be offloaded to it."""
        return self.type in ("gpu", "integrated_gpu")


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """The machine at one moment. Devices are known once the engine was asked, and empty before."""

    host: Host
    clock: ClockReading
    devices: tuple[Device, ...] = field(default=())
    drivers: Mapping[str, str] = field(default_factory=dict)
    """Versions of GPU drivers by name, as far as they are known; empty without a GPU."""

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The devices that layers can be offloaded to."""
        return tuple(device for device in self.devices if device.is_gpu)


def read_profile(devices: tuple[Device, ...] = ()) -> HardwareProfile:
    """Return the present profile of this machine with the given devices."""
    drivers = read_drivers() if any(device.is_gpu for device in devices) else {}
    return HardwareProfile(host=read_host(), clock=read_clock(), devices=devices, drivers=drivers)
