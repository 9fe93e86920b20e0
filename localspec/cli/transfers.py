"""The progress of downloads and copies."""

from __future__ import annotations

from localspec.catalog.progress import OnTransfer, TransferProgress, TransferState
from localspec.cli.screen import Report, notices_console
from localspec.session.figures import bytes_span, bytes_text, duration_text
from localspec.session.plain_text import one_line

_WORDS: dict[TransferState, str] = {
    "waiting": "waiting for",
    "checking": "checking what is there of",
    "fetching": "fetching",
    "copying": "copying",
    "done": "done:",
}


SHORTEST_NAME = 8
"""Characters of a file's name that are always shown."""

BAR_AND_SHARE = 22
"""Columns that the bar and the share at least take, with the spaces between."""


def transfer_printer(report: Report) -> OnTransfer:
    """Return what shows the progress of transfers, on a terminal in one line."""
    console = notices_console()

    def show(progress: TransferProgress) -> None:
        total = progress.all_total_bytes
        fraction = progress.all_done_bytes / total if total else 0.0
        text = figure(progress)
        room = console.width - BAR_AND_SHARE - len(text) if console.is_terminal else None
        report(description(progress, room), fraction, text)

    return show


def figure(progress: TransferProgress) -> str:
    """Return bytes, speed and the time left."""
    parts = [bytes_span(progress.all_done_bytes, "of", progress.all_total_bytes)]
    if progress.speed is not None and progress.state != "done":
        parts.append(f"{bytes_text(round(progress.speed))}/s")
    if progress.eta_s is not None and progress.state != "done":
        parts.append(f"{duration_text(progress.eta_s)} left")
    return ", ".join(parts)


def description(progress: TransferProgress, room: int | None = None) -> str:
    """Return what is being done to which file; of a name that is too long the middle is left out.

    Args:
        progress: of the file.
        room: columns; None for as many as it takes.
    """
    before = f"{_WORDS[progress.state]} "
    after = f" ({progress.index + 1} of {progress.num_files})" if progress.num_files > 1 else ""
    name = one_line(progress.name)
    if room is not None and len(before) + len(name) + len(after) > room:
        kept = max(SHORTEST_NAME, room - len(before) - len(after) - 1)
        # The end tells the quantisation.
        name = name.removesuffix(".gguf")
        name = f"{name[: kept // 2]}…{name[-(kept - kept // 2) :]}" if kept < len(name) else name
    return before + name + after
