"""Disks that are full, or will be."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from localspec.catalog import kit_copy
from localspec.catalog.kit import KitPart, export_kit, import_kit
from localspec.errors import DiskFullError
from tests.unit.kit.folders import contents


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
async def test_a_full_disk_leaves_whole_files_only(
    tmp_path: Path, parts: list[KitPart], models: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: BinaryIO, block: bytes) -> None:
        file.write(block)
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(kit_copy, "write_block", fail)
    with pytest.raises(DiskFullError) as caught:
        await export_kit(tmp_path / "kit", parts)
    assert caught.value.hint
    assert not (tmp_path / "kit").exists()
    monkeypatch.undo()
    await export_kit(tmp_path / "kit", parts)
    monkeypatch.setattr(kit_copy, "write_block", fail)
    with pytest.raises(DiskFullError):
        await import_kit(tmp_path / "kit", models)
    assert not models.exists()


async def test_room_is_checked_before(kit: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit_copy, "SPARE_BYTES", 2**70)
    with pytest.raises(DiskFullError, match="has room for"):
        await import_kit(kit, models)
    assert not models.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip("may not mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_disk_that_is_really_full(
    small_disk: Path, parts: list[KitPart], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit_copy, "SPARE_BYTES", -(2**20))
    with pytest.raises(DiskFullError, match="is full"):
        await export_kit(small_disk / "kit", parts)
    assert contents(small_disk) == {}
