"""An engine through which somebody else listens."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localspec.engine.events import Event
    from localspec.engine.interface import Engine
    from localspec.engine.requests import Request


class OverheardEngine:
    """Passes everything on, and tells a listener of each event before whoever asked has it.

    Args:
        engine: does the work.
        on_event: hears the request and the event.
    """

    def __init__(self, engine: Engine, on_event: Callable[[Request, Event], None]) -> None:
        self._engine = engine
        self._on_event = on_event

    @property
    def death(self) -> str:
        """How it has ended by itself; empty as long as it has not."""
        return self._engine.death

    def next_id(self) -> int:
        """Return an id that no earlier request had."""
        return self._engine.next_id()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Send a request and yield the events that answer it."""
        events = self._engine.stream(request)
        try:
            async for event in events:
                self._on_event(request, event)
                yield event
        finally:
            # A stream left early holds the engine until it is closed.
            if inspect.isasyncgen(events):
                await events.aclose()

    async def cancel(self, request_id: int) -> None:
        """Ask that a running request stop."""
        await self._engine.cancel(request_id)

    async def close(self) -> None:
        """End the engine."""
        await self._engine.close()
