"""`localspec export`: a profile as another engine takes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

from localspec.cli.chat_file import check_output, put_out
from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.profile import opened
from localspec.cli.services import Services
from localspec.session.exporting.exports import Destination, export
from localspec.session.exporting.kinds import for_kind
from localspec.session.exporting.shells import Shell
from localspec.session.profiles import file_notes, read_profile
from localspec.store.profiles import Profiles


def run_export(
    services: Services, name: str, to: str, workload: str, shell: str | None, output: Path | None, replaces: bool
) -> int:
    """Print or write the text and return the exit code; with a workload, of what the profile holds for that alone."""
    check_output(output, replaces)
    with opened(services) as database:
        profile = read_profile(Profiles(database).get(name))
    if workload:
        profile = for_kind(profile, workload)
    text = export(profile, cast(Destination, to), cast(Shell, shell or ("powershell" if os.name == "nt" else "sh")))
    for note in file_notes(profile):
        say_notice(f"note: {note}")
    put_out(output, text, replaces)
    return EXIT_DONE
