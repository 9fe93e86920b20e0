"""Keeps the folder of fetched headers from growing for ever."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

MAX_HEADERS_BYTES = 512 << 20
"""Of real space. A header takes up to about 16 MiB."""


def prune_headers(folder: Path, keep: Path, max_bytes: int = MAX_HEADERS_BYTES) -> None:
    """Remove the headers that were fetched longest ago, until the rest takes no more than `max_bytes`.

    Args:
        folder: of all headers: a folder for each repository, in it one for each offer.
        keep: the offer's folder that is needed now.
        max_bytes: of real space; a hole in a sparse file takes none.
    """
    ages: list[tuple[float, int, Path]] = []
    for repository in _folders(folder):
        for offer in _folders(repository):
            with suppress(OSError):
                ages.append((offer.stat().st_mtime, _real_bytes(offer), offer))
    total = sum(size for _, size, _ in ages)
    for _, size, offer in sorted(ages):
        if total <= max_bytes:
            return
        if offer != keep:
            shutil.rmtree(offer, ignore_errors=True)
            total -= size
            # A repository's folder goes with the last of its offers.
            with suppress(OSError):
                offer.parent.rmdir()


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _real_bytes(folder: Path) -> int:
    total = 0
    for entry in os.scandir(folder):
        facts = entry.stat(follow_symlinks=False)
        # Windows tells no blocks; there the header's share cannot be told from the hole.
        total += getattr(facts, "st_blocks", 0) * 512
    return total
