"""Events reach the pipe whole and in order."""

from __future__ import annotations

import io
import threading

from localspec.engine import wire
from localspec.engine.event_writer import EventWriter
from localspec.engine.events import PrefillProgress


class Pipe(io.RawIOBase):
    """Takes at most a few bytes a write, as a full pipe does."""

    def __init__(self, most: int) -> None:
        self.data = b""
        self._most = most

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        taken = bytes(data)[: self._most]  # type: ignore[call-overload]
        self.data += taken
        return len(taken)


def test_a_pipe_that_takes_little_gets_every_byte_in_order() -> None:
    pipe = Pipe(7)
    writer = EventWriter(pipe)  # type: ignore[arg-type]
    events = [PrefillProgress(1, "target", index, 2, 0.0) for index in range(3)]
    for event in events:
        writer.write(event)
    assert [wire.decode_event(line) for line in pipe.data.splitlines()] == events


def test_two_threads_never_mix_their_lines() -> None:
    pipe = Pipe(5)
    writer = EventWriter(pipe)  # type: ignore[arg-type]

    def write_all(number: int) -> None:
        for index in range(50):
            writer.write(PrefillProgress(number, "target", index, 50, 0.0))

    threads = [threading.Thread(target=write_all, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [wire.decode_event(line) for line in pipe.data.splitlines()]
    assert len(events) == 100
    assert [e.num_done for e in events if isinstance(e, PrefillProgress) and e.id == 1] == list(range(50))
