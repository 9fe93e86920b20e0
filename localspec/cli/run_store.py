"""The store as the commands on runs use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from localspec.cli.chat_store import open_database
from localspec.cli.services import Services
from localspec.session.run_document import choose_run
from localspec.store.runs import Runs
from localspec.store.values import StoredRun


@contextmanager
def open_runs(services: Services) -> Iterator[Runs]:
    """Give the kept runs, having said what was set aside.

    Raises:
        LocalspecError: they cannot be opened.
    """
    with ExitStack() as stack:
        yield Runs(open_database(stack, services))


def chosen_run(services: Services, word: str) -> StoredRun:
    """Return the run that a word means: a number, or `last`.

    Raises:
        UsageError: there is none.
        LocalspecError: the runs cannot be opened.
    """
    with open_runs(services) as runs:
        return choose_run(runs, word)
