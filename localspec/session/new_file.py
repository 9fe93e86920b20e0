"""Files that a person asks for."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from localspec.errors import LocalspecError, UsageError

STDOUT_NAMES = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
"""What people call the standard output where a file is asked for."""

_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def is_stdout(name: str | Path) -> bool:
    """Return whether a name means the standard output."""
    return str(name) in STDOUT_NAMES


def check_regular(path: Path) -> bool:
    """Return whether there is a file at a place; nothing is opened, and no link followed.

    Raises:
        UsageError: something else is there, which nothing is written over, through or into.
        LocalspecError: it cannot be looked at.
    """
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalspecError(f"{_shown(path)} cannot be written: {reason}.", "Choose another place.") from error
    if stat.S_ISREG(mode):
        return True
    kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "no file")
    hint = "Name a file in it." if stat.S_ISDIR(mode) else "Name a new file, or one that may be replaced."
    raise UsageError(f"{_shown(path)} is {kind}, and is left as it is.", hint)


def write_new(name: str | Path, text: str, is_forced: bool) -> Path:
    """Write a text to a file as UTF-8, and return its path. An existing file is left alone unless that is forced.

    A forced writing that fails leaves the earlier file as it was.

    Raises:
        UsageError: there is such a file already, or something that is no file.
        LocalspecError: it cannot be written.
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:
        raise LocalspecError(f"{_shown(name)} cannot be written: {error}", "Choose another place.") from error
    if check_regular(path) and not is_forced:
        raise UsageError(f"There is a file {_shown(name)} already.", "Choose another name.")
    try:
        replace_file(path, text.encode("utf-8"), is_new=not is_forced)
    except FileExistsError:
        raise UsageError(f"There is a file {_shown(name)} already.", "Choose another name.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalspecError(f"{_shown(name)} cannot be written: {reason}.", "Choose another place.") from error
    return path


def replace_file(path: Path, content: bytes, is_new: bool = False) -> None:
    """Write a file that appears whole, in one moment, or not at all.

    Args:
        path: where it goes.
        content: all of it.
        is_new: it must not take the place of anything.

    Raises:
        FileExistsError: it is to be new, and something is there.
        OSError: it cannot be written.
    """
    draft = path if is_new else path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
    is_made = False
    try:
        if not is_new:
            draft.unlink(missing_ok=True)
        # Never through a link that somebody laid there meanwhile.
        with draft.open("xb") as file:
            is_made = True
            file.write(content)
            file.flush()
            with suppress(OSError):
                os.fsync(file.fileno())
        if not is_new:
            draft.replace(path)
        is_made = False
    finally:
        if is_made:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _shown(name: str | Path) -> str:
    return f"{name!s:.200}"
