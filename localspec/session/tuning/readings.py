"""The machine's state while a search runs: clock of the processor, energy, where the power comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from localspec.hardware.energy import EnergyReading
from localspec.hardware.host import PowerSource
from localspec.hardware.throttling import ClockReading
from localspec.session.examination import Examination


@dataclass(frozen=True, slots=True)
class Readings:
    """What reads it."""

    clock: Callable[[], ClockReading]
    energy: Callable[[], EnergyReading | None]
    power: Callable[[], tuple[PowerSource, float | None]]
    """And the battery's charge in percent."""

    def powered(self, examination: Examination) -> Examination:
        """Return an examination with where the power comes from now."""
        power, percent = self.power()
        host = replace(examination.profile.host, power=power, battery_percent=percent)
        return replace(examination, profile=replace(examination.profile, host=host))


def is_on_battery(examination: Examination | None) -> bool:
    """Whether the machine ran on battery when it was examined."""
    return examination is not None and examination.profile.host.power == "battery"
