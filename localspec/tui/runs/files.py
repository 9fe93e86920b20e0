"""Files that the Runs screen writes. Everything here blocks: call it in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.errors import UsageError

if TYPE_CHECKING:
    from localspec.settings import Settings
    from localspec.store.values import StoredRun


def write_report(runs: Sequence[StoredRun], place: str) -> Path:
    """Write a page of runs, and return its whole path. A page that localspec made earlier may be there already.

    Raises:
        UsageError: something else is there, or there is no such folder.
        LocalspecError: it cannot be written, or a run cannot be read.
    """
    # matplotlib takes a while to load.
    from localspec.session.records import document_of
    from localspec.session.reporting.page import ReportRun, make_page
    from localspec.session.reporting.writing import Output, check_place, write_all

    path = _path(place)
    try:
        check_place(path, is_forced=False)
    except UsageError as error:
        raise UsageError(error.message, "Name another file.") from None
    shown = [
        ReportRun(run.summary.id, run.summary.created_at, run.summary.state, run.summary.profile, document_of(run))
        for run in runs
    ]
    page = make_page(shown, "", str(Path.home()))
    write_all([Output(path, page.encode("utf-8", errors="replace"))], is_forced=False)
    return path


def write_export(run: StoredRun, place: str) -> Path:
    """Write a run as a table of its rounds (`.csv`) or as its document, and return the whole path.

    Raises:
        UsageError: there is such a file already.
        LocalspecError: it cannot be written, or the run cannot be read.
    """
    from localspec.session.new_file import write_new
    from localspec.session.records import encode_record
    from localspec.session.run_export import csv_text, exported

    path = _path(place)
    text = csv_text(run) if path.suffix.lower() == ".csv" else encode_record(exported(run)) + "\n"
    return write_new(path, text, is_forced=False)


def repo_finder(settings: Settings) -> Callable[[Path], str]:
    """Return what tells where on the Hub a file is from; empty if it is not. The folders are looked through once."""
    found: dict[Path, str] = {}
    is_read = False

    def repo_of(path: Path) -> str:
        nonlocal is_read
        if not is_read:
            from localspec.session.library import local_models

            is_read = True
            found.update({shard: model.repo for model in local_models(settings) for shard in model.shards})
        return found.get(path, "")

    return repo_of


def _path(place: str) -> Path:
    try:
        return Path(place).expanduser().absolute()
    except (RuntimeError, ValueError):
        raise UsageError(f"{place!r:.80} is no place for a file.", "Name another one.") from None
