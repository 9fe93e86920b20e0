"""SHA-256 of model files, remembered as long as size and modification time stay."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from localspec.errors import LocalspecError, ModelFileError
from localspec.paths import cache_dir

_BLOCK_BYTES = 4 * 1024 * 1024

OnHashed = Callable[[int, int], None]
"""Called in the event loop with (bytes read, bytes in all)."""


async def sha256_of(path: Path, on_progress: OnHashed | None = None, folder: Path | None = None) -> str:
    """Return a file's SHA-256 in hexadecimal. It is read in a thread, once; cancelling stops the reading.

    Args:
        path: the file.
        on_progress: called while reading; not for a remembered one.
        folder: where sums are remembered; by default the cache folder.

    Raises:
        ModelFileError: the file cannot be read.
    """
    folder = cache_dir() if folder is None else folder
    loop = asyncio.get_running_loop()
    stop = threading.Event()

    def report(num_done: int, num_total: int) -> None:
        if on_progress is not None:
            # The loop may be closed already when the caller was cancelled.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(on_progress, num_done, num_total)

    try:
        return await asyncio.to_thread(_remembered_sum, path, folder / "sha256.json", report, stop)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.", "Check the file and its rights.") from error
    finally:
        stop.set()


def read_sha256(path: Path, folder: Path | None = None) -> str:
    """Return a file's SHA-256 as `sha256_of` does, but waiting for it.

    Raises:
        ModelFileError: the file cannot be read.
    """
    folder = cache_dir() if folder is None else folder
    try:
        return _remembered_sum(path, folder / "sha256.json", lambda num_done, num_total: None, threading.Event())
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.", "Check the file and its rights.") from error


def remembered_sha256(path: Path, folder: Path | None = None) -> str:
    """Return a file's SHA-256 if it was computed before and the file is the same since; otherwise an empty text."""
    try:
        folder = cache_dir() if folder is None else folder
        path = path.resolve()
        facts = path.stat()
    except (OSError, ValueError, LocalspecError):
        return ""
    return _known_sum(_read_memory(folder / "sha256.json"), path, facts)


def _remembered_sum(path: Path, memory: Path, report: OnHashed, stop: threading.Event) -> str:
    path = path.resolve()
    facts = path.stat()
    if known := _known_sum(_read_memory(memory), path, facts):
        return known
    digest = hashlib.sha256()
    num_done = 0
    with path.open("rb") as file:
        while not stop.is_set() and (block := file.read(_BLOCK_BYTES)):
            digest.update(block)
            num_done += len(block)
            report(num_done, facts.st_size)
    if not stop.is_set():
        entry = [facts.st_size, facts.st_mtime_ns, digest.hexdigest()]
        _write_memory(memory, {**_read_memory(memory), str(path): entry})
    return digest.hexdigest()


def _known_sum(memory: dict[str, object], path: Path, facts: os.stat_result) -> str:
    entry = memory.get(str(path))
    stamp = [facts.st_size, facts.st_mtime_ns]
    if isinstance(entry, list) and entry[:2] == stamp and len(entry) == 3 and isinstance(entry[2], str):
        return entry[2]
    return ""


def _read_memory(memory: Path) -> dict[str, object]:
    try:
        known = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write_memory(memory: Path, known: dict[str, object]) -> None:
    # A sum that cannot be remembered is computed again next time.
    with contextlib.suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        draft = memory.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(json.dumps(known), encoding="utf-8")
        draft.replace(memory)
