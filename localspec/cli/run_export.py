"""A run for other programs, written to a file or to stdout."""

from __future__ import annotations

import sys
from pathlib import Path

from localspec.cli.chat_file import write_new
from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.run_store import chosen_run
from localspec.cli.services import Services
from localspec.cli.text import one_line
from localspec.errors import UsageError
from localspec.session.records import encode_record
from localspec.session.run_export import csv_text, exported


def run_export(services: Services, word: str, is_csv: bool | None, file: Path | None, is_forced: bool) -> int:
    """Write a run to a file or to stdout, and return the exit code.

    Args:
        word: which run.
        is_csv: a table instead of the document; None: as the file's name ends.
        file: None for stdout.
        is_forced: write over an existing file.
    """
    stored = chosen_run(services, word)
    if is_csv is None:
        is_csv = file is not None and file.suffix.lower() == ".csv"
    text = csv_text(stored) if is_csv else encode_record(exported(stored)) + "\n"
    if file is None:
        sys.stdout.write(text)
        return EXIT_DONE
    try:
        path = write_new(file, text, is_forced)
    except UsageError as error:
        raise UsageError(error.message, "Choose another name, or give --force to write over it.") from None
    say_notice(f"Written to {one_line(str(path))}.")
    return EXIT_DONE
