"""Devices as people describe them and as backends report them, and the test whether rows fit on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.errors import UsageError
from localspec.hardware.profile import Device
from localspec.planning.budgets import hypothetical_plan_devices, plan_devices, reserve_of
from localspec.planning.devices import (
    HOST,
    HostMemory,
    HypotheticalDevice,
    Overrun,
    PlanDevice,
    check,
    parse_device,
    used_bytes,
)
from localspec.planning.sizes import parse_size

MIB, GIB = 1 << 20, 1 << 30
HOST_32 = HostMemory(32 * GIB, 20 * GIB)
CPU = Device("CPU", "a processor", "cpu", "CPU", 32 * GIB, 32 * GIB)
CUDA = Device("CUDA0", "NVIDIA GeForce RTX 4070", "gpu", "CUDA", 11 * GIB, 12 * GIB, device_id="0000:01:00.0")
METAL = Device("MTL0", "Apple M3 Pro", "gpu", "MTL", 24 * GIB, 24 * GIB, is_unified=True)
IGPU = Device("Vulkan0", "AMD Radeon 780M", "integrated_gpu", "Vulkan", 15 * GIB, 16 * GIB, is_unified=True)


@dataclass(frozen=True)
class Row:
    device: str
    total_bytes: int


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("12GiB", 12 * GIB),
        ("12 gib", 12 * GIB),
        ("12G", 12 * GIB),
        ("12GB", 12 * 10**9),
        ("8192MiB", 8 * GIB),
        ("8192M", 8 * GIB),
        ("500MB", 500 * 10**6),
        ("1.5TiB", 1536 * GIB),
        ("0.1GB", 10**8),
        ("1024K", MIB),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "12", "GiB", "-1GiB", "1,5GiB", "12GiBs", "1e3G", "٣GiB", "nan", "9" * 40 + "G"])
def test_what_is_no_size_is_refused_in_words(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert "12GiB" in caught.value.hint
    assert len(caught.value.message) < 80


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("RTX 4070:12GiB", HypotheticalDevice("RTX 4070", 12 * GIB)),
        ("12GB", HypotheticalDevice("GPU of 12GB", 12 * 10**9)),
        ("36 GiB,unified", HypotheticalDevice("GPU of 36 GiB", 36 * GIB, True, None, "metal")),
        (" RTX 4070 : 12 GiB ", HypotheticalDevice("RTX 4070", 12 * GIB)),
        ("AMD: Radeon, big:16G", HypotheticalDevice("AMD: Radeon, big", 16 * GIB)),
        ("M3 Pro:36GiB,unified", HypotheticalDevice("M3 Pro", 36 * GIB, True, None, "metal")),
        ("M3 Pro:36GiB, UNIFIED , Limit = 27GiB", HypotheticalDevice("M3 Pro", 36 * GIB, True, 27 * GIB, "metal")),
        ("DGX Spark:128GB,unified,cuda", HypotheticalDevice("DGX Spark", 128 * 10**9, True, None, "cuda")),
        ("Radeon Pro:8GiB,metal", HypotheticalDevice("Radeon Pro", 8 * GIB, False, None, "metal")),
        ("[bold]x[/]:1GiB", HypotheticalDevice("[bold]x[/]", GIB)),
    ],
)
def test_described_devices(text: str, device: HypotheticalDevice) -> None:
    assert parse_device(text) == device


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "describes no device"),
        ("RTX 4070", "describes no device"),
        (":12GiB", "no readable name"),
        ("a\x1b[31m:12GiB", "no readable name"),
        ("a\udcff:12GiB", "no readable name"),
        ("x" * 61 + ":12GiB", "longer than 60"),
        ("RTX:", "size is missing"),
        ("RTX:much", "is no size"),
        ("RTX:63MiB", "makes no sense"),
        ("RTX:17TiB", "makes no sense"),
        ("RTX:12GiB,fast", "is no option"),
        ("RTX:12GiB,", "is no option"),
        ("M3:36GiB,unified,limit=1GiB,limit=2GiB", "said twice"),
        ("M3:36GiB,limit=27GiB", "Only unified memory"),
        ("M3:36GiB,unified,limit=37GiB", "more than the whole"),
        ("M3:36GiB,unified,limit=1MiB", "makes no sense"),
        ("M3:36GiB,metal,cuda", "either metal or cuda"),
    ],
)
def test_what_describes_no_device_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_device(text)
    assert caught.value.hint
    assert (caught.value.message + caught.value.hint).isprintable()


@given(st.text(max_size=80))
def test_any_text_is_a_device_or_a_usage_error(text: str) -> None:
    try:
        device = parse_device(text)
    except UsageError:
        return
    assert 64 * MIB <= device.usable_bytes <= device.total_bytes <= 16 << 40


@pytest.mark.parametrize(("total", "usable"), [(16, 16 * 2 / 3), (32, 32 * 2 / 3), (64, 48), (128, 96)])
def test_the_usual_share_of_a_mac(total: int, usable: float) -> None:
    assert parse_device(f"Mac:{total}GiB,unified").usable_bytes == int(usable * GIB)


def test_cuda_lends_all_of_unified_memory_and_a_limit_counts_before_any_share() -> None:
    assert parse_device("Spark:128GiB,unified,cuda").usable_bytes == 128 * GIB
    assert parse_device("M3:36GiB,unified,limit=27GiB").usable_bytes == 27 * GIB


def test_a_card_and_its_host() -> None:
    card, host = plan_devices([CUDA, CPU], HOST_32)
    assert (card.name, card.description, card.kind) == ("CUDA0", "NVIDIA GeForce RTX 4070", "gpu")
    assert card.budget_bytes == 10 * GIB
    assert not card.shares_host_memory
    assert (host.name, host.kind) == (HOST, "host")
    # What llama.cpp says of the CPU is its whole memory as free; the system's word counts.
    assert (host.total_bytes, host.free_bytes, host.budget_bytes) == (32 * GIB, 20 * GIB, 19 * GIB)


def test_without_a_gpu_only_the_host_is_left() -> None:
    blas = Device("BLAS", "OpenBLAS", "accelerator", "BLAS", 0, 0)
    (host,) = plan_devices([blas, CPU], HOST_32)
    assert host.name == HOST
    assert host.note == ""


def test_apple_silicon_is_one_pool_with_a_limit_for_the_gpu() -> None:
    gpu, host = plan_devices([METAL, CPU], HostMemory(36 * GIB, 30 * GIB, "Darwin"))
    assert gpu.shares_host_memory
    assert gpu.budget_bytes == 23 * GIB
    assert "iogpu.wired_limit_mb" in gpu.note
    assert host.budget_bytes == 28 * GIB
    assert check([Row("MTL0", 22 * GIB), Row(HOST, 6 * GIB)], (gpu, host)) == ()
    assert check([Row("MTL0", 22 * GIB), Row(HOST, 7 * GIB)], (gpu, host)) == (Overrun(HOST, 29 * GIB, 28 * GIB),)
    assert check([Row("MTL0", 24 * GIB)], (gpu, host)) == (Overrun("MTL0", 24 * GIB, 23 * GIB),)


def test_an_integrated_gpu_is_used_alone_and_left_out_beside_a_card() -> None:
    alone, host = plan_devices([IGPU, CPU], HOST_32)
    assert alone.shares_host_memory
    assert host.reserve_bytes == 2 * GIB
    card, host = plan_devices([IGPU, CUDA, CPU], HOST_32)
    assert card.name == "CUDA0"
    assert "Vulkan0" in host.note
    assert host.reserve_bytes == GIB


def test_of_integrated_gpus_those_of_one_backend_are_used() -> None:
    twin = replace(IGPU, name="ROCm0", backend="ROCm")
    assert [device.name for device in plan_devices([IGPU, twin, CPU], HOST_32)] == ["Vulkan0", HOST]


def test_one_card_seen_by_two_backends_counts_once() -> None:
    twin = replace(CUDA, name="Vulkan0", backend="Vulkan")
    card, host = plan_devices([CUDA, twin, CPU], HOST_32)
    assert card.name == "CUDA0"
    assert host.note == "Vulkan0 is CUDA0 by another name."
    second = replace(CUDA, name="CUDA1", device_id="0000:02:00.0")
    assert len(plan_devices([CUDA, second, CPU], HOST_32)) == 3
    assert len(plan_devices([replace(CUDA, device_id=""), replace(second, device_id=""), CPU], HOST_32)) == 3


def test_remote_devices_come_first_as_llama_cpp_puts_them() -> None:
    remote = Device("RPC0", "192.168.0.7:50052", "gpu", "RPC", 8 * GIB, 8 * GIB)
    assert [device.name for device in plan_devices([CUDA, remote, CPU], HOST_32)] == ["RPC0", "CUDA0", HOST]
    assert [device.name for device in plan_devices([IGPU, remote, CPU], HOST_32)] == ["RPC0", "Vulkan0", HOST]


@pytest.mark.parametrize(("free", "counted"), [(13 * GIB, 12 * GIB), (2**64 - 300 * MIB, 0), (2**63 - 1, 12 * GIB)])
def test_free_memory_that_cannot_be_is_corrected(free: int, counted: int) -> None:
    card, _ = plan_devices([replace(CUDA, backend="Vulkan", free_bytes=free), CPU], HOST_32)
    assert card.free_bytes == counted
    assert "impossible" in card.note


def test_a_device_that_tells_nothing_is_left_out_and_rows_on_it_do_not_fit() -> None:
    devices = plan_devices([replace(CUDA, free_bytes=0, total_bytes=0), CPU], HOST_32)
    assert [device.name for device in devices] == [HOST]
    assert "CUDA0 does not say" in devices[0].note
    assert check([Row("CUDA0", 1)], devices) == (Overrun("CUDA0", 1, 0),)


def test_the_windows_driver_spills_where_little_is_kept_free() -> None:
    windows = HostMemory(32 * GIB, 20 * GIB, "Windows")
    assert "Sysmem Fallback" in plan_devices([CUDA], windows, 512 * MIB)[0].note
    assert plan_devices([CUDA], windows)[0].note == ""
    assert plan_devices([CUDA], HOST_32, 512 * MIB)[0].note == ""
    assert plan_devices([replace(CUDA, backend="ROCm", description="RX 7900")], windows, 0)[0].note == ""


def test_a_small_memory_keeps_a_quarter_unless_more_is_asked_for() -> None:
    assert reserve_of(12 * GIB) == GIB
    assert reserve_of(2 * GIB) == GIB // 2
    assert reserve_of(2 * GIB, 3 * GIB // 2) == 3 * GIB // 2
    assert reserve_of(GIB, 3 * GIB) == GIB
    assert reserve_of(36 * GIB, holds_two=True) == 2 * GIB
    assert reserve_of(4 * GIB, holds_two=True) == GIB
    assert reserve_of(4 * GIB, 0) == reserve_of(4 * GIB, -1) == 0


def test_described_cards_stand_beside_this_machines_memory() -> None:
    devices = [parse_device("RTX 4070:12GiB"), parse_device("RTX 3060:8GiB")]
    first, second, host = hypothetical_plan_devices(devices, HOST_32)
    assert (first.name, first.description, first.budget_bytes) == ("HYPO0", "RTX 4070", 11 * GIB)
    assert (second.name, second.budget_bytes) == ("HYPO1", 7 * GIB)
    assert first.is_hypothetical and second.is_hypothetical and not host.is_hypothetical
    assert host.budget_bytes == 19 * GIB
    assert first.note and host.note


def test_a_described_mac_is_a_whole_machine() -> None:
    gpu, host = hypothetical_plan_devices([parse_device("M3 Pro:36GiB,unified")], HOST_32)
    assert gpu.free_bytes == 24 * GIB
    assert gpu.shares_host_memory
    assert "2/3" in gpu.note and "limit=" in gpu.note
    assert (host.total_bytes, host.budget_bytes, host.is_hypothetical) == (36 * GIB, 34 * GIB, True)
    assert "3/4" in hypothetical_plan_devices([parse_device("M3:64GiB,unified")], HOST_32)[0].note
    assert "as given" in hypothetical_plan_devices([parse_device("M3:64GiB,unified,limit=50G")], HOST_32)[0].note


def test_devices_that_make_no_machine_are_refused() -> None:
    card, mac = parse_device("RTX 4070:12GiB"), parse_device("M3 Pro:36GiB,unified")
    for devices in ([], [card] * 17, [card, mac], [mac, mac]):
        with pytest.raises(UsageError) as caught:
            hypothetical_plan_devices(devices, HOST_32)
        assert caught.value.hint


sizes = st.integers(0, 1 << 44)
any_size = st.integers(0, (1 << 64) - 1)
kinds = st.sampled_from(["gpu", "integrated_gpu", "accelerator", "cpu", "other"])
rows = st.lists(st.builds(Row, st.sampled_from(["G0", "G1", HOST, "elsewhere"]), sizes), max_size=12)


@st.composite
def machines(draw: st.DrawFn) -> tuple[PlanDevice, ...]:
    def device(name: str) -> PlanDevice:
        kind: Literal["gpu", "host"] = "host" if name == HOST else "gpu"
        shares = kind == "gpu" and draw(st.booleans())
        return PlanDevice(name, name, kind, draw(sizes), draw(sizes), draw(sizes), shares)

    return tuple(device(name) for name in [*["G0", "G1"][: draw(st.integers(0, 2))], HOST])


@given(rows, machines())
def test_every_row_is_compared_with_a_budget(given_rows: list[Row], devices: tuple[PlanDevice, ...]) -> None:
    used = used_bytes(given_rows, devices)
    sharing = {device.name for device in devices if device.shares_host_memory}
    shared = sum(row.total_bytes for row in given_rows if row.device in sharing)
    assert sum(used.values()) == sum(row.total_bytes for row in given_rows) + shared
    assert list(used)[: len(devices)] == [device.name for device in devices]
    budgets = {device.name: device.budget_bytes for device in devices}
    over = {overrun.device: overrun for overrun in check(given_rows, devices)}
    for name, amount in used.items():
        assert (name in over) == (amount > budgets.get(name, 0))
    assert all(overrun.over_bytes > 0 for overrun in over.values())


@given(rows, machines(), sizes)
def test_what_fits_also_fits_with_more_memory_or_fewer_rows(
    given_rows: list[Row], devices: tuple[PlanDevice, ...], more: int
) -> None:
    larger = tuple(replace(device, free_bytes=device.free_bytes + more) for device in devices)
    over = {overrun.device for overrun in check(given_rows, devices)}
    assert {overrun.device for overrun in check(given_rows, larger)} <= over
    assert {overrun.device for overrun in check(given_rows[1:], devices)} <= over


@given(
    st.lists(st.builds(Device, st.text(max_size=3), st.just("d"), kinds, st.just("B"), any_size, sizes), max_size=4),
    st.builds(HostMemory, sizes, any_size),
    sizes,
)
def test_budgets_lie_between_nothing_and_what_is_free_without_the_reserve(
    reported: list[Device], host: HostMemory, reserve_bytes: int
) -> None:
    devices = plan_devices(reported, host, reserve_bytes)
    assert devices[-1].name == HOST
    for device in devices:
        assert 0 <= device.budget_bytes <= max(0, device.free_bytes - device.reserve_bytes)
        assert device.free_bytes <= device.total_bytes
        assert 0 <= device.reserve_bytes <= device.total_bytes
