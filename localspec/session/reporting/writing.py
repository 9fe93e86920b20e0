"""Writing files: whole or not at all, and never over what somebody else made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localspec import __version__
from localspec.errors import LocalspecError, UsageError
from localspec.session.new_file import check_regular, replace_file

GENERATOR: Final = f"localspec {__version__}"
"""What the files of a report say they were made by."""

SVG_MARK: Final = f"<!-- Drawn by {GENERATOR} -->"
"""The second line of pictures that are SVG files."""

_MARKS: Final = (b'<meta name="generator" content="localspec ', b"Software\0localspec ", b"<!-- Drawn by localspec ")
"""In the first bytes of pages and of pictures."""

_HEAD_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Output:
    """A file to write."""

    path: Path
    content: bytes


def check_place(path: Path, is_forced: bool) -> None:
    """Refuse a place where something lies that localspec did not make.

    Raises:
        UsageError: what is there is no file, its folder does not exist, or the file is foreign and nobody insists.
        LocalspecError: it cannot be looked at.
    """
    exists = check_regular(path)
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent}.", "Make it first, or name another place.")
    if exists and not is_forced and not _is_own(path):
        raise UsageError(
            f"{path} exists, and localspec did not make it.", "Name another file, or write over it with --force."
        )


def write_all(outputs: Sequence[Output], is_forced: bool) -> None:
    """Write files, after all places have been found good. Each appears whole, in one moment.

    Raises:
        UsageError: as check_place.
        LocalspecError: the system refused.
    """
    for output in outputs:
        check_place(output.path, is_forced)
    for output in outputs:
        _write(output)


def _write(output: Output) -> None:
    try:
        replace_file(output.path, output.content)
    except OSError as error:
        raise LocalspecError(f"Cannot write {output.path}: {error.strerror or error}.", "Name another place.") from None


def _is_own(path: Path) -> bool:
    try:
        # What has been found a file may be a pipe by now, which nobody may ever write into.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return False
    return any(mark in head for mark in _MARKS)
