"""Tokens per second over a sliding window, for a display that moves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class RateMeter:
    """Counts what was added within the last `window_s` seconds of a clock."""

    def __init__(self, clock: Callable[[], float], window_s: float = 2.0) -> None:
        self._clock = clock
        self._window_s = window_s
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, count: int) -> None:
        """Record that `count` more arrived now. What the first call adds has no duration: it only starts the clock."""
        self._samples.append((self._clock(), count))
        self._forget()

    def rate(self) -> float | None:
        """Return arrivals per second; None until there are two samples, and after a window without any."""
        self._forget()
        if len(self._samples) < 2:
            return None
        elapsed = self._clock() - self._samples[0][0]
        arrived = sum(count for _, count in self._samples) - self._samples[0][1]
        return arrived / elapsed if elapsed > 0 else None

    def reset(self) -> None:
        """Forget everything."""
        self._samples.clear()

    def _forget(self) -> None:
        # One sample from before the window stays: it marks where the first gap inside the window began.
        horizon = self._clock() - self._window_s
        while len(self._samples) > 1 and self._samples[1][0] < horizon:
            self._samples.popleft()
        if self._samples and self._samples[-1][0] < horizon:
            self._samples.clear()
