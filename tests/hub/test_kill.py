"""kill -9 at any byte and at every step: the next run fetches the rest, and nothing is left over."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from localspec.catalog.progress import TransferProgress
from tests.hub.downloading import DATA, ETAG, REPO, cache_of, clean_names, names_in, partial_of, pull
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")

ROOT = Path(__file__).parents[2]
PULL = """
import asyncio, os, signal
import localspec.catalog.hub.download as download
from tests.hub.downloading import pull

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def run(*args):
        function(*args)
        die()
    return run

{setup}
print(asyncio.run(pull()), flush=True)
"""


@contextmanager
def pulling(hub: TestHub, setup: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run a download in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", PULL.format(setup=setup)],
        cwd=ROOT,
        env=hub.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def until_partial_has(hub: TestHub, num_bytes: int) -> None:
    while not partial_of(hub).exists() or partial_of(hub).stat().st_size < num_bytes:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("num_bytes", [1, 65_537, 400_003, len(DATA) - 1])
async def test_killed_at_a_byte(hub: TestHub, num_bytes: int) -> None:
    hub.fault("a.gguf", method="GET", stall_after=num_bytes, times=1)
    with pulling(hub) as process:
        await until_partial_has(hub, num_bytes)
        process.kill()
        assert process.wait() == -signal.SIGKILL
    assert partial_of(hub).stat().st_size == num_bytes
    hub.forget()
    seen: list[TransferProgress] = []
    assert (await pull(seen=seen)).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA) - num_bytes
    assert names_in(hub) == clean_names(hub)
    # The dead process holds no lock.
    assert "waiting" not in [progress.state for progress in seen]


async def test_killed_again_and_again(hub: TestHub) -> None:
    ends = sorted(random.Random(11).sample(range(1, len(DATA)), 4))
    for begin, end in pairwise([0, *ends]):
        hub.fault("a.gguf", method="GET", stall_after=end - begin, times=1)
        with pulling(hub) as process:
            await until_partial_has(hub, end)
            process.kill()
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA)
    assert names_in(hub) == clean_names(hub)


@pytest.mark.parametrize(
    ("setup", "num_fetched"),
    [
        ("download.write_note = die", len(DATA)),
        ("download.write_note = after(download.write_note)", len(DATA)),
        ("download.PartialFile.syncing = die", 0),
        ("download._name_blob = die", 0),
        ("download._name_blob = after(download._name_blob)", 0),
        ("download.link_snapshot = after(download.link_snapshot)", 0),
        ("download.write_ref = after(download.write_ref)", 0),
    ],
)
async def test_killed_at_a_step(hub: TestHub, setup: str, num_fetched: int) -> None:
    with pulling(hub, setup) as process:
        assert process.wait(60) == -signal.SIGKILL
    hub.forget()
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == num_fetched
    assert names_in(hub) == clean_names(hub)


async def test_two_processes_share_one_download(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    with pulling(hub) as process:
        await until_partial_has(hub, 200_000)
        seen: list[TransferProgress] = []
        task = asyncio.create_task(pull(seen=seen))
        while not seen or seen[-1].done_bytes < 200_000:
            await asyncio.sleep(0.01)
        assert seen[-1].state == "waiting"
        hub.release()
        path = await task
        assert path.read_bytes() == DATA
        assert process.stdout is not None and process.stdout.read().strip() == str(path)
    assert hub.bytes_sent("a.gguf") == len(DATA)
    assert names_in(hub) == clean_names(hub)


async def test_one_process_waits_for_another_that_is_killed_and_goes_on_with_its_file(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    with pulling(hub) as process:
        await until_partial_has(hub, 200_000)
        seen: list[TransferProgress] = []
        task = asyncio.create_task(pull(seen=seen))
        while not seen:
            await asyncio.sleep(0.01)
        assert seen[-1].state == "waiting" and not task.done()
        process.kill()
        assert (await task).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA)
    assert names_in(hub) == clean_names(hub)


async def test_huggingface_hub_waits_for_us_and_finds_the_file(hub: TestHub) -> None:
    hub.fault("a.gguf", method="GET", stall_after=200_000, times=1)
    task = asyncio.create_task(pull())
    await until_partial_has(hub, 200_000)
    code = f"import huggingface_hub; print(huggingface_hub.hf_hub_download({REPO!r}, 'a.gguf'))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=ROOT, env=hub.environment(), stdout=asyncio.subprocess.PIPE
    )
    while len(hub.requests_for("a.gguf", "HEAD")) < 2:
        await asyncio.sleep(0.01)
    hub.release()
    path = await task
    output, _ = await process.communicate()
    assert Path(output.decode().strip()) == path
    assert hub.bytes_sent("a.gguf") == len(DATA)
    assert not list(cache_of(hub).rglob("*.incomplete")) and (path.resolve().name == ETAG)
