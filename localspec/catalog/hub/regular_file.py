"""Small files at places where anything may have been planted."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_PIECE_BYTES = 1 << 20


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Return the first `max_bytes` of a regular file, without following a link to it and without waiting for a pipe.

    Raises:
        OSError: there is none, it is something else, or it cannot be read.
    """
    # Windows has neither flag, and no pipes among its files.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "no regular file", str(path))
        pieces = []
        while max_bytes > 0 and (piece := os.read(descriptor, min(max_bytes, _PIECE_BYTES))):
            pieces.append(piece)
            max_bytes -= len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)
