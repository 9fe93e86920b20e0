"""What makes pictures of the app the same everywhere: a machine, a time zone and a pace that never change."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

from localspec.engine.events import Event, RoundFinished
from localspec.engine.interface import Engine
from localspec.engine.requests import Generate, Request
from localspec.hardware import profile
from localspec.hardware.host import Host
from localspec.hardware.throttling import ClockReading
from localspec.planning.devices import GIB
from localspec.session import measurement, memory_devices
from localspec.tui.fit_planner import FitPlanner
from localspec.tui.pace import Pace
from tests.scripted_engine import FakeClock

HOST = Host(
    os="Linux 6.8.0",
    machine="x86_64",
    cpu_name="A processor with eight cores",
    physical_cores=8,
    logical_cores=16,
    machine_logical_cores=16,
    memory_total_bytes=32 * GIB,
    memory_available_bytes=26 * GIB,
    is_memory_limited=False,
    swap_used_bytes=0,
    power="mains",
    battery_percent=None,
    load_average=(0.1, 0.1, 0.1),
)
CLOCK = ClockReading(current_mhz=4000.0, max_mhz=4000.0, num_throttled=0)
BEGINNING = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


@contextmanager
def steady(is_colourless: bool = False) -> Iterator[None]:
    """Have the app see one made-up machine in UTC and show every round of an answer; with colours, if wished."""
    read_host, read_clock = (lambda: HOST), (lambda: CLOCK)
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, TZ="UTC"))
        os.environ.pop("NO_COLOR", None)
        if is_colourless:
            os.environ["NO_COLOR"] = "1"
        time.tzset()
        stack.callback(time.tzset)
        for function in (memory_devices.machine_devices, memory_devices.described_devices, FitPlanner.__init__):
            defaults = tuple(read_host if callable(one) else one for one in function.__defaults__ or ())
            stack.enter_context(patch.object(function, "__defaults__", defaults))
        stack.enter_context(patch.object(profile, "read_host", read_host))
        stack.enter_context(patch.object(profile, "read_clock", read_clock))
        stack.enter_context(patch.object(measurement, "read_clock", read_clock))
        stack.enter_context(patch.object(Pace, "is_due", lambda _: True))
        yield


@dataclass
class WallClock:
    """A clock that stands still until it is moved on."""

    now: datetime = BEGINNING

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        """Move on, by minutes, hours or days."""
        self.now += timedelta(**amount)


@dataclass
class Held:
    """An engine that stops in the middle of one generation until it is closed or told to stop."""

    engine: Engine
    generation: int
    """Which one, from 1."""
    num_rounds: int
    """After so many rounds of it."""
    clock: FakeClock = field(default_factory=FakeClock)
    """Follows the recorded times."""
    is_held: bool = False
    _num_generations: int = 0
    _begun_s: float = 0.0

    @property
    def death(self) -> str:
        return self.engine.death

    def next_id(self) -> int:
        return self.engine.next_id()

    async def cancel(self, request_id: int) -> None:
        self.is_held = False
        await self.engine.cancel(request_id)

    async def close(self) -> None:
        self.is_held = False
        await self.engine.close()

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        num_rounds, begun_s = 0, self.clock()
        if isinstance(request, Generate):
            self._num_generations += 1
        async for event in self.engine.stream(request):
            at_s = getattr(event, "at_s", None)
            if isinstance(at_s, float):
                self.clock.now_s = begun_s + at_s
            yield event
            num_rounds += isinstance(event, RoundFinished)
            if isinstance(request, Generate) and (self._num_generations, num_rounds) == (
                self.generation,
                self.num_rounds,
            ):
                await self._hold()

    async def _hold(self) -> None:
        self.is_held = True
        while self.is_held:
            await asyncio.sleep(0.01)
