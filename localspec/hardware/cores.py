"""How many cores this process may really use: the machine's, less affinity and quota."""

from __future__ import annotations

import os
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import psutil

from localspec.hardware.cgroup import CgroupLimits, read_cgroup_limits

TOPOLOGY = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores that this process may use, and those that the machine has."""

    physical: int
    """Full cores; at least 1. The default number of threads."""
    logical: int
    """Hardware threads; at least 1."""
    machine_logical: int


def read_cores() -> Cores:
    """Return the cores of this machine that are open to this process."""
    return count_cores(
        allowed=_allowed(),
        limits=read_cgroup_limits(),
        machine_physical=psutil.cpu_count(logical=False),
        machine_logical=psutil.cpu_count(logical=True),
    )


def count_cores(
    allowed: Set[int] | None,
    limits: CgroupLimits,
    machine_physical: int | None,
    machine_logical: int | None,
    topology: Path = TOPOLOGY,
) -> Cores:
    """Return the usable cores.

    A quota is processor time, so it bounds both counts; it is rounded down, since a thread more than the quota has
    the whole group stopped for the rest of each period.

    Args:
        allowed: numbers of the logical processors that affinity leaves; None where the system does not say.
        limits: the control group's.
        machine_physical: the machine's cores; None where unknown.
        machine_logical: the machine's hardware threads; None where unknown.
        topology: Linux's folder of processors.
    """
    whole_logical = machine_logical or os.cpu_count() or 1
    logical = min(len(allowed), whole_logical) if allowed else whole_logical
    physical = min(_physical(allowed, topology) or machine_physical or logical, logical)
    if limits.cpus is not None:
        quota = max(1, int(limits.cpus))
        logical, physical = min(logical, quota), min(physical, quota)
    return Cores(max(1, physical), max(1, logical), whole_logical)


def _allowed() -> Set[int] | None:
    # psutil has no affinity on macOS, and its stubs know only the platform that is checked.
    read_affinity = getattr(psutil.Process(), "cpu_affinity", None)
    try:
        return set(read_affinity()) if read_affinity else None
    except (OSError, psutil.Error):
        return None


def _physical(allowed: Set[int] | None, topology: Path) -> int | None:
    """Count distinct cores among the allowed processors; None where the system does not tell them apart."""
    cores = set()
    for number in allowed or ():
        folder = topology / f"cpu{number}" / "topology"
        try:
            package = (folder / "physical_package_id").read_text(encoding="ascii").strip()
            # Siblings tell cores apart also where core_id repeats over dies or clusters.
            siblings = (folder / "thread_siblings_list").read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        cores.add((package, siblings))
    return len(cores) or None
