"""The real engine process on tiny models: its pipes, its death, and what a terminal sees of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from localspec.engine import wire
from localspec.engine.client import EngineClient
from localspec.engine.events import (
    EngineFailed,
    Event,
    GenerationFinished,
    HeaderRead,
    ModelsLoaded,
    Probed,
    Quantized,
    RoundFinished,
)
from localspec.engine.interface import last_event
from localspec.engine.requests import Cancel, Generate, LoadModels, Probe, Quantize, ReadHeader, Request, Unload
from localspec.engine.values import ContextSettings, SpeculationSettings
from tests.damaged_gguf import FAULTS
from tests.tiny_gguf import write_llama

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and fds of POSIX")

SMALL = ContextSettings(n_ctx=256, n_batch=64, n_ubatch=64, n_threads=1)
LONG = ContextSettings(n_ctx=16384, n_threads=1)
DRAFT = SpeculationSettings(method="draft", n_max=3)
WORKER = (sys.executable, "-m", "localspec.engine.worker")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EngineClient]:
    client = EngineClient(tmp_path / "engine.log")
    yield client
    await client.close()


async def load(engine: EngineClient, files: dict[str, Path], context: ContextSettings = SMALL) -> ModelsLoaded:
    request = LoadModels(engine.next_id(), str(files["target"]), context, str(files["draft"]), context, DRAFT)
    answer = await last_event(engine, request)
    assert isinstance(answer, ModelsLoaded)
    return answer


async def collect(engine: EngineClient, request: Generate) -> list[Event]:
    return [event async for event in engine.stream(request)]


async def test_probe_load_generate_and_close(engine: EngineClient, tiny_files: dict[str, Path]) -> None:
    probed = await last_event(engine, Probe(engine.next_id()))
    assert isinstance(probed, Probed)
    assert "cpu" in {device.type for device in probed.devices}
    assert probed.build.llama_cpp_python
    assert (await load(engine, tiny_files)).speculation.is_on
    events = await collect(engine, Generate(engine.next_id(), tokens=(10, 20, 30), max_tokens=20))
    last = events[-1]
    assert isinstance(last, GenerationFinished)
    assert (last.finish_reason, last.speculation.is_on) == ("length", True)
    assert last.peak_rss_bytes > 10_000_000
    times = [event.at_s for event in events if isinstance(event, RoundFinished)]
    assert times == sorted(times) and times[0] > 0
    pid = engine.pid
    assert pid is not None
    await engine.close()
    assert not psutil.pid_exists(pid)


async def test_kill_9_in_a_generation_keeps_the_text_and_the_next_load_works(
    engine: EngineClient, tiny_files: dict[str, Path]
) -> None:
    await load(engine, tiny_files)
    request = Generate(engine.next_id(), tokens=(10, 20, 30), max_tokens=200)
    events: list[Event] = []
    async for event in engine.stream(request):
        events.append(event)
        if isinstance(event, RoundFinished) and event.index == 5:
            assert engine.pid is not None
            os.kill(engine.pid, signal.SIGKILL)
    last = events[-1]
    assert isinstance(last, EngineFailed)
    assert (last.is_fatal, last.exit_code) == (True, -9)
    assert "signal 9" in last.message and last.hint
    rounds = [event for event in events if isinstance(event, RoundFinished)]
    assert len(rounds) >= 6
    refused = await collect(engine, Generate(engine.next_id(), tokens=(10,), max_tokens=5))
    assert isinstance(refused[-1], EngineFailed)
    await load(engine, tiny_files)
    whole = await collect(engine, Generate(engine.next_id(), tokens=(10, 20, 30), max_tokens=200))
    again = [token.id for event in whole if isinstance(event, RoundFinished) for token in event.emitted]
    before = [token.id for event in rounds for token in event.emitted]
    assert again[: len(before)] == before


async def test_cancel_inside_a_long_prompt_ends_at_once_and_the_next_prompt_works(
    engine: EngineClient, tmp_path: Path
) -> None:
    path = write_llama(tmp_path / "deep.gguf", n_embd=256, n_layer=12, n_ctx_train=16384, can_end=False)
    context = ContextSettings(n_ctx=16384, n_batch=4096, n_ubatch=4096, n_threads=1)
    await last_event(engine, LoadModels(engine.next_id(), str(path), context))
    request = Generate(engine.next_id(), tokens=tuple(3 + index % 250 for index in range(16000)), max_tokens=5)
    events: list[Event] = []
    task = asyncio.ensure_future(collect(engine, request))
    await asyncio.sleep(0.5)
    assert not task.done()
    started = time.perf_counter()
    await engine.cancel(request.id)
    events = await task
    latency = time.perf_counter() - started
    last = events[-1]
    assert isinstance(last, GenerationFinished)
    assert last.finish_reason == "cancelled"
    # One batch of 4,096 takes far longer than this bound: the abort works inside a step.
    assert latency < 1.0
    short = await collect(engine, Generate(engine.next_id(), tokens=(10, 20), max_tokens=5))
    await last_event(engine, LoadModels(engine.next_id(), str(path), context))
    fresh = await collect(engine, Generate(engine.next_id(), tokens=(10, 20), max_tokens=5))
    ids = [[token.id for e in run if isinstance(e, RoundFinished) for token in e.emitted] for run in (short, fresh)]
    assert ids[0] == ids[1]


async def test_a_request_cancelled_before_its_turn_never_starts(tiny_files: dict[str, Path]) -> None:
    lines: list[Request] = [
        Generate(1, tokens=(10, 20), max_tokens=5),
        LoadModels(2, str(tiny_files["target"]), SMALL),
        Generate(3, tokens=(10, 20), max_tokens=200),
        Cancel(4, 5),
        Generate(5, tokens=(10, 20), max_tokens=5),
        Unload(6),
    ]
    events = talk(lines)
    by_id = {number: [event for event in events if event.id == number] for number in range(1, 7)}
    assert "No model is loaded" in failure(by_id[1]).message
    assert by_id[3][-1].type == "generation_finished"
    assert failure(by_id[5]).kind == "Cancelled"
    assert by_id[6][-1].type == "unloaded"


def failure(events: list[Event]) -> EngineFailed:
    last = events[-1]
    assert isinstance(last, EngineFailed)
    return last


def talk(requests: list[Request], stdin_tail: bytes = b"") -> list[Event]:
    """Send all requests to a worker of its own, whose stderr is not the protocol's, and return all events."""
    data = b"".join(map(wire.encode_request, requests)) + stdin_tail
    process = subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(data)
    process.stdin.flush()
    try:
        # stdin stays open: its end would be the process's end.
        out = process.stdout.read()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
    return [wire.decode_event(line) for line in out.splitlines()]


def test_every_line_on_stdout_is_an_event_and_garbage_on_stdin_is_answered(tiny_files: dict[str, Path]) -> None:
    events = talk(
        [Probe(1), LoadModels(2, str(tiny_files["target"]), SMALL)], b"garbage\n" + wire.encode_request(Unload(9))
    )
    assert {event.type for event in events} >= {"probed", "models_loaded", "engine_failed", "unloaded"}


def test_prints_of_c_code_go_to_stderr_and_not_between_the_events(tmp_path: Path, tiny_files: dict[str, Path]) -> None:
    script = tmp_path / "noisy.py"
    script.write_text(
        "import sys, runpy, ctypes\n"
        "sys.argv = ['worker']\n"
        "import threading, time\n"
        "def shout():\n"
        "    libc = ctypes.CDLL(None)\n"
        "    while 'llama_cpp' not in sys.modules: time.sleep(0.001)\n"
        "    while True:\n"
        "        libc.puts(b'printf from C'); libc.fflush(None); print('print from Python', flush=True)\n"
        "        time.sleep(0.01)\n"
        "threading.Thread(target=shout, daemon=True).start()\n"
        "runpy.run_module('localspec.engine.worker', run_name='__main__')\n",
        encoding="utf-8",
    )
    requests = [LoadModels(1, str(tiny_files["target"]), LONG)]
    requests_data = b"".join(map(wire.encode_request, requests))
    generate = wire.encode_request(Generate(2, tokens=(10, 20), max_tokens=1000)) + wire.encode_request(Unload(3))
    process = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(requests_data + generate)
    process.stdin.flush()
    try:
        events = [wire.decode_event(line) for line in process.stdout]
    finally:
        process.kill()
        _, err = process.communicate()
    assert events[-1].type == "unloaded"
    assert b"printf from C" in err and b"print from Python" in err


def test_the_worker_ends_when_its_parent_dies_in_a_generation(tiny_files: dict[str, Path], tmp_path: Path) -> None:
    parent = tmp_path / "parent.py"
    lines = wire.encode_request(LoadModels(1, str(tiny_files["target"]), LONG))
    lines += wire.encode_request(Generate(2, tokens=(10, 20), max_tokens=16000))
    parent.write_text(
        "import subprocess, sys, time\n"
        "pipe, null = subprocess.PIPE, subprocess.DEVNULL\n"
        f"p = subprocess.Popen({WORKER!r}, stdin=pipe, stdout=null, stderr=null)\n"
        f"p.stdin.write({lines!r}); p.stdin.flush()\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, parent], stdout=subprocess.PIPE)
    assert process.stdout is not None
    worker = psutil.Process(int(process.stdout.readline()))
    try:
        time.sleep(1.0)
        assert worker.is_running()
        process.kill()
        process.communicate()
        worker.wait(5)
    except psutil.TimeoutExpired:
        worker.kill()
        raise
    except psutil.NoSuchProcess:
        pass


async def test_headers_sound_and_damaged_through_the_worker(
    engine: EngineClient, tiny_files: dict[str, Path], tmp_path: Path
) -> None:
    sound = await last_event(engine, ReadHeader(engine.next_id(), str(tiny_files["target"])))
    assert isinstance(sound, HeaderRead)
    assert sound.header.architecture == "llama"
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny_files["target"].read_bytes()[:3000])
    events = [event async for event in engine.stream(ReadHeader(engine.next_id(), str(cut)))]
    answer = failure(events)
    assert answer.kind == "ModelFileError"
    assert "cut.gguf" in answer.message and answer.hint
    assert isinstance(await last_event(engine, ReadHeader(engine.next_id(), str(tiny_files["draft"]))), HeaderRead)
    assert len(FAULTS) >= 24


async def test_quantising_through_the_worker(engine: EngineClient, tmp_path: Path) -> None:
    source = write_llama(tmp_path / "source.gguf", n_embd=64)
    copy = tmp_path / "copy.gguf"
    answer = await last_event(engine, Quantize(engine.next_id(), str(source), str(copy), "Q8_0"))
    assert isinstance(answer, Quantized)
    assert copy.stat().st_size == answer.size_bytes < source.stat().st_size
    loaded = await last_event(engine, LoadModels(engine.next_id(), str(copy), SMALL))
    assert isinstance(loaded, ModelsLoaded)
    assert loaded.target.quantisation == "Q8_0"


async def test_nothing_reaches_the_terminal(tiny_files: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(
        "import asyncio, sys, pathlib\n"
        "from localspec.engine.client import EngineClient\n"
        "from localspec.engine.interface import last_event\n"
        "from localspec.engine.requests import LoadModels, Generate\n"
        "from localspec.engine.values import ContextSettings\n"
        "async def main():\n"
        "    engine = EngineClient(pathlib.Path(sys.argv[2]))\n"
        "    context = ContextSettings(n_ctx=256, n_batch=64, n_ubatch=64)\n"
        "    await last_event(engine, LoadModels(1, sys.argv[1], context))\n"
        "    await last_event(engine, Generate(2, tokens=(10, 20), max_tokens=20))\n"
        "    await engine.close()\n"
        "asyncio.run(main())\n",
        encoding="utf-8",
    )
    log = tmp_path / "engine.log"
    done = subprocess.run([sys.executable, script, tiny_files["target"], log], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert b"llama" in log.read_bytes()
