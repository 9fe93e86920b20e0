"""The life of the engine process under its client: unload, close, log, recording, and the death of its parent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from localspec.engine.client import EngineClient
from localspec.engine.events import EngineFailed, Event, RoundFinished
from localspec.engine.interface import last_event
from localspec.engine.recording import read_recording
from localspec.engine.requests import LoadModels, Probe, Unload
from localspec.errors import EngineDiedError, UsageError
from tests.worker_streams import COMMAND, QUICK, ROOT, assert_nothing_is_left, collect, generate, load, text_of, until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake worker uses POSIX signals")


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
