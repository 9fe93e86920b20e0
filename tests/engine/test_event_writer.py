"""What goes out when, with a clock of the test's own."""

from __future__ import annotations

import io

from localspec.engine import wire
from localspec.engine.event_writer import HOLD_S, EventWriter
from localspec.engine.events import Event, PrefillProgress, RoundFinished


class Pipe(io.RawIOBase):
    """Takes at most a few bytes a write, as a full pipe does."""

    def __init__(self, most: int = 1 << 20) -> None:
        self.writes: list[bytes] = []
        self._most = most

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        taken = bytes(data)[: self._most]  # type: ignore[call-overload]
        self.writes.append(taken)
        return len(taken)

    def types(self) -> list[list[str]]:
        return [[wire.decode_event(line).type for line in written.splitlines()] for written in self.writes]


def finished(index: int) -> RoundFinished:
    return RoundFinished(1, index, "", (), 0, 0, (), 0, "off", 0.0, 0.0, 0.0, 0.0, 0.0, 0)


def write(events: list[tuple[float, Event]], most: int = 1 << 20) -> Pipe:
    pipe = Pipe(most)
    now = 0.0
    writer = EventWriter(pipe, lambda: now)  # type: ignore[arg-type]
    for now, event in events:  # noqa: B007
        writer.write(event)
    return pipe


def test_fast_rounds_go_out_together_and_the_first_token_at_once() -> None:
    step = HOLD_S / 2.5
    pipe = write([(step * index, finished(index)) for index in range(7)])
    assert [len(group) for group in pipe.types()] == [1, 3, 3]


def test_slow_rounds_go_out_one_by_one() -> None:
    pipe = write([(HOLD_S * 1.1 * index, finished(index)) for index in range(4)])
    assert [len(group) for group in pipe.types()] == [1, 1, 1, 1]


def test_anything_else_goes_out_at_once_and_in_order() -> None:
    progress = PrefillProgress(1, "target", 1, 2, 0.0)
    pipe = write([(0.0, finished(0)), (0.001, finished(1)), (0.002, progress)])
    assert pipe.types() == [["round_finished"], ["round_finished", "prefill_progress"]]


def test_a_pipe_that_takes_little_gets_every_byte() -> None:
    whole, pieces = (b"".join(write([(0.0, finished(0)), (1.0, finished(1))], most).writes) for most in (1 << 20, 7))
    assert pieces == whole
