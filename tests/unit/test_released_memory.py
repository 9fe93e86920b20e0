from __future__ import annotations

from dataclasses import replace

from localspec.planning.footprint import Footprint, MemoryRow, PairFootprint, Placement
from localspec.session.released_memory import with_released
from tests.plan_kit import GIB, MIB, gpu, host


def pair(*rows: MemoryRow) -> PairFootprint:
    return PairFootprint(Footprint(Placement(256), rows, 256, 256, 2, 0, True), None)


def test_nothing_loaded_changes_nothing() -> None:
    assert with_released((gpu(8), host()), None) == (gpu(8), host())


def test_a_mapped_file_in_host_memory_was_free_already() -> None:
    busy = replace(host(), free_bytes=16 * GIB)
    mapped = MemoryRow("CPU_Mapped", "CPU", 4 * GIB, 0, 0, 0, 0)
    buffers = MemoryRow("CPU", "CPU", 0, 300 * MIB, 0, 20 * MIB, 1 * MIB)
    assert with_released((busy,), pair(mapped, buffers))[0].free_bytes == 16 * GIB + 321 * MIB


def test_what_a_gpu_shares_is_the_hosts_too_and_never_more_than_there_is() -> None:
    row = MemoryRow("MTL0", "HYPO0", 4 * GIB, 0, 0, 0, 0)
    shared = replace(gpu(24, shares_host_memory=True), free_bytes=10 * GIB)
    found = with_released((shared, replace(host(), free_bytes=30 * GIB)), pair(row))
    assert [device.free_bytes for device in found] == [14 * GIB, 32 * GIB]
