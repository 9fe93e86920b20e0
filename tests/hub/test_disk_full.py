"""A full disk, real and injected, and folders that may not be written: words, and nothing lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.catalog.hub import disk
from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.queue import Downloads
from localspec.errors import DiskFullError, DownloadError
from tests.hub.downloading import (
    DATA,
    SHARD,
    blobs_of,
    cache_of,
    clean_names,
    names_in,
    offer_of,
    partial_of,
    plant_partial,
    pull,
)
from tests.hub.server import TestHub

pytestmark = pytest.mark.usefixtures("downloadable")

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory with 512 KiB; no test without the right to mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not permitted")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fail_writes(monkeypatch: pytest.MonkeyPatch, room: int, number: int) -> None:
    """Let the disk take so many bytes and then fail, with half a write where the room ends."""
    left = [room]
    write = os.write

    def limited(descriptor: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(number, os.strerror(number))
        done = write(descriptor, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr("localspec.catalog.hub.partial_file.os.write", limited)


async def test_room_is_looked_for_before_the_first_byte(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_partial(hub, DATA[:100_000])
    needed = len(DATA) - 100_000 + len(SHARD)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, needed + disk.SPARE_BYTES - 1024))
    with pytest.raises(DiskFullError, match="still to be fetched") as caught:
        await pull("a.gguf", "q/b-00001-of-00002.gguf")
    assert caught.value.hint.startswith("Free 1.0 KiB on the disk of ")
    assert hub.bytes_sent("a.gguf") == 0
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, needed + disk.SPARE_BYTES))
    assert (await pull("a.gguf", "q/b-00001-of-00002.gguf")).read_bytes() == DATA


async def test_a_full_disk_does_not_matter_to_what_is_there(hub: TestHub, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await pull()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9, 0))
    assert await pull() == path


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
async def test_no_room_for_the_next_byte(hub: TestHub, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with monkeypatch.context() as patch:
        fail_writes(patch, 300_001, number)
        with pytest.raises(DiskFullError, match=r"390\.6 KiB more are needed") as caught:
            await pull()
    assert caught.value.hint
    assert partial_of(hub).read_bytes() == DATA[:300_001]
    hub.forget()
    assert (await pull()).read_bytes() == DATA
    assert hub.bytes_sent("a.gguf") == len(DATA) - 300_001
    assert names_in(hub) == clean_names(hub)


async def test_another_failure_of_the_disk_is_told_with_its_reason(
    hub: TestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_writes(monkeypatch, 1000, errno.EIO)
    with pytest.raises(DownloadError, match="Input/output error") as caught:
        await pull()
    assert not isinstance(caught.value, DiskFullError)
    assert partial_of(hub).stat().st_size == 1000


async def test_a_real_disk_that_fills_up(
    hub: TestHub, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localspec.catalog.hub.queue.require_space", lambda folder, needed_bytes: None)
    async with Hub() as client:
        wanted = await offer_of(client, "a.gguf")
        with pytest.raises(DiskFullError, match="is full"):
            await Downloads(client, small_disk).fetch([wanted], lambda progress: None)
        (part,) = small_disk.rglob("*.partial")
        have = part.stat().st_size
        assert 0 < have < len(DATA) and part.read_bytes() == DATA[:have]
        # Room is made.
        subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
        hub.forget()
        (path,) = await Downloads(client, small_disk).fetch([wanted], lambda progress: None)
        assert path.read_bytes() == DATA
        assert hub.bytes_sent("a.gguf") == len(DATA) - have
        assert not list(small_disk.rglob("*.localspec.*"))


async def test_a_cache_that_is_only_for_reading(
    hub: TestHub, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "SPARE_BYTES", 0)
    async with Hub() as client:
        here, new = await offer_of(client, "q/b-00001-of-00002.gguf"), await offer_of(client, "q/b-00002-of-00002.gguf")
        (path,) = await Downloads(client, small_disk).fetch([here], lambda progress: None)
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(DownloadError, match="Read-only file system") as caught:
            await Downloads(client, small_disk).fetch([new], lambda progress: None)
        assert "HF_HUB_CACHE" in caught.value.hint
        # What is there can be had all the same.
        assert await Downloads(client, small_disk).fetch([here], lambda progress: None) == (path,)


async def test_a_file_in_place_of_the_cache(hub: TestHub) -> None:
    cache_of(hub).write_bytes(b"")
    with pytest.raises(DownloadError, match="Cannot write under"):
        await pull()


async def test_a_folder_in_place_of_the_file(hub: TestHub) -> None:
    partial_of(hub).mkdir(parents=True)
    with pytest.raises(DownloadError, match="Cannot write under"):
        await pull()
    assert list(blobs_of(hub).glob("*.partial/*")) == []
