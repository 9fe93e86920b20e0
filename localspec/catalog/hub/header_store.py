"""The folder of fetched headers: what in it is still whole, and how it is kept from growing for ever."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from localspec.catalog.hub.regular_file import read_regular

MAX_HEADERS_BYTES = 512 << 20
"""Of real space. A header takes up to about 16 MiB."""

_SEAL = re.compile(r"(\d{1,12}) (\d{1,15}) ([0-9a-f]{64})\n", re.ASCII)
_MAX_SEAL_BYTES = 200


def seal_header(header: Path, header_bytes: int) -> None:
    """Note what a fetched header must be from now on: its length, the file's size and a SHA-256 of the header.

    Raises:
        OSError: the file cannot be read, or the note not be written.
    """
    text = f"{header_bytes} {header.stat().st_size} {_digest(header, header_bytes)}\n"
    draft = _seal_path(header).with_suffix(f".{os.urandom(6).hex()}.part")
    draft.write_text(text, encoding="ascii")
    os.replace(draft, _seal_path(header))


def is_intact(header: Path, size_bytes: int) -> bool:
    """Return whether a header is there as it was when it was sealed. The hole behind it is not looked at.

    Args:
        header: the sparse file.
        size_bytes: of the model's file; 0 where that is not known.
    """
    try:
        match = _SEAL.fullmatch(read_regular(_seal_path(header), _MAX_SEAL_BYTES).decode("ascii"))
        if match is None or header.is_symlink():
            return False
        is_size = header.stat().st_size == int(match[2]) and size_bytes in (0, int(match[2]))
        return is_size and _digest(header, int(match[1])) == match[3]
    except (OSError, ValueError):
        return False


def clear_way(header: Path) -> None:
    """Remove folders that lie where a header and its seal should; files and links will be replaced.

    Raises:
        OSError: one cannot be removed.
    """
    for path in (header, _seal_path(header)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def _seal_path(header: Path) -> Path:
    # The header's own name may be as long as names can be.
    return header.with_name(f".{hashlib.sha256(os.fsencode(header.name)).hexdigest()[:16]}.seal")


def _digest(header: Path, header_bytes: int) -> str:
    return hashlib.sha256(read_regular(header, header_bytes)).hexdigest()


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
