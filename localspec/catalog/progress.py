"""Progress of anything that moves bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

TransferState = Literal["waiting", "checking", "fetching", "copying", "done"]
"""waiting: for another download of the same file, or for the Hub to be ready again; checking: hashing what is there."""


@dataclass(frozen=True, slots=True)
class FileProgress:
    """How far one file is, be it its turn or not."""

    name: str
    """Its path in the repository."""
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class TransferProgress:
    """How far one of several files is."""

    name: str
    """Of the file, for people."""
    index: int
    """Of the file among all, from 0."""
    num_files: int
    state: TransferState
    done_bytes: int
    """Of this file, what an earlier run brought included."""
    total_bytes: int
    all_done_bytes: int
    """Of all files together."""
    all_total_bytes: int
    speed: float | None
    """Bytes per second of late; None before it can be told."""
    eta_s: float | None
    """Until all files are there; None before it can be told."""
    files: tuple[FileProgress, ...] = ()
    """Each of them, in order; empty where only the sum is known."""


OnTransfer = Callable[[TransferProgress], None]
"""Called in the event loop, at most some ten times a second and at every change of state."""
