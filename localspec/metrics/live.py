"""Figures of an answer while it comes, as a fold over its events. Times are the engine's own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localspec.metrics.latency import Latency, LatencyFold
from localspec.metrics.speculation import SpeculationStats

if TYPE_CHECKING:
    from localspec.engine.events import Event, RoundFinished
    from localspec.engine.values import SpeculationState

WINDOW_S = 1.0
"""Over which a speed of the series is taken; it holds two rounds at least, however slow they are."""

_FIRST_S = 0.1
"""After so short a time a speed would say nothing yet."""

_MAX_POINTS = 240


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """An answer's figures at one moment."""

    stats: SpeculationStats = field(default_factory=SpeculationStats)
    latency: Latency = field(default_factory=lambda: LatencyFold().result())
    speed: tuple[tuple[float, float], ...] = ()
    """Seconds since the request, and decode tokens per second over the last second."""
    num_read: int = 0
    """Tokens of the prompt that the target has."""
    num_prompt: int = 0
    n_past: int | None = None
    """Positions in the target's KV cache."""
    speculation: SpeculationState | None = None
    peak_rss_bytes: int | None = None
    """Of the engine process; known at the end, as are the next."""
    device_used_bytes: int | None = None

    @property
    def now_tps(self) -> float | None:
        """Decode tokens per second over the last second."""
        return self.speed[-1][1] if self.speed else None


class LiveFold:
    """Takes the events of one generation, and gives its figures at any moment."""

    def __init__(self) -> None:
        self._latency = LatencyFold()
        self._stats = SpeculationStats()
        self._unfolded: list[RoundFinished] = []
        self._arrivals: deque[tuple[float, int]] = deque()
        self._speed: list[tuple[float, float]] = []
        self._least_s = 0.05
        self._num_tokens = 0
        self._read = (0, 0)
        self._n_past: int | None = None
        self._speculation: SpeculationState | None = None
        self._memory: tuple[int | None, int | None] = (None, None)

    def observe(self, event: Event) -> None:
        """Take an event; those of other requests than a generation are ignored."""
        self._latency.observe(event)
        if event.type == "round_finished":
            # Several at once cost a part of what they cost one by one, between which a model has the processor.
            self._unfolded.append(event)
            self._n_past = event.n_past
            self._arrive(event.at_s, len(event.emitted))
        elif event.type == "generation_started":
            self._read = (event.num_reused, len(event.prompt_tokens))
            self._n_past = event.num_reused
            self._speculation = event.speculation
        elif event.type == "prefill_progress" and event.model == "target":
            self._read = (event.num_done, event.num_total)
        elif event.type == "generation_finished":
            self._n_past = event.n_past
            self._speculation = event.speculation
            self._memory = (event.peak_rss_bytes, event.device_used_bytes)

    def figures(self) -> LiveFigures:
        """Return the figures so far."""
        for round_ in self._unfolded:
            self._stats = self._stats.observe(round_)
        self._unfolded.clear()
        return LiveFigures(
            self._stats,
            self._latency.result(),
            tuple(self._speed),
            *self._read,
            self._n_past,
            self._speculation,
            *self._memory,
        )

    def _arrive(self, at_s: float, count: int) -> None:
        self._num_tokens += count
        arrivals = self._arrivals
        arrivals.append((at_s, self._num_tokens))
        while len(arrivals) > 2 and arrivals[1][0] <= at_s - WINDOW_S:
            arrivals.popleft()
        first_s, first_count = arrivals[0]
        elapsed = at_s - first_s
        if elapsed < _FIRST_S or (self._speed and at_s - self._speed[-1][0] < self._least_s):
            return
        self._speed.append((at_s, (self._num_tokens - first_count) / elapsed))
        if len(self._speed) > _MAX_POINTS:
            del self._speed[1::2]
            self._least_s *= 2.0
