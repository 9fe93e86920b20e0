"""The standard streams of this process, as they must be before anything is written to them."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Lossy(io.FileIO):
    """Loses what cannot be written, so that a full disk under the messages ends no work."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Make standard error writable whatever it is, and keep closed descriptors from being taken for other files."""
    with suppress(OSError):
        for descriptor in (0, 1, 2):
            _occupy(descriptor)
    if sys.stderr is not None and sys.stderr.isatty():
        return
    with suppress(OSError, ValueError):
        raw = _Lossy(2, "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=getattr(sys.stderr, "encoding", None) or "utf-8",
            errors="replace",
            line_buffering=True,
        )


def accept_any_text() -> None:
    """Let a terminal that cannot show a character show another one instead."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def check_output() -> None:
    """Raise LocalspecError if standard output is closed: Python would drop every result without a word."""
    if sys.stdout is None:
        raise LocalspecError("Standard output is closed.", "Send it to a file, a pipe, or /dev/null.")


def abandon_output() -> None:
    """Lose what could not be written, so that writing it again at the exit does not fail a second time."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _occupy(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except OSError:
        # The system gives the lowest free number, and the lower ones are taken by now.
        os.open(os.devnull, os.O_RDWR)
