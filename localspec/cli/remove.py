"""`localspec remove`: models and what broken-off downloads left."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from localspec.catalog.found_model import FoundModel
from localspec.catalog.hub.partials import Partial, list_partials, remove_partial
from localspec.catalog.naming import resolve
from localspec.catalog.places import hugging_face_folder
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_failure, say_notice
from localspec.cli.models import partial_line
from localspec.cli.screen import results_console, say
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.errors import LocalspecError, UsageError
from localspec.session.figures import bytes_text
from localspec.session.library import local_models
from localspec.session.plain_text import one_line
from localspec.session.removing import check_removable, remove_model


def run_remove(services: Services, names: Sequence[str], with_partials: bool, is_sure: bool) -> int:
    """Say what goes, ask, remove it, and return the exit code."""
    if not names and not with_partials:
        raise UsageError(
            "Nothing to remove was named.", "Name models, or give --partial for what broken-off downloads left."
        )
    found = local_models(settings_in_force())
    models = list(dict.fromkeys(resolve(name, found) for name in names))
    for model in models:
        check_removable(model)
    partials = list_partials(hugging_face_folder()) if with_partials else ()
    console = results_console()
    if not models and not partials:
        say(console, "No download was broken off; there is nothing to remove.")
        return EXIT_DONE
    for model in models:
        say(console, one_line(f"{model.name}: {bytes_text(model.file_bytes)} in {model.path.parent}"))
    for partial in partials:
        say(console, partial_line(partial))
    if not is_sure and not _is_confirmed():
        say_notice("Nothing was removed.")
        return EXIT_FAILED
    return _remove(models, partials, found)


def _remove(models: Sequence[FoundModel], partials: Sequence[Partial], found: Sequence[FoundModel]) -> int:
    freed, num_removed = 0, 0
    others = [model for model in found if model not in models]
    items: tuple[FoundModel | Partial, ...] = (*models, *partials)
    for item in items:
        try:
            if isinstance(item, Partial):
                remove_partial(item)
                freed += item.have_bytes
            else:
                freed += remove_model(item, others)
            num_removed += 1
        except LocalspecError as error:
            say_failure(error)
    if num_removed:
        say(results_console(), f"Removed; {bytes_text(freed)} freed.")
    return EXIT_DONE if num_removed == len(items) else EXIT_FAILED


def _is_confirmed() -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("There is nobody to ask whether that may go.", "Add --yes.")
    return click.confirm("Remove?", default=False, err=True)
