"""Facts about the machine, against made-up systems."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from localspec.hardware.cgroup import CgroupLimits, read_cgroup_limits
from localspec.hardware.cores import count_cores
from localspec.hardware.host import read_cpu_name, read_host, read_power
from localspec.hardware.process_limits import ProcessLimit, tightest
from localspec.hardware.profile import Device, read_profile
from localspec.hardware.throttling import ClockReading, read_clock, was_throttled

GIB = 1 << 30
FREE = CgroupLimits(None, None, None)


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")


def _membership(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "cgroup"
    file.write_text(text, encoding="utf-8")
    return file


def test_version_2_takes_the_tightest_limit_of_all_ancestors(tmp_path: Path) -> None:
    root = tmp_path / "fs"
    stat = f"anon 5\ninactive_file {GIB}\nactive_file {GIB}\nfile_mapped 7\n"
    _write(root / "job", cpu__max="150000 100000\n", memory__max=f"{8 * GIB}\n", memory__current=f"{5 * GIB}\n")
    _write(root / "job", memory__stat=stat)
    _write(root / "job" / "step", cpu__max="400000 100000\n", memory__max="max\n", memory__current=f"{GIB}\n")
    limits = read_cgroup_limits(root, _membership(tmp_path, "0::/job/step\n"))
    assert limits == CgroupLimits(cpus=1.5, memory_bytes=8 * GIB, memory_left_bytes=5 * GIB)


def test_version_1_is_read_and_its_number_for_no_limit_is_none(tmp_path: Path) -> None:
    root = tmp_path / "fs"
    _write(root / "cpu,cpuacct" / "box", cpu__cfs_quota_us="200000\n", cpu__cfs_period_us="100000\n")
    _write(root / "memory", memory__limit_in_bytes="9223372036854771712\n", memory__usage_in_bytes="1\n")
    _write(root / "memory" / "box", memory__limit_in_bytes=f"{GIB}\n", memory__usage_in_bytes=f"{3 * GIB}\n")
    text = "4:memory:/box\n3:cpu,cpuacct:/box\n1:name=systemd:/\n"
    assert read_cgroup_limits(root, _membership(tmp_path, text)) == CgroupLimits(2.0, GIB, 0)


def test_a_container_that_sees_only_its_own_mount_is_limited_by_it(tmp_path: Path) -> None:
    root = tmp_path / "fs"
    _write(root, cpu__max="200000 100000\n", memory__max=f"{GIB}\n")
    limits = read_cgroup_limits(root, _membership(tmp_path, "0::/docker/0123abc/../x\n"))
    assert limits == CgroupLimits(2.0, GIB, None)


@pytest.mark.parametrize("text", ["", "rubbish\n", "0::/\n", "a:b\n0::/gone\n"])
@pytest.mark.parametrize("cpu_max", ["max 100000\n", "", "-1 100000\n", "100000 0\n", "100000\n"])
def test_where_nothing_limits_nothing_is_claimed(tmp_path: Path, text: str, cpu_max: str) -> None:
    _write(tmp_path / "fs", cpu__max=cpu_max, memory__max="max\n")
    assert read_cgroup_limits(tmp_path / "fs", _membership(tmp_path, text)) == FREE


def test_a_system_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert read_cgroup_limits(tmp_path / "none", tmp_path / "nothing") == FREE


def _topology(tmp_path: Path, siblings: dict[int, str], packages: dict[int, str] | None = None) -> Path:
    for number, text in siblings.items():
        folder = tmp_path / f"cpu{number}" / "topology"
        _write(folder, thread_siblings_list=text, physical_package_id=(packages or {}).get(number, "0"))
    return tmp_path


@pytest.mark.parametrize(
    ("allowed", "quota", "expected"),
    [
        (set(range(8)), None, (4, 8)),
        ({0, 1}, None, (1, 2)),
        ({0, 2}, None, (2, 2)),
        ({0, 2, 4}, None, (3, 3)),
        (set(range(8)), 2.0, (2, 2)),
        (set(range(8)), 5.0, (4, 5)),
        (set(range(8)), 2.9, (2, 2)),
        (set(range(8)), 0.5, (1, 1)),
    ],
)
def test_affinity_and_quota_bound_the_cores(
    tmp_path: Path, allowed: set[int], quota: float | None, expected: tuple[int, int]
) -> None:
    # Four cores of two threads each, numbered in pairs.
    topology = _topology(tmp_path, {n: f"{n // 2 * 2}-{n // 2 * 2 + 1}" for n in range(8)})
    cores = count_cores(allowed, CgroupLimits(quota, None, None), 4, 8, topology)
    assert (cores.physical, cores.logical, cores.machine_logical) == (*expected, 8)


def test_a_container_with_2_of_64_cores_has_2(tmp_path: Path) -> None:
    by_quota = count_cores(set(range(64)), CgroupLimits(2.0, None, None), 32, 64, tmp_path)
    by_affinity = count_cores({10, 11}, FREE, 32, 64, _topology(tmp_path, {10: "10,42", 11: "11,43"}))
    assert (by_quota.physical, by_affinity.physical) == (2, 2)


def test_cores_of_two_packages_are_not_confused(tmp_path: Path) -> None:
    topology = _topology(tmp_path, {0: "0", 1: "0"}, {0: "0", 1: "1"})
    assert count_cores({0, 1}, FREE, None, 2, topology).physical == 2


@pytest.mark.parametrize(("physical", "logical", "expected"), [(8, 16, 8), (None, 16, 16), (12, 8, 8)])
def test_where_affinity_is_unknown_the_machine_counts(
    tmp_path: Path, physical: int | None, logical: int, expected: int
) -> None:
    assert count_cores(None, FREE, physical, logical, tmp_path).physical == expected


def test_this_machine_makes_sense() -> None:
    host = read_host()
    assert 1 <= host.physical_cores <= host.logical_cores <= host.machine_logical_cores
    assert 0 < host.memory_available_bytes <= host.memory_total_bytes
    assert host.memory_total_bytes <= psutil.virtual_memory().total
    assert host.os
    assert json.loads(json.dumps(asdict(host)))["machine"] == host.machine


def test_memory_is_what_the_control_group_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = CgroupLimits(None, 64 << 20, 32 << 20)
    monkeypatch.setattr("localspec.hardware.host.read_cgroup_limits", lambda: limits)
    host = read_host()
    assert (host.memory_total_bytes, host.memory_available_bytes, host.is_memory_limited) == (64 << 20, 32 << 20, True)


def _status(proc: Path, pid: int, size_kib: int, data_kib: int) -> None:
    _write(proc / str(pid), status=f"Name:\tx\nVmSize:\t {size_kib} kB\nVmData:\t {data_kib} kB\n")


def test_the_largest_of_our_processes_has_least_left_of_its_own_limit(tmp_path: Path) -> None:
    _status(tmp_path, 1, 1024, 512)
    _status(tmp_path, 2, 2048, 256)
    limits = {"RLIMIT_AS": 10 << 20, "RLIMIT_DATA": 9 << 20}
    assert tightest(limits, [1, 2, 3], tmp_path) == ProcessLimit("ulimit -v", 10 << 20, 8 << 20)
    assert tightest({"RLIMIT_DATA": 1 << 18}, [1, 2], tmp_path) == ProcessLimit("ulimit -d", 1 << 18, 0)
    assert tightest({}, [1, 2], tmp_path) is None


def test_memory_is_what_the_process_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = ProcessLimit("ulimit -v", 64 << 20, 32 << 20)
    monkeypatch.setattr("localspec.hardware.host.read_process_limit", lambda: limit)
    host = read_host()
    assert (host.memory_total_bytes, host.memory_available_bytes, host.is_memory_limited) == (64 << 20, 32 << 20, True)
    assert host.process_limit == "ulimit -v"
    group = CgroupLimits(None, 16 << 20, 8 << 20)
    monkeypatch.setattr("localspec.hardware.host.read_cgroup_limits", lambda: group)
    host = read_host()
    assert (host.memory_total_bytes, host.memory_available_bytes, host.process_limit) == (16 << 20, 8 << 20, "")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone holds processes to them")
def test_a_real_limit_of_the_shell_is_read() -> None:
    code = "from localspec.hardware.host import read_host; host = read_host(); print(host.process_limit)"
    command = ["sh", "-c", f"ulimit -v 4000000 && exec '{sys.executable}' -c '{code}'"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "ulimit -v", done.stderr


@pytest.mark.parametrize(
    ("battery", "expected"),
    [
        (None, ("no_battery", None)),
        (SimpleNamespace(percent=40, power_plugged=True), ("mains", 40.0)),
        (SimpleNamespace(percent=40.5, power_plugged=False), ("battery", 40.5)),
        (SimpleNamespace(percent=40, power_plugged=None), ("unknown", 40.0)),
    ],
)
def test_power_source(
    battery: SimpleNamespace | None, expected: tuple[str, float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psutil, "sensors_battery", lambda: battery, raising=False)
    assert read_power() == expected


def test_a_system_that_cannot_tell_its_power_source_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(psutil, "sensors_battery", raising=False)
    assert read_power() == ("unknown", None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Some CPU @ 3.00GHz\ncpu\t: x\n", "Some CPU @ 3.00GHz"),
        ("processor\t: 0\nBogoMIPS\t: 50\n\nModel\t\t: Raspberry Pi 5\n", "Raspberry Pi 5"),
        ("", ""),
    ],
)
def test_processor_name(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "cpuinfo").write_text(text, encoding="utf-8")
    assert read_cpu_name(tmp_path / "cpuinfo", "Linux") == name
    assert read_cpu_name(tmp_path / "none", "Linux") == ""


def test_throttling_is_counted_once_for_each_package(tmp_path: Path) -> None:
    for number, (package, count) in enumerate([("0", "7"), ("0", "7"), ("1", "5")]):
        _write(tmp_path / f"cpu{number}" / "topology", physical_package_id=package)
        _write(tmp_path / f"cpu{number}" / "thermal_throttle", package_throttle_count=count)
    assert read_clock(tmp_path).num_throttled == 12


def test_a_clock_that_is_not_reported_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_freq", lambda: SimpleNamespace(current=2000.0, min=0.0, max=0.0), raising=False)
    assert read_clock(tmp_path) == ClockReading(2000.0, None, None)
    monkeypatch.setattr(psutil, "cpu_freq", lambda: None, raising=False)
    assert read_clock(tmp_path) == ClockReading(None, None, None)


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(3, 3, False), (3, 4, True), (None, 4, None), (3, None, None)]
)
def test_throttling_between_two_readings(before: int | None, after: int | None, expected: bool | None) -> None:
    assert was_throttled(ClockReading(None, None, before), ClockReading(None, None, after)) is expected


def test_a_profile_sorts_out_the_gpus() -> None:
    cpu = Device("CPU", "Some CPU", "cpu", "CPU", GIB, GIB)
    gpu = Device("Vulkan0", "Some GPU", "integrated_gpu", "Vulkan", GIB, 2 * GIB)
    assert read_profile((cpu, gpu)).gpus == (gpu,)
