"""Files that a person asks for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from localspec.errors import LocalspecError, UsageError


def write_new(name: str | Path, text: str, is_forced: bool) -> Path:
    """Write a text to a file as UTF-8, and return its path. An existing file is left alone unless that is forced.

    A forced writing that fails leaves the earlier file as it was.

    Raises:
        UsageError: there is such a file already.
        LocalspecError: it cannot be written.
    """
    shown = f"{name!s:.200}"
    draft: Path | None = None
    try:
        path = Path(name).expanduser()
        if is_forced and path.exists() and not path.is_file():
            # A device or pipe takes the text as it is: it cannot be replaced by a file.
            path.write_text(text, encoding="utf-8", newline="\n")
            return path
        if is_forced:
            draft = path.with_name(f".{path.name[:100]}.{os.getpid()}.part")
        with (draft or path).open("w" if draft else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if draft is not None:
            draft.replace(path)
        return path
    except FileExistsError:
        raise UsageError(f"There is a file {shown} already.", "Choose another name.") from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalspecError(f"{shown} cannot be written: {reason}.", "Choose another place.") from error
    finally:
        if draft is not None:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
