"""A failure whose words would cover the screen: its beginning is shown, and the log file has all of it."""

from __future__ import annotations

from datetime import datetime

from localspec.errors import LocalspecError

MAX_LINES = 6
MAX_CHARACTERS = 500

MAX_LOG_BYTES = 1_000_000
"""A log file larger than that is begun anew."""


def short_notice(text: str) -> str:
    """Return the text; if it is too long its beginning, with where the rest is."""
    lines = text.split("\n")
    if len(lines) <= MAX_LINES and len(text) <= MAX_CHARACTERS:
        return text
    begun = "\n".join(lines[: MAX_LINES - 1])[:MAX_CHARACTERS].rstrip()
    return f"{begun} …\n{_write(text)}"


def _write(text: str) -> str:
    from localspec.paths import log_dir

    try:
        path = log_dir() / "localspec.log"
        mode = "w" if path.exists() and path.stat().st_size > MAX_LOG_BYTES else "a"
        with path.open(mode, encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')}\n{text}\n")
    except (LocalspecError, OSError):
        return "The rest could not be written to the log file."
    return f"All of it is in {path}"
