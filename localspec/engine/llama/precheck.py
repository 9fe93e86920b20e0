"""A look at a GGUF on the disk before ggml's parser sees it."""

from __future__ import annotations

import os
import stat

from localspec.catalog.gguf_walk import HeaderWalk, printable
from localspec.errors import ModelFileError

_CHUNK = 1 << 20


def precheck(path: str) -> HeaderWalk:
    """Check that a path is a GGUF file whose header can be parsed within bounds.

    Returns:
        The completed walk over the header.

    Raises:
        ModelFileError: it is missing, no regular file, not a GGUF, of a foreign version, or its header is damaged or
            beyond the limits.
    """
    shown = printable(path)
    try:
        # Opening a FIFO would wait for a writer, so the kind of file is looked at first.
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):
            kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise ModelFileError(f"{shown} is {kind}.", "Name a .gguf file.")
        return _walk(path, shown)
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {shown}.", "Check the path.") from None
    except PermissionError:
        raise ModelFileError(f"{shown} may not be read.", "Check the file's permissions.") from None
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{shown} cannot be read: {error}.", "Check the path and the disk.") from None


def _walk(path: str, shown: str) -> HeaderWalk:
    with open(path, "rb", buffering=0) as file:
        walk = HeaderWalk(os.fstat(file.fileno()).st_size, shown)
        while not walk.is_complete:
            chunk = file.read(_CHUNK)
            if not chunk:
                raise ModelFileError(
                    f"{shown} is damaged: it became shorter while it was read, at byte {walk.received_bytes}.",
                    "Download the file again. If it is what its maker published, it needs fixing there.",
                )
            walk.feed(chunk)
    return walk
