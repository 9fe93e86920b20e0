"""Sums of files: right, remembered, and forgotten when the file changes."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from localspec.errors import ModelFileError
from localspec.session.hashing import sha256_of


async def test_sum_is_computed_once(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"a" * 5_000_000)
    calls: list[tuple[int, int]] = []
    folder = tmp_path / "cache"
    first = await sha256_of(file, lambda done, total: calls.append((done, total)), folder)
    await asyncio.sleep(0)
    assert first == hashlib.sha256(b"a" * 5_000_000).hexdigest()
    assert calls[-1] == (5_000_000, 5_000_000)
    calls.clear()
    assert await sha256_of(file, lambda done, total: calls.append((done, total)), folder) == first
    await asyncio.sleep(0)
    assert calls == []


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"one")
    first = await sha256_of(file, folder=tmp_path)
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert await sha256_of(file, folder=tmp_path) != first


@pytest.mark.parametrize("memory", ["not json", "[1]", '{"x": 3}'])
async def test_a_damaged_memory_is_ignored(tmp_path: Path, memory: str) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"one")
    (tmp_path / "sha256.json").write_text(memory)
    assert await sha256_of(file, folder=tmp_path) == hashlib.sha256(b"one").hexdigest()


async def test_a_missing_file_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        await sha256_of(tmp_path / "absent.gguf", folder=tmp_path)
