"""One request's turn at the engine: whose it is, how far it is, and whether anybody still listens."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress

from localspec.engine.events import Event
from localspec.engine.process import EngineProcess
from localspec.engine.requests import Request


class Turn:
    """State of one stream. Made in the task that asks for the stream, which is its owner."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.owner = asyncio.current_task()
        self.process: EngineProcess | None = None
        """The process that the request was sent to; None before."""
        self.is_cancelled = False
        """The user asked that it stop."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the last event has been read."""
        self.draining: asyncio.Task[None] | None = None
        """Reads the rest for a listener who has left."""
        self.deadline: float | None = None
        """Loop time at which a cancelled request must have ended; None while it may go on."""
        self.limit: asyncio.Timeout | None = None
        """Limits the reading of the next event."""
        self._listener: weakref.ref[AsyncGenerator[Event, None]] | None = None

    def set_listener(self, events: AsyncGenerator[Event, None]) -> None:
        """Remember the iterator, without keeping it alive."""
        self._listener = weakref.ref(events)

    def limit_to(self, seconds: float) -> None:
        """Let the request go on for so long and no longer. A second call changes nothing."""
        if self.deadline is not None:
            return
        self.deadline = asyncio.get_running_loop().time() + seconds
        # The limit of a reading that is over can no longer be moved.
        if self.limit is not None:
            with suppress(RuntimeError):
                self.limit.reschedule(self.deadline)

    @property
    def is_abandoned(self) -> bool:
        """Whether the listener has gone: its task has ended, or it has dropped the iterator.

        asyncio closes a dropped iterator a little later; an iterator that a traceback keeps alive, never.
        """
        has_dropped = self._listener is not None and self._listener() is None
        return has_dropped or (self.owner is not None and self.owner.done())

    async def changed(self) -> None:
        """Wait until the turn is over, or its owner has ended."""
        waited: set[asyncio.Future[None]] = {self.over}
        if self.owner is not None:
            waited.add(self.owner)
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
