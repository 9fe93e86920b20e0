"""What the tests of the client share: the fake worker's command, and short ways to ask and read."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from localspec.engine.client import Patience
from localspec.engine.events import Event, ModelsLoaded, RoundFinished
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Generate, LoadModels, Request

FAKE_WORKER = Path(__file__).parent / "fake_worker.py"
COMMAND = (sys.executable, "-I", "-S", str(FAKE_WORKER))
QUICK = Patience(cancel_s=0.3, unload_s=0.3, terminate_s=0.3)
ROOT = Path(__file__).parent.parent


async def assert_nothing_is_left() -> None:
    # What starts engines of other tests waits until the end of them all.
    left = [child for child in psutil.Process().children() if "forked_worker" not in " ".join(child.cmdline())]
    assert left == []
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
