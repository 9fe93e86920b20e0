from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from localspec.catalog.hub.header_store import prune_headers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="real sizes are not told there")

KIB = 1024


def _offer(folder: Path, name: str, age: int, real_bytes: int = 64 * KIB, size_bytes: int = 1 << 30) -> Path:
    offer = folder / name
    offer.mkdir(parents=True)
    file = offer / "model.gguf"
    file.write_bytes(b"x" * real_bytes)
    os.truncate(file, size_bytes)
    os.utime(offer, (10_000 - age, 10_000 - age))
    return offer


def test_the_oldest_go_first_and_holes_do_not_count(tmp_path: Path) -> None:
    old, middle, new = (_offer(tmp_path, f"repo-{age}/a", age) for age in (3, 2, 1))
    prune_headers(tmp_path, new, 1 << 20)
    assert old.exists() and middle.exists() and new.exists()
    prune_headers(tmp_path, new, 150 * KIB)
    assert not old.parent.exists()
    assert middle.exists() and new.exists()


def test_what_is_needed_now_stays(tmp_path: Path) -> None:
    needed, other = _offer(tmp_path, "repo/needed", 9), _offer(tmp_path, "repo/other", 1)
    prune_headers(tmp_path, needed, 0)
    assert needed.exists()
    assert not other.exists()


def test_a_folder_that_is_not_there_is_no_failure(tmp_path: Path) -> None:
    prune_headers(tmp_path / "none", tmp_path, 0)
    assert list(tmp_path.iterdir()) == []
