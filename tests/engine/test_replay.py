"""Recordings, and the engine that replays them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.events import EngineFailed, Event, GenerationFinished, RoundFinished
from localspec.engine.interface import Engine, last_event
from localspec.engine.recording import Exchange, Recorder, read_recording
from localspec.engine.replay import ReplayEngine
from localspec.engine.requests import Cancel, Generate, LoadModels, Probe, Request
from localspec.engine.wire import encode_event, encode_request
from localspec.errors import EngineDiedError, UsageError

RECORDING = Path(__file__).parent.parent / "recordings" / "two_answers_and_a_death.jsonl"


class FakeTime:
    """A clock that only its own sleep moves."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


async def collect(engine: Engine, request: Request) -> list[Event]:
    return [event async for event in engine.stream(request)]


def replay(speed: float | None = None, time: FakeTime | None = None) -> ReplayEngine:
    time = time or FakeTime()
    return ReplayEngine(RECORDING, speed, clock=time.clock, sleep=time.sleep)


def generate(engine: Engine) -> Generate:
    return Generate(engine.next_id(), text="something else than was asked")


async def test_requests_get_the_events_of_their_own_kind_in_order_under_their_own_id() -> None:
    engine = replay()
    recorded = [exchange for exchange in read_recording(RECORDING) if exchange.request.type == "generate"]

    first, second = generate(engine), generate(engine)
    answers = [await collect(engine, first), await collect(engine, second)]
    loaded = await collect(engine, LoadModels(engine.next_id(), "elsewhere.gguf"))

    for request, exchange, answer in zip((first, second), recorded, answers, strict=False):
        assert answer == [replace(event, id=request.id) for _, event in exchange.events]
        assert isinstance(answer[-1], GenerationFinished)
    assert answers[0] != answers[1]
    assert loaded[-1].type == "models_loaded"


async def test_ids_are_new_to_the_recording() -> None:
    engine = replay()
    recorded = {exchange.request.id for exchange in read_recording(RECORDING)}
    assert not recorded & {engine.next_id() for _ in range(20)}


async def test_a_recorded_death_is_replayed() -> None:
    engine = replay()
    await collect(engine, generate(engine))
    await collect(engine, generate(engine))
    events = await collect(engine, generate(engine))
    assert isinstance(events[-1], EngineFailed)
    assert events[-1].exit_code == -9
    assert any(isinstance(event, RoundFinished) for event in events)


async def test_a_request_too_many_or_of_a_kind_not_recorded_is_refused() -> None:
    engine = replay()
    with pytest.raises(UsageError, match="no further probe"):
        await last_event(engine, Probe(engine.next_id()))
    for _ in range(2):
        await collect(engine, generate(engine))
    with pytest.raises(EngineDiedError):
        await last_event(engine, generate(engine))
    with pytest.raises(UsageError, match="no further generate"):
        await last_event(engine, generate(engine))


@pytest.mark.parametrize("speed", [1.0, 4.0])
async def test_events_come_at_the_recorded_pace(speed: float) -> None:
    time = FakeTime()
    engine = replay(speed, time)
    exchange = next(exchange for exchange in read_recording(RECORDING) if exchange.request.type == "generate")
    arrived = []
    async for _ in engine.stream(generate(engine)):
        arrived.append(time.now_s - 100.0)
        # A consumer that takes its time must not shift what follows.
        time.now_s += 0.001
    due = [(at_s - exchange.at_s) / speed for at_s, _ in exchange.events]
    assert all(late >= wanted - 1e-9 for late, wanted in zip(arrived, due, strict=True))
    assert arrived[-1] <= due[-1] + 0.001 * len(due)


async def test_at_once_never_sleeps_and_lets_other_tasks_run() -> None:
    time = FakeTime()
    engine = replay(None, time)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    events = await collect(engine, generate(engine))
    counting.cancel()
    assert time.slept == []
    assert turns >= len(events)


async def test_cancel_ends_a_generation_with_its_last_event() -> None:
    engine = replay()
    request = generate(engine)
    events = []
    async for event in engine.stream(request):
        events.append(event)
        if isinstance(event, RoundFinished) and event.index == 1:
            assert [item async for item in engine.stream(Cancel(engine.next_id(), request.id))] == []
    finished = events[-1]
    assert isinstance(finished, GenerationFinished)
    assert (finished.id, finished.finish_reason, finished.tail_text) == (request.id, "cancelled", "")
    rounds = [event for event in events if isinstance(event, RoundFinished)]
    assert len(rounds) == 2
    assert finished.n_past == rounds[-1].n_past


async def test_cancel_wakes_a_replay_that_waits() -> None:
    async def sleep_for_good(seconds: float) -> None:
        await asyncio.Event().wait()

    engine = ReplayEngine(RECORDING, 0.001, clock=lambda: 0.0, sleep=sleep_for_good)
    request = LoadModels(engine.next_id(), "toy.gguf")
    reading = asyncio.create_task(collect(engine, request))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not reading.done()
    await engine.cancel(request.id)
    async with asyncio.timeout(2):
        events = await reading
    assert [event.type for event in events] == ["engine_failed"]


async def test_close_ends_what_runs_and_refuses_what_follows() -> None:
    engine = replay()
    request = generate(engine)
    stream = engine.stream(request)
    await anext(stream)
    await engine.close()
    await engine.close()
    assert [event.type for event in [event async for event in stream]] == ["generation_finished"]
    with pytest.raises(UsageError, match="closed"):
        await last_event(engine, generate(engine))


async def test_a_recording_that_breaks_off_says_so() -> None:
    whole = next(exchange for exchange in read_recording(RECORDING) if exchange.request.type == "generate")
    engine = ReplayEngine([Exchange(whole.request, whole.at_s, whole.events[:-1])])
    events = await collect(engine, generate(engine))
    assert isinstance(events[-1], EngineFailed)
    assert "breaks off" in events[-1].message


def test_what_is_recorded_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "again.jsonl"
    ticks = iter([7.0, 7.5, 8.25])
    exchange = read_recording(RECORDING)[0]
    recorder = Recorder(path, lambda: next(ticks))
    recorder.request(encode_request(exchange.request))
    for _, event in exchange.events[:2]:
        recorder.event(encode_event(event))
    recorder.close()
    recorder.event(b"after the end\n")

    [again] = read_recording(path)
    assert (again.request, again.at_s) == (exchange.request, 0.0)
    assert again.events == [(0.5, exchange.events[0][1]), (1.25, exchange.events[1][1])]


def test_a_last_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    path.write_bytes(RECORDING.read_bytes()[:-20])
    whole, cut = read_recording(RECORDING), read_recording(path)
    assert cut[:-1] == whole[:-1]
    assert cut[-1].events == whole[-1].events[:-1]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{}",
        '{"t": 0, "dir": "up", "message": {}}',
        '{"t": 0, "dir": "in", "message": 1}',
        # Nothing would ever be due after such a time.
        '{"t": NaN, "dir": "in", "message": {"type": "unload", "id": 1}}',
        '{"t": Infinity, "dir": "in", "message": {"type": "unload", "id": 1}}',
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "damaged.jsonl"
    first = RECORDING.read_text().splitlines()[0]
    path.write_text(f"{first}\n{line or 'no JSON'}\n")
    with pytest.raises(UsageError, match="Line 2"):
        read_recording(path)


def test_a_recording_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ReplayEngine(tmp_path / "absent.jsonl")
