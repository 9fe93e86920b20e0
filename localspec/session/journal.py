"""The application's own log file: what a person need not read while working, but may want to look up."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from localspec.errors import LocalspecError
from localspec.paths import log_dir

MAX_BYTES = 1_000_000


def write_note(text: str, file: Path | None = None) -> None:
    """Append a note. A log that cannot be written is given up silently: it must not stop what it tells of.

    Args:
        text: one or more lines.
        file: by default the one in the log folder.
    """
    try:
        path = log_dir() / "localspec.log" if file is None else file
        mode = "w" if path.exists() and path.stat().st_size > MAX_BYTES else "a"
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n")
    except (OSError, LocalspecError):
        return
