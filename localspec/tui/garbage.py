"""Garbage is searched for when nobody waits: a search through everything stops the app for a tenth of a second or more.

Meanwhile most of what is thrown away is freed all the same, since nothing refers to it any more.
"""

from __future__ import annotations

import asyncio
import gc

LATER_S = 1.0
"""From the end of something to the search: what came of it is shown first."""

GROWTH = 1.25
"""Everything is searched through once there is so many times as much as after the last such search."""


class GarbageSearch:
    """Rests while something is going on that would stand still for it. One for a process."""

    def __init__(self) -> None:
        """Prepare; Python searches as usual until the first rest."""
        self._later: asyncio.TimerHandle | None = None
        self._num_left = 0

    def rest(self) -> None:
        """Search through nothing that is there already."""
        self._cancel()
        gc.freeze()

    def go_on(self) -> None:
        """Search a little later, if there is no other rest before. Call it in the event loop."""
        self._cancel()
        self._later = asyncio.get_running_loop().call_later(LATER_S, self.search)

    def search(self) -> None:
        """Search through what is new, or through everything if that has become much."""
        self._cancel()
        gc.collect()
        gc.freeze()
        if gc.get_freeze_count() > GROWTH * self._num_left:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._num_left = gc.get_freeze_count()

    def _cancel(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
