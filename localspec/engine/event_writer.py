"""The worker's end of the wire."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import BinaryIO

from localspec.engine import wire
from localspec.engine.events import Event, RoundFinished

HOLD_S = 0.025
"""A round that ends sooner than this after the last write waits for the next one."""


class EventWriter:
    """Writes events as lines; rounds that follow fast on each other go out together.

    Each write wakes the app, which then takes a core from llama.cpp's threads. At 100 rounds a second on two
    cores that cost 2 to 3 % of the speed; nobody sees a token 25 ms later. Times are stamped
    before this, and anything but a round goes out at once and takes the held rounds with it.
    """

    def __init__(self, stream: BinaryIO, clock: Callable[[], float] = perf_counter) -> None:
        """Take an unbuffered stream."""
        self._stream = stream
        self._clock = clock
        self._lock = threading.Lock()
        self._held = bytearray()
        self._written_s = float("-inf")

    def write(self, event: Event) -> None:
        """Write an event, or hold it until the next; safe from any thread.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        line = wire.encode_event(event)
        with self._lock:
            self._held += line
            now = self._clock()
            if isinstance(event, RoundFinished) and event.index and now - self._written_s < HOLD_S:
                return
            self._written_s = now
            data, self._held = memoryview(self._held), bytearray()
            while data:
                data = data[self._stream.write(data) or 0 :]
