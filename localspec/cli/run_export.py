"""A run for other programs, written to a file or to stdout."""

from __future__ import annotations

from pathlib import Path

from localspec.cli.chat_file import check_output, put_out
from localspec.cli.failures import EXIT_DONE
from localspec.cli.run_store import chosen_run
from localspec.cli.services import Services
from localspec.session.records import encode_record
from localspec.session.run_export import csv_text, exported


def run_export(services: Services, word: str, is_csv: bool | None, file: Path | None, is_forced: bool) -> int:
    """Write a run to a file or to stdout, and return the exit code.

    Args:
        word: which run.
        is_csv: a table instead of the document; None: as the file's name ends.
        file: None or `-` for stdout.
        is_forced: write over an existing file.
    """
    check_output(file, is_forced)
    stored = chosen_run(services, word)
    if is_csv is None:
        is_csv = file is not None and file.suffix.lower() == ".csv"
    text = csv_text(stored) if is_csv else encode_record(exported(stored)) + "\n"
    put_out(file, text, is_forced)
    return EXIT_DONE
