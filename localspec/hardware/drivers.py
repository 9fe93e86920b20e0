"""Versions of GPU drivers, where the system tells them without being asked twice.

Drivers that come with the system (Metal, and on Linux those of AMD and Intel) have its release as their version.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_PROC_NVIDIA = Path("/proc/driver/nvidia/version")
_MODULES = Path("/sys/module")


def read_drivers(nvidia: Path = _PROC_NVIDIA, modules: Path = _MODULES, system: str = sys.platform) -> dict[str, str]:
    """Return the versions of installed drivers by name, such as `{"NVIDIA": "570.86.15"}`; empty if none is known."""
    versions = {"NVIDIA": _nvidia_smi() if system == "win32" else _nvidia(nvidia), "amdgpu": _module(modules, "amdgpu")}
    return {name: version for name, version in versions.items() if version}


def _nvidia(path: Path) -> str:
    # Such as "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 23 ...".
    found = re.search(r"^NVRM version:.*?\s(\d+(?:\.\d+)+)\s", _read(path), re.MULTILINE)
    return found[1] if found else ""


def _module(modules: Path, name: str) -> str:
    """Return the version of a kernel module that is not the kernel's own."""
    return _read(modules / name / "version").strip()[:40]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _nvidia_smi() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.split() if done.returncode == 0 else []
    return lines[0][:40] if lines else ""
