"""The units that sizes and speeds are shown in: one choice for the whole process, made where it begins.

Only what people read follows it. Documents for programs keep bytes, seconds and tokens per second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MemoryUnit = Literal["GiB", "GB"]
"""Powers of 1024 or of 1000."""

SpeedUnit = Literal["tokens/s", "ms/token"]

_SCALES: dict[MemoryUnit, tuple[tuple[int, str], ...]] = {
    "GiB": ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")),
    "GB": ((1000**3, "GB"), (1000**2, "MB"), (1000, "kB")),
}


@dataclass(frozen=True, slots=True)
class Units:
    """What was chosen."""

    memory: MemoryUnit = "GiB"
    speed: SpeedUnit = "tokens/s"


_in_use = Units()


def use_units(units: Units) -> None:
    """Show everything in these units from now on."""
    global _in_use
    _in_use = units


def units_in_use() -> Units:
    """Return the units in force."""
    return _in_use


def memory_scale() -> tuple[tuple[int, str], ...]:
    """Return bytes and name of the units of memory in force, the largest first: giga, mega, kilo."""
    return _SCALES[_in_use.memory]
