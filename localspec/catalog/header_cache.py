"""What headers said, remembered as long as name, size and modification time of every file stay."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from localspec import __version__
from localspec.catalog.facts import ModelFacts
from localspec.errors import LocalspecError
from localspec.paths import cache_dir

FORMAT = f"1 {__version__}"
"""Another version may draw other facts from the same header, or read files that this one could not."""

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Of the JSON file: some fifty thousand models."""

MAX_ENTRY_BYTES = 64 * 1024
"""A model that says more of itself is read anew each time, lest it push the others out."""

_ROOM_AFTER_BOUNDING = 0.9
_MOST = 2**63
"""No count or size of a real model comes near; numbers beyond it would not do as floats."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model's header said, or why it could not be read."""

    facts: ModelFacts | None
    failure: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that the files of a model are still the same."""

    files: tuple[tuple[str, int, int], ...]
    """Absolute path, size in bytes and modification time in nanoseconds of each file."""


@dataclass(frozen=True, slots=True)
class _Entry:
    files: tuple[tuple[str, int, int], ...]
    reading: Reading


_ENTRY = TypeAdapter(_Entry)


def stamp_of(files: Sequence[Path]) -> Stamp | None:
    """Return the stamp of a model's files; None if one cannot be looked at, or has a name that is no Unicode."""
    stamps = []
    for file in files:
        path = os.path.abspath(file)
        try:
            path.encode()
            facts = os.stat(path)
        except (OSError, ValueError):
            return None
        stamps.append((path, facts.st_size, facts.st_mtime_ns))
    return Stamp(tuple(stamps)) if stamps else None


class HeaderCache:
    """Readings by the path of a model's first file, in one JSON file. Several processes may use it at once."""

    def __init__(self, file: Path | None = None) -> None:
        """Open the cache.

        Args:
            file: the JSON file, by default in the cache folder. Whatever else lies there is ignored and replaced.
                Without a folder to write in, the cache lasts as long as this object.
        """
        self._file = _default_file() if file is None else file
        self._known = {} if self._file is None else _read(self._file)
        self._new: dict[str, dict[str, Any]] = {}

    def get(self, stamp: Stamp) -> Reading | None:
        """Return what is remembered of these very files."""
        path = stamp.files[0][0]
        try:
            entry = _ENTRY.validate_python(self._new.get(path) or self._known.get(path))
        except ValidationError:
            return None
        return entry.reading if entry.files == stamp.files and _is_plausible(entry.reading.facts) else None

    def put(self, stamp: Stamp, reading: Reading) -> None:
        """Remember a reading; save() writes it down."""
        entry = asdict(_Entry(stamp.files, reading))
        if len(json.dumps(entry)) <= MAX_ENTRY_BYTES:
            self._new[stamp.files[0][0]] = entry

    def save(self) -> None:
        """Write what is new to what the file has by now. What cannot be written is read again another time."""
        if not self._new or self._file is None:
            return
        known = {**_read(self._file), **self._new}
        text = _encoded(known)
        if len(text) > MAX_FILE_BYTES:
            known = _bounded(known)
            text = _encoded(known)
        draft = self._file.with_name(f"{self._file.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            with contextlib.suppress(OSError, ValueError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                draft.write_text(text, encoding="ascii")
                draft.replace(self._file)
                self._known, self._new = known, {}
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def _default_file() -> Path | None:
    try:
        return cache_dir() / "headers.json"
    except LocalspecError:
        return None


def _encoded(known: dict[str, Any]) -> str:
    return json.dumps({"format": FORMAT, "entries": known})


def _bounded(known: dict[str, Any]) -> dict[str, Any]:
    """Leave out files that are gone and then the oldest entries, so that a good deal more fit in."""
    room = int(MAX_FILE_BYTES * _ROOM_AFTER_BOUNDING)
    kept: dict[str, Any] = {}
    # The oldest come first.
    for path, entry in reversed(known.items()):
        if os.path.exists(path):
            room -= len(json.dumps({path: entry}))
            if room < 0:
                break
            kept[path] = entry
    return dict(reversed(kept.items()))


def _is_plausible(facts: ModelFacts | None) -> bool:
    """Whether numbers in a file that anybody may have written can be those of a model."""
    if facts is None:
        return True
    values = [getattr(facts, field.name) for field in fields(facts)]
    numbers = [value for value in (*values, *facts.target_layers) if isinstance(value, int)]
    return all(0 <= number < _MOST for number in numbers)


def _read(file: Path) -> dict[str, Any]:
    try:
        if not file.is_file() or file.stat().st_size > MAX_FILE_BYTES:
            return {}
        said = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(said, dict) or said.get("format") != FORMAT or not isinstance(said.get("entries"), dict):
        return {}
    entries: dict[str, Any] = said["entries"]
    return entries
