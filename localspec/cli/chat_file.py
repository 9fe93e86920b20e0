"""Files that a person asks for; the terminal app writes them alike."""

from __future__ import annotations

import sys
from pathlib import Path

from localspec.cli.failures import say_notice
from localspec.errors import UsageError
from localspec.session.new_file import check_regular, is_stdout, write_new
from localspec.session.plain_text import one_line

__all__ = ["check_output", "put_out", "write_new"]


def check_output(file: Path | None, is_forced: bool) -> None:
    """Refuse a place that nothing can be written to, before anything is made for it.

    Raises:
        UsageError: there is such a file already, or something that is no file.
        LocalspecError: it cannot be looked at.
    """
    if file is not None and not is_stdout(file) and check_regular(file.expanduser()) and not is_forced:
        raise _exists(file)


def put_out(file: Path | None, text: str, is_forced: bool) -> None:
    """Write a text to a file and say so, or to stdout for None or `-`.

    Raises:
        UsageError: there is such a file already and nobody insists, or something that is no file.
        LocalspecError: it cannot be written.
    """
    if file is None or is_stdout(file):
        sys.stdout.write(text)
        return
    check_output(file, is_forced)
    path = write_new(file, text, is_forced)
    say_notice(f"Written to {one_line(str(path))}.")


def _exists(file: Path) -> UsageError:
    return UsageError(f"There is a file {file!s:.200} already.", "Choose another name, or replace it with --force.")
