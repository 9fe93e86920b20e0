"""The client of the engine process, against a fake worker that misbehaves on demand."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from localspec.engine.client import EngineClient, Patience
from localspec.engine.events import EngineFailed, Event, GenerationFinished, ModelsLoaded, Probed, RoundFinished
from localspec.engine.interface import Engine, last_event
from localspec.engine.recording import read_recording
from localspec.engine.requests import Cancel, Configure, Generate, LoadModels, Probe, Request, Unload
from localspec.engine.values import SpeculationSettings
from localspec.errors import DecodeError, EngineDiedError, UsageError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake worker uses POSIX signals")

FAKE_WORKER = Path(__file__).parent.parent / "fake_worker.py"
COMMAND = (sys.executable, "-I", "-S", str(FAKE_WORKER))
QUICK = Patience(cancel_s=0.3, unload_s=0.3, terminate_s=0.3)
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[EngineClient]:
    client = EngineClient(tmp_path / "engine.log", command=COMMAND)
    yield client
    await client.close()
    await assert_nothing_is_left()


async def assert_nothing_is_left() -> None:
    assert psutil.Process().children() == []
    tasks = {task for task in asyncio.all_tasks() if task.get_name().startswith("engine ")}
    assert tasks == set()
    gc.collect()


async def collect(engine: Engine, request: Request) -> list[Event]:
    return [event async for event in engine.stream(request)]


async def load(engine: Engine) -> None:
    assert isinstance(await last_event(engine, LoadModels(engine.next_id(), "toy.gguf")), ModelsLoaded)


def generate(engine: Engine, script: str) -> Generate:
    return Generate(engine.next_id(), text=script)


def text_of(events: list[Event]) -> str:
    return "".join(token.text for event in events if isinstance(event, RoundFinished) for token in event.emitted)


async def until(condition: Callable[[], bool], timeout_s: float = 5.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)


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


async def test_unload_ends_the_process_and_is_no_death(client: EngineClient) -> None:
    await load(client)
    [unloaded] = await collect(client, Unload(client.next_id()))
    assert unloaded.type == "unloaded"
    assert client.pid is None
    [failed] = await collect(client, generate(client, "answer"))
    assert isinstance(failed, EngineFailed)
    assert not failed.is_fatal
    assert [event.type for event in await collect(client, Unload(client.next_id()))] == ["unloaded"]


async def test_close_twice_and_after_it_nothing_starts(client: EngineClient) -> None:
    await client.close()
    await load_fails(client)
    await asyncio.gather(client.close(), client.close())


async def load_fails(client: EngineClient) -> None:
    with pytest.raises(UsageError, match="closed"):
        await last_event(client, LoadModels(client.next_id(), "toy.gguf"))


@pytest.mark.parametrize("script", ["hang 1", "deaf 1"])
async def test_close_during_a_generation_ends_the_stream(tmp_path: Path, script: str) -> None:
    client = EngineClient(tmp_path / "engine.log", command=COMMAND, patience=QUICK)
    await load(client)
    pid = client.pid
    assert pid is not None
    started = asyncio.Event()
    events: list[Event] = []

    async def read() -> None:
        async for event in client.stream(generate(client, script)):
            events.append(event)
            if isinstance(event, RoundFinished):
                started.set()

    reading = asyncio.create_task(read())
    await started.wait()
    async with asyncio.timeout(5):
        await client.close()
        await reading
    assert not psutil.pid_exists(pid)
    assert events[-1].type == ("generation_finished" if script == "hang 1" else "engine_failed")
    await assert_nothing_is_left()


async def test_close_in_a_finally_block_of_a_cancelled_task(tmp_path: Path) -> None:
    pids: list[int | None] = []

    async def work() -> None:
        client = EngineClient(tmp_path / "engine.log", command=COMMAND, patience=QUICK)
        try:
            await load(client)
            pids.append(client.pid)
            await collect(client, generate(client, "deaf 1"))
        finally:
            await client.close()

    working = asyncio.create_task(work())
    await until(lambda: bool(pids))
    for _ in range(3):
        working.cancel()
        await asyncio.sleep(0.02)
    with pytest.raises(asyncio.CancelledError):
        await working
    assert pids[0] is not None
    await until(lambda: not psutil.pid_exists(pids[0] or 0))
    await until(lambda: not any(task.get_name().startswith("engine ") for task in asyncio.all_tasks()))


def test_a_loop_that_ends_without_close_leaves_no_process(tmp_path: Path) -> None:
    pids: list[int] = []

    async def forget() -> None:
        client = EngineClient(tmp_path / "engine.log", command=COMMAND, patience=QUICK)
        await load(client)
        pids.append(client.pid or 0)
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        assert not closing.done()

    asyncio.run(forget())
    assert not psutil.pid_exists(pids[0])


async def test_a_command_that_does_not_exist_is_a_clear_failure(tmp_path: Path) -> None:
    client = EngineClient(tmp_path / "engine.log", command=(str(tmp_path / "absent"),))
    with pytest.raises(EngineDiedError, match="cannot be started"):
        await last_event(client, Probe(client.next_id()))
    await client.close()


async def test_a_file_name_that_is_no_unicode_is_refused(client: EngineClient) -> None:
    with pytest.raises(UsageError, match="Unicode"):
        await last_event(client, LoadModels(client.next_id(), os.fsdecode(b"caf\xe9.gguf")))
    await load(client)


async def test_what_the_worker_prints_goes_to_the_log_and_not_to_the_terminal(
    client: EngineClient, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    await load(client)
    assert text_of(await collect(client, generate(client, "chatter 1"))) == "w0 "
    await client.close()
    assert capfd.readouterr() == ("", "")
    log = (tmp_path / "engine.log").read_text()
    assert all(words in log for words in ("printed to stdout", "written to fd 1", "written to fd 2"))


async def test_the_child_is_out_of_reach_of_the_terminals_interrupt(client: EngineClient) -> None:
    await load(client)
    assert client.pid is not None
    assert os.getpgid(client.pid) == client.pid != os.getpgid(0)


async def test_recording_holds_requests_events_and_the_death(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    ticks = iter(range(1000))
    client = EngineClient(tmp_path / "engine.log", command=COMMAND, record_path=path, clock=lambda: next(ticks) + 500.0)
    await load(client)
    events = await collect(client, generate(client, "sigkill 2"))
    await client.close()

    records: list[dict[str, Any]] = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["t"] for record in records] == list(range(len(records)))
    assert [record["dir"] for record in records] == ["in"] + ["out"] * 4 + ["in"] + ["out"] * len(events)
    loading, generating = read_recording(path)
    assert loading.request.type == "load_models"
    assert [event for _, event in generating.events] == events


async def test_a_recording_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        EngineClient(tmp_path / "engine.log", record_path=tmp_path / "absent" / "recording.jsonl")


PARENT = """
import asyncio, sys
from pathlib import Path
from localspec.engine.client import EngineClient
from localspec.engine.interface import last_event
from localspec.engine.requests import Generate, LoadModels

async def main() -> None:
    client = EngineClient(Path(sys.argv[1]), command=sys.argv[2:])
    await last_event(client, LoadModels(client.next_id(), "toy.gguf"))
    print(client.pid, flush=True)
    async for event in client.stream(Generate(client.next_id(), text="hang 1")):
        print(event.type, flush=True)

asyncio.run(main())
"""


def test_the_worker_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "engine.log"), *COMMAND]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert parent.stdout.readline() == "generation_started\n"
        assert psutil.pid_exists(worker)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and is_alive(worker):
        time.sleep(0.01)
    assert not is_alive(worker)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
