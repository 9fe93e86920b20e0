"""Streams of the engine client, against a fake worker that misbehaves on demand."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from localspec.engine.client import EngineClient
from localspec.engine.events import EngineFailed, Event, GenerationFinished, Probed, RoundFinished
from localspec.engine.interface import last_event
from localspec.engine.requests import Cancel, Configure, Generate, LoadModels, Probe
from localspec.engine.values import SpeculationSettings
from localspec.errors import DecodeError, EngineDiedError, UsageError
from tests.worker_streams import COMMAND, QUICK, assert_nothing_is_left, collect, generate, load, text_of, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake worker uses POSIX signals")


async def test_the_process_starts_with_the_first_request_and_streams_in_order(client: EngineClient) -> None:
    assert client.pid is None
    events = await collect(client, LoadModels(client.next_id(), "toy.gguf"))
    assert [event.type for event in events] == ["load_progress"] * 3 + ["models_loaded"]
    pid = client.pid
    assert pid is not None

    answer = await collect(client, generate(client, "answer 4"))

    assert text_of(answer) == "w0 w1 w2 w3 "
    assert isinstance(answer[-1], GenerationFinished)
    assert {event.id for event in answer} == {2}
    assert client.pid == pid


async def test_cancel_reaches_the_worker_while_it_generates(client: EngineClient) -> None:
    await load(client)
    request = generate(client, "hang 2")
    events = []
    async with asyncio.timeout(5):
        async for event in client.stream(request):
            events.append(event)
            if isinstance(event, RoundFinished) and event.index == 1:
                await client.cancel(request.id)
    assert isinstance(events[-1], GenerationFinished)
    assert events[-1].finish_reason == "cancelled"
    assert text_of(events) == "w0 w1 "


async def test_cancel_of_a_waiting_request_holds_until_its_turn(client: EngineClient) -> None:
    await load(client)
    first, second = generate(client, "hang 1"), generate(client, "hang 1")
    first_task = asyncio.create_task(collect(client, first))
    await until(lambda: client.pid is not None)
    second_task = asyncio.create_task(collect(client, second))
    await asyncio.sleep(0.01)
    await client.cancel(second.id)
    await client.cancel(first.id)
    async with asyncio.timeout(5):
        ends = [(await first_task)[-1], (await second_task)[-1]]
    assert [event.id for event in ends] == [first.id, second.id]
    assert [event.finish_reason for event in ends if isinstance(event, GenerationFinished)] == ["cancelled"] * 2


async def test_cancel_of_an_unknown_request_changes_nothing(client: EngineClient) -> None:
    await client.cancel(99)
    await load(client)
    await client.cancel(99)
    assert [event async for event in client.stream(Cancel(client.next_id(), 99))] == []
    assert text_of(await collect(client, generate(client, "answer 1"))) == "w0 "


async def test_kill_9_keeps_the_text_names_the_signal_and_the_next_load_works(client: EngineClient) -> None:
    await load(client)
    first_pid = client.pid

    events = await collect(client, generate(client, "sigkill 3"))

    assert text_of(events) == "w0 w1 w2 "
    death = events[-1]
    assert isinstance(death, EngineFailed)
    assert (death.is_fatal, death.exit_code, death.kind) == (True, -9, "EngineDiedError")
    assert "killed (signal 9)" in death.message and "memory" in death.message
    assert death.log_tail == ("last words",)

    [again] = await collect(client, generate(client, "answer"))
    assert isinstance(again, EngineFailed)
    assert "loaded again" in again.hint and "signal 9" in again.message
    with pytest.raises(EngineDiedError):
        await last_event(client, Configure(client.next_id(), SpeculationSettings()))

    await load(client)
    assert client.pid not in (None, first_pid)
    assert text_of(await collect(client, generate(client, "answer 1"))) == "w0 "


async def test_a_process_killed_while_idle_is_replaced_by_the_next_load(client: EngineClient) -> None:
    await load(client)
    assert client.pid is not None
    os.kill(client.pid, signal.SIGKILL)
    await until(lambda: client.pid is None)
    [failed] = await collect(client, generate(client, "answer"))
    assert isinstance(failed, EngineFailed)
    assert failed.exit_code == -9
    await load(client)


@pytest.mark.parametrize(
    ("script", "exit_code", "words"),
    [("exit3 1", 3, "exit code 3"), ("garbage 1", -9, "protocol")],
)
async def test_a_broken_stream_ends_in_a_fatal_failure(
    client: EngineClient, script: str, exit_code: int, words: str
) -> None:
    await load(client)
    events = await collect(client, generate(client, script))
    assert text_of(events) == "w0 "
    failed = events[-1]
    assert isinstance(failed, EngineFailed)
    assert failed.is_fatal
    assert failed.exit_code == exit_code
    assert words in failed.message
    assert "\x1b" not in failed.message + failed.hint
    assert client.pid is None


async def test_death_is_noticed_although_a_grandchild_holds_the_pipes(client: EngineClient) -> None:
    await load(client)
    async with asyncio.timeout(4):
        events = await collect(client, generate(client, "grandchild 1"))
    assert isinstance(events[-1], EngineFailed)
    assert events[-1].exit_code == 3


async def test_a_death_while_loading_names_the_abort(client: EngineClient) -> None:
    with pytest.raises(EngineDiedError, match="signal 6"):
        await last_event(client, LoadModels(client.next_id(), "die"))


async def test_a_line_of_several_megabytes_comes_whole(client: EngineClient) -> None:
    await load(client)
    events = await collect(client, generate(client, "long 0"))
    assert len(text_of(events)) == 5_000_000


async def test_a_line_beyond_the_limit_is_a_failure(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.engine.process.LINE_LIMIT", 1_000_000)
    await load(client)
    events = await collect(client, generate(client, "long 0"))
    assert isinstance(events[-1], EngineFailed)
    assert events[-1].is_fatal
    assert "without end" in events[-1].message


async def test_a_large_request_reaches_the_worker(client: EngineClient) -> None:
    await load(client)
    events = await collect(client, Generate(client.next_id(), text="answer 1 " + "0 " * 2_000_000))
    assert text_of(events) == "w0 "


async def test_events_of_other_requests_are_left_out(client: EngineClient) -> None:
    await load(client)
    assert text_of(await collect(client, generate(client, "other_id 1"))) == "w0 "


async def test_a_failure_that_is_not_fatal_leaves_the_process(client: EngineClient) -> None:
    await load(client)
    with pytest.raises(DecodeError) as caught:
        await last_event(client, generate(client, "refuse"))
    assert caught.value.hint == "Ask for less."
    assert text_of(await collect(client, generate(client, "answer 1"))) == "w0 "


async def test_leaving_the_loop_cancels_and_the_next_request_is_clean(client: EngineClient) -> None:
    await load(client)
    pid = client.pid
    async for event in client.stream(generate(client, "hang 2")):
        if isinstance(event, RoundFinished):
            break
    async with asyncio.timeout(5):
        events = await collect(client, generate(client, "answer 2"))
    assert text_of(events) == "w0 w1 "
    assert client.pid == pid


async def test_cancelling_the_reading_task_drains_its_request(client: EngineClient) -> None:
    await load(client)
    pid = client.pid
    started = asyncio.Event()

    async def read() -> None:
        async for event in client.stream(generate(client, "hang 1")):
            if isinstance(event, RoundFinished):
                started.set()

    reading = asyncio.create_task(read())
    await started.wait()
    reading.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert text_of(await collect(client, generate(client, "answer 1"))) == "w0 "
    assert client.pid == pid


async def test_an_iterator_kept_by_a_task_that_ended_does_not_block(client: EngineClient) -> None:
    await load(client)
    kept: list[AsyncIterator[Event]] = []

    async def read_one() -> None:
        kept.append(client.stream(generate(client, "hang 1")))
        await anext(kept[0])

    await asyncio.create_task(read_one())
    async with asyncio.timeout(5):
        assert text_of(await collect(client, generate(client, "answer 1"))) == "w0 "
    assert [event async for event in kept[0]] == []


async def test_a_worker_that_ignores_cancel_is_killed(tmp_path: Path) -> None:
    client = EngineClient(tmp_path / "engine.log", command=COMMAND, patience=QUICK)
    await load(client)
    async with asyncio.timeout(5):
        stream = client.stream(generate(client, "deaf 1"))
        async for event in stream:
            if isinstance(event, RoundFinished):
                break
        await stream.aclose()  # type: ignore[attr-defined]
    assert client.pid is None
    [failed] = await collect(client, generate(client, "answer"))
    assert isinstance(failed, EngineFailed)
    assert "did not stop" in failed.message
    await load(client)
    await client.close()
    await assert_nothing_is_left()


async def test_a_worker_that_ignores_an_explicit_cancel_is_killed(tmp_path: Path) -> None:
    client = EngineClient(tmp_path / "engine.log", command=COMMAND, patience=QUICK)
    await load(client)
    request = generate(client, "deaf 1")
    last: Event | None = None
    async with asyncio.timeout(5):
        async for last in client.stream(request):
            if isinstance(last, RoundFinished):
                await client.cancel(request.id)
                await client.cancel(request.id)
    assert isinstance(last, EngineFailed) and "did not stop" in last.message
    assert client.pid is None
    await client.close()
    await assert_nothing_is_left()


async def test_requests_of_two_tasks_take_turns(client: EngineClient) -> None:
    await load(client)
    results = await asyncio.gather(*(collect(client, generate(client, f"answer {count} 0.005")) for count in (3, 2, 1)))
    assert [text_of(events) for events in results] == ["w0 w1 w2 ", "w0 w1 ", "w0 "]


async def test_a_task_inside_its_own_stream_is_refused_a_second(client: EngineClient) -> None:
    await load(client)
    refusals: list[Exception] = []
    async for event in client.stream(generate(client, "answer 2")):
        if isinstance(event, RoundFinished):
            with pytest.raises(UsageError, match="busy") as caught:
                await last_event(client, Probe(client.next_id()))
            refusals.append(caught.value)
    assert len(refusals) == 2
    assert isinstance(await last_event(client, Probe(client.next_id())), Probed)


async def test_requests_that_need_models_are_refused_before_a_load(client: EngineClient) -> None:
    with pytest.raises(UsageError, match="No models are loaded"):
        await last_event(client, generate(client, "answer"))
    assert client.pid is None
