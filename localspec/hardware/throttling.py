"""Signs that the processor is slowed down, to be read on both sides of a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

PROCESSORS = Path("/sys/devices/system/cpu")


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What the system says of the processor's clock at one moment; None for what it does not say."""

    current_mhz: float | None
    max_mhz: float | None
    num_throttled: int | None
    """Times that the hardware slowed itself down for heat since boot, over all packages (Intel on Linux)."""


def read_clock(processors: Path = PROCESSORS) -> ClockReading:
    """Return the present reading."""
    frequency = None
    try:
        # psutil lacks the function on systems where it has no source for it.
        frequency = getattr(psutil, "cpu_freq", lambda: None)()
    except (OSError, NotImplementedError, RuntimeError, ValueError):
        frequency = None
    return ClockReading(
        current_mhz=(frequency.current or None) if frequency else None,
        max_mhz=(frequency.max or None) if frequency else None,
        num_throttled=_num_throttled(processors),
    )


def was_throttled(before: ClockReading, after: ClockReading) -> bool | None:
    """Say whether the hardware slowed itself down between two readings; None if it does not count that."""
    if before.num_throttled is None or after.num_throttled is None:
        return None
    return after.num_throttled > before.num_throttled


def _num_throttled(processors: Path) -> int | None:
    by_package: dict[str, int] = {}
    for file in processors.glob("cpu[0-9]*/thermal_throttle/package_throttle_count"):
        processor = file.parent.parent
        try:
            package = (processor / "topology" / "physical_package_id").read_text(encoding="ascii").strip()
            by_package[package] = int(file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
    return sum(by_package.values()) if by_package else None
