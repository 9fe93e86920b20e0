"""Limits that a Linux control group (a container, a service, a job) puts on this process.

Formats: Linux Documentation/admin-guide/cgroup-v2.rst (`cpu.max`, `memory.max`) and cgroup-v1/memory.rst, scheduler/
sched-bwc.rst (`cpu.cfs_quota_us`, `memory.limit_in_bytes`). A limit of any ancestor holds as well, so all are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")

_NO_LIMIT = 1 << 60
"""Version 1 says "no limit" with a number near 2^63."""


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """The tightest limits that hold; None where nothing limits."""

    cpus: float | None
    """Processor time per time, such as 2.0 for two logical processors' worth."""
    memory_bytes: int | None
    memory_left_bytes: int | None
    """Limit less use; file pages count as free, since the kernel drops them first."""


def read_cgroup_limits(root: Path = ROOT, membership: Path = MEMBERSHIP) -> CgroupLimits:
    """Return the limits of this process's control group; all None on systems that have none."""
    cpus: list[float] = []
    limits: list[int] = []
    left: list[int] = []
    for controllers, group in _memberships(membership):
        if not controllers:
            for folder in _ancestors(root, group):
                cpus += _cpus_v2(folder)
                _add_memory(folder, "memory.max", "memory.current", "", limits, left)
            continue
        if "cpu" in controllers:
            for mount in {root / "cpu", root / ",".join(controllers)}:
                for folder in _ancestors(mount, group):
                    cpus += _cpus_v1(folder)
        if "memory" in controllers:
            for folder in _ancestors(root / "memory", group):
                _add_memory(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_", limits, left)
    return CgroupLimits(min(cpus, default=None), min(limits, default=None), min(left, default=None))


def _memberships(membership: Path) -> Iterator[tuple[list[str], str]]:
    """Yield (controllers, group) of each hierarchy; version 2 names no controllers."""
    for line in _read(membership).splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            yield [name for name in parts[1].split(",") if name], parts[2]


def _ancestors(mount: Path, group: str) -> list[Path]:
    """Return the group's folder and its parents up to the mount. In a container the outer ones may not exist."""
    parts = [part for part in group.split("/") if part not in ("", "..", ".")]
    return [mount.joinpath(*parts[:count]) for count in range(len(parts), -1, -1)]


def _cpus_v2(folder: Path) -> list[float]:
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    return _ratio(quota, period)


def _cpus_v1(folder: Path) -> list[float]:
    return _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> list[float]:
    if not (quota.strip().isdigit() and period.strip().isdigit()) or int(period) == 0 or int(quota) == 0:
        return []
    return [int(quota) / int(period)]


def _add_memory(folder: Path, limit_name: str, used_name: str, prefix: str, limits: list[int], left: list[int]) -> None:
    limit, used = _read(folder / limit_name).strip(), _read(folder / used_name).strip()
    if not limit.isdigit() or int(limit) >= _NO_LIMIT:
        return
    limits.append(int(limit))
    if used.isdigit():
        left.append(max(0, int(limit) - max(0, int(used) - _file_bytes(folder, prefix))))


def _file_bytes(folder: Path, prefix: str) -> int:
    wanted = (f"{prefix}inactive_file", f"{prefix}active_file")
    rows = (line.split() for line in _read(folder / "memory.stat").splitlines())
    return sum(int(row[1]) for row in rows if len(row) == 2 and row[0] in wanted and row[1].isdigit())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
