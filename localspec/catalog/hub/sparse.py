"""Files that have a model's size on disk but hold only its beginning."""

from __future__ import annotations

import errno
import sys
from typing import BinaryIO


def extend_sparse(file: BinaryIO, kept_bytes: int, size_bytes: int) -> None:
    """Keep the first `kept_bytes` and let the file be `size_bytes` long, the rest a hole that takes no room.

    Raises:
        OSError: the file system has no files of that size.
    """
    file.flush()
    _allow_holes(file)
    file.truncate(kept_bytes)
    file.truncate(size_bytes)


def is_too_large(error: OSError) -> bool:
    """Say whether a file system refused a size."""
    return error.errno in (errno.EFBIG, errno.EINVAL, errno.EOVERFLOW)


def _allow_holes(file: BinaryIO) -> None:
    """Mark the file as sparse where that must be asked for: NTFS would otherwise set the whole size aside."""
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        set_sparse = 0x000900C4
        handle = ctypes.c_void_p(msvcrt.get_osfhandle(file.fileno()))
        written = ctypes.c_ulong()
        ctypes.windll.kernel32.DeviceIoControl(handle, set_sparse, None, 0, None, 0, ctypes.byref(written), None)
