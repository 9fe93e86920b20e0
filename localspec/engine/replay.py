"""The engine's interface over a recording: no process, no model, the recorded events."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from localspec.engine.events import EngineFailed, Event, GenerationFinished, GenerationStarted, RoundFinished
from localspec.engine.interface import LAST_EVENTS
from localspec.engine.recording import Exchange, read_recording
from localspec.engine.requests import Cancel, Request


class ReplayEngine:
    """Answers each request with the events of the next recorded request of the same type (see `interface.Engine`).

    What the request says is not compared with what was asked then. A request too many gets an
    EngineFailed. Cancel stops a replayed generation with GenerationFinished(cancelled), anything
    else with an EngineFailed.

    Args:
        recording: a .jsonl file that the client recorded, or exchanges already read.
        speed: 1 for the recorded pace, 2 for twice as fast; None for at once.
        clock: monotonic seconds.
        sleep: waits that many seconds of the clock.

    Raises:
        UsageError: the file is no recording.
    """

    def __init__(
        self,
        recording: Path | Sequence[Exchange],
        speed: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        exchanges = read_recording(recording) if isinstance(recording, Path) else recording
        self._exchanges: defaultdict[str, deque[Exchange]] = defaultdict(deque)
        for exchange in exchanges:
            self._exchanges[exchange.request.type].append(exchange)
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        # Above all recorded ids, so that an id in a log is either recorded or replayed.
        self._ids = itertools.count(max((exchange.request.id for exchange in exchanges), default=0) + 1)
        self._running: dict[int, asyncio.Event] = {}
        self._is_closed = False

    @property
    def death(self) -> str:
        """Say that it has not ended: there is no process."""
        return ""

    def next_id(self) -> int:
        """Return an id that no earlier request had, the recorded ones included."""
        return next(self._ids)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Yield the recorded events under the id of this request, the last one included."""
        if isinstance(request, Cancel):
            await self.cancel(request.request_id)
            return
        exchange = None if self._is_closed else next(iter(self._exchanges[request.type]), None)
        if exchange is None:
            yield self._refuse(request)
            return
        self._exchanges[request.type].popleft()
        cancelled = self._running[request.id] = asyncio.Event()
        start_s = self._clock()
        past: list[Event] = []
        try:
            for at_s, event in exchange.events:
                await self._pause(start_s, at_s - exchange.at_s, cancelled)
                if cancelled.is_set() or self._is_closed:
                    yield self._stopped(request, exchange, past)
                    return
                past.append(event)
                yield replace(event, id=request.id)
            if not past or past[-1].type not in LAST_EVENTS:
                yield EngineFailed(request.id, "UsageError", "The recording breaks off here.", "It was cut short.")
        finally:
            del self._running[request.id]

    async def cancel(self, request_id: int) -> None:
        """Stop a running request; its stream ends with a last event."""
        if request_id in self._running:
            self._running[request_id].set()

    async def close(self) -> None:
        """End what is running. Requests after this get an EngineFailed."""
        self._is_closed = True
        for cancelled in self._running.values():
            cancelled.set()

    async def _pause(self, start_s: float, after_s: float, cancelled: asyncio.Event) -> None:
        """Wait until the event is due, counted from the request so that waits do not add up, or until Cancel."""
        await asyncio.sleep(0)
        wait_s = start_s + after_s / self._speed - self._clock() if self._speed else 0.0
        if wait_s <= 0 or cancelled.is_set():
            return
        waits: set[asyncio.Future[object]] = {
            asyncio.ensure_future(self._sleep(wait_s)),
            asyncio.ensure_future(cancelled.wait()),
        }
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _refuse(self, request: Request) -> EngineFailed:
        why = "The replayed engine was closed." if self._is_closed else f"The recording has no further {request.type}."
        return EngineFailed(request.id, "UsageError", why, "Replay only what was recorded, in number and kind.")

    def _stopped(self, request: Request, exchange: Exchange, past: Sequence[Event]) -> Event:
        last = exchange.events[-1][1]
        state = next((event.speculation for event in past if isinstance(event, GenerationStarted)), None)
        finish = last if isinstance(last, GenerationFinished) else None
        if finish is not None:
            state = state or finish.speculation
        if request.type != "generate" or state is None:
            return EngineFailed(request.id, "LocalspecError", "Cancelled.", "")
        rounds = [event for event in past if isinstance(event, RoundFinished)]
        return GenerationFinished(
            id=request.id,
            finish_reason="cancelled",
            tail_text="",
            speculation=state,
            prefill_s=finish.prefill_s if finish else 0.0,
            n_past=rounds[-1].n_past if rounds else 0,
            peak_rss_bytes=finish.peak_rss_bytes if finish else 0,
            device_used_bytes=finish.device_used_bytes if finish else 0,
            at_s=rounds[-1].at_s if rounds else 0.0,
        )
