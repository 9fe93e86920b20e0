"""Speed of late and time to go, from how many bytes came when."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_WINDOW_S = 5.0
_FIRST_S = 0.5
_GRAIN_S = 0.1


class RateMeter:
    """Bytes per second over the last few seconds. Reads no clock but the one it is given."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, window_s: float = _WINDOW_S) -> None:
        self._clock = clock
        self._window_s = window_s
        self._num_bytes = 0
        self._samples: deque[tuple[float, int]] = deque()
        """Moments in seconds, and all bytes that had come by then; the first lies at the window's edge or before."""

    def start(self) -> None:
        """Begin anew: bytes come from now on. What came before a pause says nothing about the speed after it."""
        self._samples.clear()
        self._samples.append((self._clock(), self._num_bytes))

    def add(self, num_bytes: int) -> None:
        """Count bytes that have just come."""
        if not self._samples:
            self.start()
        self._num_bytes += num_bytes
        now = self._clock()
        # A sample for each of thousands of small pieces would tell no more.
        if len(self._samples) > 1 and now - self._samples[-2][0] < _GRAIN_S:
            self._samples.pop()
        self._samples.append((now, self._num_bytes))

    @property
    def speed(self) -> float | None:
        """Bytes per second within the window, 0.0 in a stall of its length; None in the first half second."""
        if not self._samples:
            return None
        now = self._clock()
        edge = now - self._window_s
        while len(self._samples) > 1 and self._samples[1][0] <= edge:
            self._samples.popleft()
        since, before = self._samples[0]
        span_s = min(now - since, self._window_s)
        if span_s < _FIRST_S:
            return None
        if since < edge and len(self._samples) > 1:
            # The piece that reaches into the window counts with the part of its time that lies in it.
            until, after = self._samples[1]
            before += round((after - before) * (edge - since) / (until - since))
        elif since < edge:
            before = self._num_bytes
        return (self._num_bytes - before) / span_s

    def eta_s(self, remaining_bytes: int) -> float | None:
        """Return the seconds until so many bytes more are there; None while that cannot be told."""
        if remaining_bytes <= 0:
            return 0.0
        speed = self.speed
        return remaining_bytes / speed if speed else None
