"""Recordings of the wire: one JSON line per message, with the second at which it passed.

{"t": 0.0123, "dir": "in", "message": {…}}     a request, on its way into the engine
{"t": 0.0456, "dir": "out", "message": {…}}    an event, on its way out
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from localspec.engine.events import Event
from localspec.engine.requests import Cancel, Request
from localspec.engine.wire import WireError, decode_event, decode_request
from localspec.errors import UsageError


class Recorder:
    """Appends what passes over the wire to a file. It ends early when the disk is full: an answer goes on.

    Args:
        path: the .jsonl file; its folder must exist.
        clock: monotonic seconds; times are given from the first message on.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise UsageError(
                f"The recording {path} cannot be written: {error.strerror}.", "Choose another file or folder."
            ) from None
        self._clock = clock
        self._start: float | None = None

    def request(self, line: bytes) -> None:
        """Record an encoded request."""
        self._write("in", line)

    def event(self, line: bytes) -> None:
        """Record an encoded event."""
        self._write("out", line)

    def close(self) -> None:
        """Close the file. What is recorded later is dropped."""
        self._file.close()

    def _write(self, direction: str, line: bytes) -> None:
        if self._file.closed:
            return
        now = self._clock()
        if self._start is None:
            self._start = now
        head = f'{{"t": {now - self._start:.6f}, "dir": "{direction}", "message": '
        try:
            self._file.write(head.encode() + line.strip() + b"}\n")
        except OSError:
            self._file.close()


@dataclass(slots=True)
class Exchange:
    """A recorded request, with the events that answered it and their times in seconds."""

    request: Request
    at_s: float
    events: list[tuple[float, Event]] = field(default_factory=list)


def read_recording(path: Path) -> tuple[Exchange, ...]:
    """Return the recorded requests, Cancel left out, each with its events.

    A last line that is cut short is left out: the recorded program was killed while it wrote. When a
    file holds several recordings, one after the other, each id counts for the latest request that had it.

    Raises:
        UsageError: the file cannot be read, or is no recording.
    """
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise UsageError(f"The recording {path} cannot be read: {error.strerror}.", "Check the name.") from None
    exchanges: list[Exchange] = []
    by_id: dict[int, Exchange] = {}
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n") or not line.strip():
            continue
        try:
            at_s, message = _decode(line)
        except (ValueError, KeyError, TypeError, RecursionError, WireError) as error:
            why = error.message if isinstance(error, WireError) else "not a recorded message."
            raise UsageError(
                f"Line {number} of the recording {path} is damaged: {why}", "Record it again with this version."
            ) from None
        if isinstance(message, Exchange):
            exchanges.append(message)
            by_id[message.request.id] = message
        elif message.id in by_id:
            by_id[message.id].events.append((at_s, message))
    return tuple(exchange for exchange in exchanges if not isinstance(exchange.request, Cancel))


def _decode(line: bytes) -> tuple[float, Exchange | Event]:
    record = json.loads(line)
    at_s = float(record["t"])
    if not math.isfinite(at_s):
        raise ValueError(at_s)
    message = json.dumps(record["message"]).encode()
    if record["dir"] == "in":
        return at_s, Exchange(decode_request(message), at_s)
    if record["dir"] == "out":
        return at_s, decode_event(message)
    raise ValueError(record["dir"])
