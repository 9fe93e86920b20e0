"""Energy that the processor has used, where the system tells it: Linux, where RAPL's counters may be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """Counters of all processor packages at one moment."""

    packages: tuple[tuple[str, int, int], ...]
    """Name, microjoules, and where the counter starts over."""


def read_energy(powercap: Path = POWERCAP) -> EnergyReading | None:
    """Return the present counters; None where the system has none or does not let this user read them."""
    packages = []
    for folder in sorted(powercap.glob("intel-rapl:*")):
        # Parts of a package, as cores and memory, have two numbers and are in its sum already.
        if folder.name.count(":") != 1:
            continue
        try:
            counter, span = (int((folder / name).read_text("ascii")) for name in ("energy_uj", "max_energy_range_uj"))
        except (OSError, ValueError):
            continue
        packages.append((folder.name, counter, span))
    return EnergyReading(tuple(packages)) if packages else None


def joules_between(before: EnergyReading | None, after: EnergyReading | None) -> float | None:
    """Return the energy used between two readings; None where it is not known. A counter may start over once."""
    if before is None or after is None:
        return None
    then = {name: counter for name, counter, _ in before.packages}
    if set(then) != {name for name, _, _ in after.packages}:
        return None
    total = 0
    for name, counter, span in after.packages:
        used = counter - then[name]
        total += used if used >= 0 else used + span
    return total / 1e6
