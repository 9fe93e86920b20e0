"""Memories of this machine as the engine and the system tell of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from localspec.engine.events import EngineFailed
from localspec.engine.values import DeviceInfo
from localspec.errors import LocalspecError, MissingSymbolError, UsageError
from localspec.hardware.host import Host, read_host
from localspec.planning.budgets import plan_devices
from localspec.planning.devices import parse_device
from localspec.session.memory_devices import described_devices, host_memory, machine_devices, reported_devices
from tests.scripted_engine import ScriptedEngine

GIB = 1 << 30


@dataclass(frozen=True)
class Machine:
    """The machine that tests run on, but for its memory."""

    total_bytes: int
    available_bytes: int

    def __call__(self) -> Host:
        return replace(
            read_host(),
            memory_total_bytes=self.total_bytes,
            memory_available_bytes=self.available_bytes,
            is_memory_limited=False,
            process_limit="",
        )


@pytest.fixture
def read() -> Callable[[], Host]:
    return Machine(32 * GIB, 20 * GIB)


async def test_the_hosts_memory_is_the_systems_word_and_not_llama_cpps(read: Callable[[], Host]) -> None:
    (host,) = await machine_devices(ScriptedEngine(), 2 * GIB, read)
    assert (host.name, host.kind) == ("CPU", "host")
    assert (host.total_bytes, host.free_bytes, host.budget_bytes) == (32 * GIB, 20 * GIB, 18 * GIB)


async def test_an_engine_that_cannot_be_asked_is_an_error_in_its_own_words(read: Callable[[], Host]) -> None:
    failure = EngineFailed(1, "MissingSymbolError", "no devices here", "install it")
    with pytest.raises(MissingSymbolError, match="no devices here"):
        await machine_devices(ScriptedEngine(failures={"probe": failure}), GIB, read)


def test_nothing_that_the_engine_says_of_a_device_is_lost() -> None:
    info = DeviceInfo("MTL0", "Apple M3", "gpu", "MTL", 5, 7, True, "0000:01:00.0")
    (device,) = reported_devices([info])
    assert all(getattr(device, name) == getattr(info, name) for name in DeviceInfo.__slots__)


def test_a_control_groups_limit_bounds_the_host(read: Callable[[], Host]) -> None:
    memory = host_memory(read(), "Windows")
    assert (memory.total_bytes, memory.available_bytes, memory.system) == (32 * GIB, 20 * GIB, "Windows")


def test_a_limit_on_the_process_is_named_with_the_hosts_memory(read: Callable[[], Host]) -> None:
    host = replace(read(), is_memory_limited=True, process_limit="ulimit -v")
    (device,) = plan_devices((), host_memory(host))
    assert "ulimit -v" in device.note
    (device,) = plan_devices((), host_memory(replace(host, process_limit="")))
    assert "container" in device.note


def test_described_machines(read: Callable[[], Host]) -> None:
    card, host = described_devices([parse_device("RTX 4070:12GiB")], GIB, read)
    assert (card.name, card.budget_bytes, host.free_bytes) == ("HYPO0", 11 * GIB, 20 * GIB)
    mac, host = described_devices([parse_device("M3 Pro:36GiB,unified,limit=27GiB")], GIB, read)
    assert (mac.budget_bytes, host.budget_bytes) == (26 * GIB, 34 * GIB)
    with pytest.raises(UsageError) as caught:
        described_devices([], GIB, read)
    assert isinstance(caught.value, LocalspecError)
