"""`localspec export`: a profile as another engine takes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.profile import opened
from localspec.cli.services import Services
from localspec.errors import LocalspecError, UsageError
from localspec.session.exporting.exports import Destination, export
from localspec.session.exporting.shells import Shell
from localspec.session.profiles import file_notes, read_profile
from localspec.store.profiles import Profiles


def run_export(services: Services, name: str, to: str, shell: str | None, output: Path | None, replaces: bool) -> int:
    """Print or write the text and return the exit code."""
    with opened(services) as database:
        profile = read_profile(Profiles(database).get(name))
    text = export(profile, cast(Destination, to), cast(Shell, shell or ("powershell" if os.name == "nt" else "sh")))
    for note in file_notes(profile):
        say_notice(f"note: {note}")
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text, replaces)
        say_notice(f"Written to {output}.")
    return EXIT_DONE


def _write(path: Path, text: str, replaces: bool) -> None:
    try:
        with path.open("w" if replaces else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"There is a file {path} already.", "Choose another name, or replace it with --force."
        ) from None
    except OSError as error:
        raise LocalspecError(
            f"{path} cannot be written: {error.strerror}.", "Choose another file, or look at the folder's rights."
        ) from error
