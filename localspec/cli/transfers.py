"""The progress of downloads and copies."""

from __future__ import annotations

from localspec.catalog.progress import OnTransfer, TransferProgress, TransferState
from localspec.cli.figures import bytes_text, duration_text
from localspec.cli.screen import Report

_WORDS: dict[TransferState, str] = {
    "waiting": "waiting for",
    "checking": "checking what is there of",
    "fetching": "fetching",
    "copying": "copying",
    "done": "done:",
}


def transfer_printer(report: Report) -> OnTransfer:
    """Return what shows the progress of transfers."""

    def show(progress: TransferProgress) -> None:
        total = progress.all_total_bytes
        fraction = progress.all_done_bytes / total if total else 0.0
        report(_description(progress), fraction, figure(progress))

    return show


def figure(progress: TransferProgress) -> str:
    """Return bytes, speed and the time left."""
    parts = [f"{bytes_text(progress.all_done_bytes)} of {bytes_text(progress.all_total_bytes)}"]
    if progress.speed is not None and progress.state != "done":
        parts.append(f"{bytes_text(round(progress.speed))}/s")
    if progress.eta_s is not None and progress.state != "done":
        parts.append(f"{duration_text(progress.eta_s)} left")
    return ", ".join(parts)


def _description(progress: TransferProgress) -> str:
    place = f" ({progress.index + 1} of {progress.num_files})" if progress.num_files > 1 else ""
    return f"{_WORDS[progress.state]} {progress.name}{place}"
