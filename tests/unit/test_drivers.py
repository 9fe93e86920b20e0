from __future__ import annotations

from pathlib import Path

import pytest

from localspec.hardware.drivers import read_drivers

CLOSED = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 19:09:27 UTC 2025
GCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)
"""
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.51.03  Release Build  (builder@x)\n"


@pytest.mark.parametrize(("text", "version"), [(CLOSED, "570.86.15"), (OPEN, "575.51.03")])
def test_nvidias_version_is_read_from_the_kernel(text: str, version: str, tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text(text, encoding="utf-8")
    assert read_drivers(file, tmp_path, "linux") == {"NVIDIA": version}


def test_a_module_of_its_own_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "amdgpu").mkdir()
    (tmp_path / "amdgpu" / "version").write_text("6.10.5\n", encoding="utf-8")
    assert read_drivers(tmp_path / "none", tmp_path, "linux") == {"amdgpu": "6.10.5"}


@pytest.mark.parametrize("text", ["", "NVRM version:\n", "\x00\xff"])
def test_what_is_not_told_is_left_out(text: str, tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text(text, encoding="utf-8")
    assert read_drivers(file, tmp_path, "linux") == {}
    assert read_drivers(tmp_path / "none", tmp_path / "none", "linux") == {}
