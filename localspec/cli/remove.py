"""`localspec remove`: models and what broken-off downloads left."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

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
from localspec.session.earlier_answers import KeptAnswers, clear_answers, kept_answers
from localspec.session.figures import bytes_text
from localspec.session.library import local_models
from localspec.session.pacing_memory import PacingMemory
from localspec.session.plain_text import one_line
from localspec.session.removing import check_removable, remove_model


def run_remove(
    services: Services,
    names: Sequence[str],
    with_partials: bool,
    is_sure: bool,
    with_answers: bool = False,
    with_learnt: bool = False,
) -> int:
    """Say what goes, ask, remove it, and return the exit code."""
    if not (names or with_partials or with_answers or with_learnt):
        raise UsageError(
            "Nothing to remove was named.",
            "Name models, or give --partial for what broken-off downloads left, --answers or --learnt.",
        )
    found = local_models(settings_in_force())
    models = list(dict.fromkeys(resolve(name, found) for name in names))
    for model in models:
        check_removable(model)
    partials = list_partials(hugging_face_folder()) if with_partials else ()
    console = results_console()
    own = OwnFiles.found(with_answers, with_learnt)
    if not models and not partials and not own.lines:
        no_partial = "No download was broken off; there is nothing to remove."
        say(console, no_partial if with_partials else "There is nothing to remove.")
        return EXIT_DONE
    for model in models:
        say(console, one_line(f"{model.name}: {bytes_text(model.file_bytes)} in {model.path.parent}"))
    for partial in partials:
        say(console, partial_line(partial))
    for line in own.lines:
        say(console, one_line(line))
    if not is_sure and not _is_confirmed():
        say_notice("Nothing was removed.")
        return EXIT_FAILED
    freed = own.remove()
    if freed and not models and not partials:
        say(console, f"Removed; {bytes_text(freed)} freed.")
        return EXIT_DONE
    return _remove(models, partials, found, freed)


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """What localspec has kept for itself: answers to copy from, and what adaptive drafting has learnt."""

    answers: KeptAnswers | None
    learnt: PacingMemory | None

    @classmethod
    def found(cls, with_answers: bool, with_learnt: bool) -> OwnFiles:
        """Return what there is of those that are asked for."""
        answers = kept_answers() if with_answers else None
        learnt = PacingMemory() if with_learnt else None
        return cls(answers if answers and answers.num_files else None, learnt if learnt and learnt.sizes() else None)

    @property
    def lines(self) -> list[str]:
        """What will go."""
        lines = []
        if (kept := self.answers) is not None:
            lines.append(f"answers to copy from: about {kept.num_tokens} tokens in {kept.folder}")
        if self.learnt is not None:
            num_files = len(self.learnt.sizes())
            lines.append(
                f"what adaptive drafting has learnt of {num_files} pair{'s' if num_files > 1 else ''} of models"
            )
        return lines

    def remove(self) -> int:
        """Delete it all, and return how many bytes that gives back.

        Raises:
            LocalspecError: a file cannot be deleted.
        """
        freed = 0
        if self.answers is not None:
            freed += clear_answers(self.answers.folder).num_bytes
        if self.learnt is not None:
            freed += sum(self.learnt.sizes())
            self.learnt.clear()
        return freed


def _remove(models: Sequence[FoundModel], partials: Sequence[Partial], found: Sequence[FoundModel], freed: int) -> int:
    num_removed = 0
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
