"""The worker's end of the wire."""

from __future__ import annotations

import threading
from typing import BinaryIO

from localspec.engine import wire
from localspec.engine.events import Event


class EventWriter:
    """Writes each event as one line, whole, from whatever thread."""

    def __init__(self, stream: BinaryIO) -> None:
        """Take an unbuffered stream."""
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, event: Event) -> None:
        """Write an event.

        Raises:
            BrokenPipeError: nobody reads any more.
        """
        line = memoryview(wire.encode_event(event))
        with self._lock:
            while line:
                line = line[self._stream.write(line) or 0 :]
