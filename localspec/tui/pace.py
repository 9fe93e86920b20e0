"""How often something that moves is drawn: as often as it can be seen, and no oftener than the engine can spare."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.tui.state import Workbench

MAX_PAUSE_S = 0.5

REST = 2.0
"""Drawing takes a third of the time at most, of a core that the engine leaves to others."""

LONG_REST = 60.0
"""Where it leaves none: what drawing takes is missing there, and MAX_PAUSE_S bounds how seldom it is done."""

DRAWN_S = 0.04
"""After so long something is drawn: the screen is brought up to date sixty times a second."""


class Pace:
    """When to draw next, by a clock and by what drawing took the last times.

    Args:
        clock: seconds.
        least_s: shortest time between two drawings.
        work_clock: seconds that this thread worked; what others do meanwhile is no cost of drawing.
        most_s: longest time between two drawings.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        least_s: float,
        work_clock: Callable[[], float] = time.thread_time,
        most_s: float = MAX_PAUSE_S,
    ) -> None:
        self._clock = clock
        self._work_clock = work_clock
        self._least_s = least_s
        self._most_s = most_s
        self._pause_s = least_s
        self._rest = REST
        self._last_s = float("-inf")

    def begin(self, rest: float) -> None:
        """Begin something that moves.

        Args:
            rest: of what drawing took, until it is drawn again; see `rest_of`.
        """
        if rest != self._rest:
            # What it takes on this machine is not known yet.
            self._pause_s = self._least_s if rest < LONG_REST else self._most_s / 2.0
        self._rest = rest

    def is_due(self) -> bool:
        """Say whether it is time, and begin to wait for the next if it is."""
        now_s = self._clock()
        if now_s - self._last_s < self._pause_s:
            return False
        self._last_s = now_s
        return True

    def hurry(self, pause_s: float) -> None:
        """Let it be time again after so long at the latest."""
        self._last_s = min(self._last_s, self._clock() - self._pause_s + pause_s)

    def work_s(self) -> float:
        """Return what the thread has worked so far."""
        return self._work_clock()

    def draw(self, begun_s: float | None = None) -> None:
        """Something is about to be drawn: take a little later what it took. Call it in the event loop.

        Args:
            begun_s: what the thread had worked when making it began; None for now.
        """
        begun_s = self._work_clock() if begun_s is None else begun_s
        asyncio.get_running_loop().call_later(DRAWN_S, lambda: self.note(self._work_clock() - begun_s))

    def note(self, cost_s: float) -> None:
        """Take how long it took until something was drawn."""
        wanted_s = min(self._most_s, max(self._least_s, self._rest * cost_s))
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
