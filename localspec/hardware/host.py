"""Facts about this machine, read afresh at each call; nothing is decided here."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from localspec.hardware.cgroup import read_cgroup_limits
from localspec.hardware.cores import read_cores
from localspec.hardware.process_limits import read_process_limit

PowerSource = Literal["mains", "battery", "no_battery", "unknown"]
"""`no_battery`: the system reports none, as on desktops and virtual machines."""


@dataclass(frozen=True, slots=True)
class Host:
    """One reading of the machine that this process runs on."""

    os: str
    """System and release, such as `Linux 6.8.0`."""
    machine: str
    """Instruction set, such as `x86_64` or `arm64`."""
    cpu_name: str
    """As the system calls it; empty where it does not say."""
    physical_cores: int
    """Cores that this process may use, after affinity and control-group quota."""
    logical_cores: int
    machine_logical_cores: int
    """Hardware threads of the whole machine, allowed or not."""
    memory_total_bytes: int
    """What this process may have: the machine's memory, or a limit of its control group or its own if that is less."""
    memory_available_bytes: int
    """What can still be taken without swapping, likewise."""
    is_memory_limited: bool
    """Such a limit is less than the machine's memory."""
    swap_used_bytes: int
    power: PowerSource
    battery_percent: float | None
    load_average: tuple[float, float, float] | None
    """Runnable processes over 1, 5 and 15 minutes on the whole machine; None on Windows."""
    process_limit: str = ""
    """The limit that memory_total_bytes is, where it is one of the process, such as `ulimit -v`; empty otherwise."""


def read_host() -> Host:
    """Return the present facts of this machine."""
    cores = read_cores()
    limits = read_cgroup_limits()
    memory = psutil.virtual_memory()
    total = memory.total if limits.memory_bytes is None else min(limits.memory_bytes, memory.total)
    available = (
        memory.available if limits.memory_left_bytes is None else min(limits.memory_left_bytes, memory.available)
    )
    own = read_process_limit()
    is_own = own is not None and own.memory_bytes < total
    if own is not None:
        total, available = min(total, own.memory_bytes), min(available, own.left_bytes)
    power, percent = read_power()
    return Host(
        os=f"{platform.system()} {platform.release()}".strip(),
        machine=platform.machine(),
        cpu_name=read_cpu_name(),
        physical_cores=cores.physical,
        logical_cores=cores.logical,
        machine_logical_cores=cores.machine_logical,
        memory_total_bytes=total,
        memory_available_bytes=available,
        is_memory_limited=total < memory.total,
        swap_used_bytes=_swap_used_bytes(),
        power=power,
        battery_percent=percent,
        load_average=os.getloadavg() if hasattr(os, "getloadavg") else None,
        process_limit=own.name if own is not None and is_own else "",
    )


def read_power() -> tuple[PowerSource, float | None]:
    """Return where the power comes from, and the battery's charge in percent if there is a battery."""
    read_battery = getattr(psutil, "sensors_battery", None)
    if read_battery is None:
        return "unknown", None
    try:
        battery = read_battery()
    except (OSError, ValueError, RuntimeError):
        return "unknown", None
    if battery is None:
        return "no_battery", None
    if battery.power_plugged is None:
        return "unknown", float(battery.percent)
    return ("mains" if battery.power_plugged else "battery"), float(battery.percent)


def read_cpu_name(cpuinfo: Path = Path("/proc/cpuinfo"), system: str = platform.system()) -> str:
    """Return the processor's name as the system gives it; empty where it gives none."""
    if system == "Linux":
        return _name_in_cpuinfo(cpuinfo)
    if system == "Darwin":
        return _sysctl("machdep.cpu.brand_string")
    return platform.processor()


def _name_in_cpuinfo(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    # x86 writes `model name`; boards with ARM or POWER write one of the others, or nothing.
    values = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return next((values[key] for key in ("model name", "cpu model", "cpu", "Model", "Hardware") if values.get(key)), "")


def _sysctl(name: str) -> str:
    try:
        done = subprocess.run(["/usr/sbin/sysctl", "-n", name], capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _swap_used_bytes() -> int:
    try:
        return int(psutil.swap_memory().used)
    except (OSError, RuntimeError):
        return 0
