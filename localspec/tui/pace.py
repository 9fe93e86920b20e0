"""How often something that moves is drawn: as often as it can be seen, and no oftener than the engine can spare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.tui.state import Workbench

MAX_PAUSE_S = 0.4

REST = 6.0
"""Drawing takes a seventh of the time at most, of a core that the engine leaves to others."""

LONG_REST = 40.0
"""Where it leaves none: what drawing takes is missing there, and MAX_PAUSE_S bounds how seldom it is done."""


class Pace:
    """When to draw next, by a clock and by what drawing took the last times.

    Args:
        clock: seconds.
        least_s: shortest time between two drawings.
    """

    def __init__(self, clock: Callable[[], float], least_s: float) -> None:
        self._clock = clock
        self._least_s = least_s
        self._pause_s = least_s
        self.rest = REST
        """Of what drawing took, until it is drawn again."""
        self._last_s = float("-inf")

    def is_due(self) -> bool:
        """Say whether it is time, and begin to wait for the next if it is."""
        now_s = self._clock()
        if now_s - self._last_s < self._pause_s:
            return False
        self._last_s = now_s
        return True

    def note(self, cost_s: float) -> None:
        """Take how long it took until something was drawn."""
        wanted_s = min(MAX_PAUSE_S, max(self._least_s, self.rest * cost_s))
        self._pause_s = (self._pause_s + wanted_s) / 2.0


def rest_of(bench: Workbench) -> float:
    """Return how long to rest after drawing, in times of what it took: long where the engine takes every core. Blocks.

    Args:
        bench: how the models run.
    """
    from localspec.hardware.cores import read_cores

    cores = read_cores()
    num_threads = max(bench.context.n_threads or cores.physical, bench.context.n_threads_batch)
    return REST if num_threads < cores.logical else LONG_REST
