"""The log file of the engine process: its stderr, rotated by size, with the last lines at hand."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_TAIL_BYTES = 16_384
_LINE_CHARACTERS = 400
_NOT_PRINTABLE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|[@-_])|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class RotatingLog:
    """Appends bytes to a file. Over `max_bytes` the file becomes `NAME.1`, the older one `NAME.2`, and so on.

    A log that cannot be written (full disk, no permission) is given up silently: it must not stop an answer.
    The last lines are kept in memory in any case; without a path, they are all that is kept.
    """

    def __init__(self, path: Path | None, max_bytes: int = 1_000_000, num_old: int = 2) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._num_old = num_old
        self._file: BinaryIO | None = None
        self._size = 0
        self._tail = bytearray()
        self._is_given_up = False

    def begin(self, headline: str) -> None:
        """Start the part of a new process: what the tail holds of an older one is forgotten."""
        self.write(f"--- {headline}\n".encode())
        self._tail.clear()

    def write(self, data: bytes) -> None:
        """Append bytes as they came from the process."""
        self._tail += data
        del self._tail[:-_TAIL_BYTES]
        if self._is_given_up or self._path is None:
            return
        try:
            file = self._open_for(self._path, len(data))
            file.write(data)
            self._size += len(data)
        except OSError:
            self._is_given_up = True
            self.close()

    def tail(self, num_lines: int = 20) -> tuple[str, ...]:
        """Return the last lines of the newest process, free of control characters and escape sequences."""
        text = self._tail.decode("utf-8", errors="replace")
        lines = (_NOT_PRINTABLE.sub("", line)[:_LINE_CHARACTERS] for line in text.splitlines())
        return tuple(line for line in lines if line.strip())[-num_lines:]

    def close(self) -> None:
        """Close the file; the next write opens it again."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _open_for(self, path: Path, num_bytes: int) -> BinaryIO:
        if self._file is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._size = self._file.tell()
        if self._size and self._size + num_bytes > self._max_bytes:
            self.close()
            self._shift(path)
            self._file = path.open("ab", buffering=0)
            self._size = 0
        return self._file

    def _shift(self, path: Path) -> None:
        # Windows refuses to rename a file that another instance has open: that file then grows on.
        with suppress(OSError):
            for number in range(self._num_old, 0, -1):
                newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
                if newer.exists():
                    newer.replace(path.with_name(f"{path.name}.{number}"))
