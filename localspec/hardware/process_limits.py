"""Limits on the memory of one process (`ulimit -v`, `ulimit -d`), which the engine's process inherits.

Linux alone: other systems either do not enforce them or do not say how much of them is used. Source: setrlimit(2),
proc_pid_status(5).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_KIB = 1024
_KINDS = (("RLIMIT_AS", "ulimit -v", "VmSize"), ("RLIMIT_DATA", "ulimit -d", "VmData"))
"""Of all that is mapped, model files included, and of what is private and may be written to."""


@dataclass(frozen=True, slots=True)
class ProcessLimit:
    """The tightest limit."""

    name: str
    """As the shell has it, such as `ulimit -v`."""
    memory_bytes: int
    left_bytes: int
    """Limit less what the largest process of ours uses: the engine's, once it runs."""


def read_process_limit() -> ProcessLimit | None:
    """Return the limit that leaves this process and its children least; None where nothing limits."""
    limits = _limits()
    if not limits:
        return None
    children: list[int] = []
    with suppress(psutil.Error):
        children = [child.pid for child in psutil.Process().children()]
    return tightest(limits, [os.getpid(), *children])


def tightest(limits: Mapping[str, int], pids: Sequence[int], proc: Path = Path("/proc")) -> ProcessLimit | None:
    """Return the limit that leaves least; None without any.

    Args:
        limits: bytes by the resource's name, such as RLIMIT_AS.
        pids: processes, each of which has these limits for itself.
        proc: where the system tells of processes.
    """
    found: list[ProcessLimit] = []
    for resource_name, name, field in _KINDS:
        if resource_name in limits:
            limit = limits[resource_name]
            used = max((_status_bytes(proc / str(pid) / "status", field) for pid in pids), default=0)
            found.append(ProcessLimit(name, limit, max(0, limit - used)))
    return min(found, key=lambda limit: limit.left_bytes, default=None)


def _limits() -> dict[str, int]:
    if sys.platform != "linux":
        return {}
    import resource

    found = {name: resource.getrlimit(getattr(resource, name))[0] for name, _, _ in _KINDS}
    return {name: limit for name, limit in found.items() if limit != resource.RLIM_INFINITY}


def _status_bytes(path: Path, field: str) -> int:
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    words = next((line.split() for line in lines if line.startswith(f"{field}:")), [])
    return _KIB * int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
