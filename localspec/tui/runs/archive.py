"""The kept runs and profiles as the Runs screen uses them. Everything here blocks: call it in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError, UsageError

if TYPE_CHECKING:
    from localspec.session.profiles import NamedProfile
    from localspec.store.database import Database
    from localspec.store.values import Profile, RunSummary, StoredRun

Stamp = tuple[tuple[int, int], ...]
"""Time of change and size of the database's files."""


@dataclass(frozen=True, slots=True)
class KeptProfile:
    """A profile in a list, or why it cannot be read."""

    name: str
    run_id: int | None
    read: NamedProfile | None
    failure: str
    """Empty if it could be read."""
    notes: tuple[str, ...]
    """On model files that are gone or changed."""


@dataclass(frozen=True, slots=True)
class History:
    """All that is kept, as lists."""

    runs: tuple[RunSummary, ...] = ()
    """Newest first."""
    profiles: tuple[KeptProfile, ...] = ()
    failure: LocalspecError | None = None
    """Why nothing can be read."""
    is_read: bool = False
    """False until it was looked at for the first time."""


class RunArchive:
    """Opens the database for each piece of work, since it belongs to the thread that opened it."""

    def __init__(self, open_database: Callable[[], Database], on_notice: Callable[[str], None]) -> None:
        """Prepare; nothing is opened yet.

        Args:
            open_database: opens it anew.
            on_notice: takes sentences on what was set aside, in the thread that works.
        """
        self._open_database = open_database
        self._on_notice = on_notice
        self._path: Path | None = None

    def stamp(self) -> Stamp | None:
        """Return what changes when somebody writes; None while the database's place is not known."""
        path = self._path
        if path is None:
            return None
        return tuple(_facts(file) for file in (path, path.with_name(f"{path.name}-wal")))

    def history(self) -> History:
        """Return the lists, or why there are none."""
        from localspec.store.profiles import Profiles
        from localspec.store.runs import Runs

        try:
            with self._opened() as database:
                profiles = tuple(map(_kept_profile, Profiles(database).all()))
                return History(Runs(database).summaries(), profiles, is_read=True)
        except LocalspecError as error:
            return History(failure=error, is_read=True)

    def run(self, run_id: int) -> StoredRun:
        """Return a run.

        Raises:
            LocalspecError: it is gone, or cannot be read. So for everything here.
        """
        from localspec.store.runs import Runs

        with self._opened() as database:
            return Runs(database).get(run_id)

    def delete_runs(self, run_ids: Sequence[int]) -> None:
        """Delete runs, unless one of them is still being measured.

        Raises:
            UsageError: one is; then none is deleted.
        """
        from localspec.store.runs import Runs

        with self._opened() as database:
            runs = Runs(database)
            states = {summary.id: summary.state for summary in runs.summaries()}
            if running := [run_id for run_id in run_ids if states.get(run_id) == "running"]:
                raise UsageError(f"Run {running[0]} is still being measured.", "Delete it when it has ended.")
            for run_id in run_ids:
                if run_id in states:
                    runs.delete(run_id)

    def has_profile(self, name: str) -> bool:
        """Return whether there is a profile of that name.

        Raises:
            UsageError: no profile can have it.
        """
        from localspec.store.profiles import Profiles, check_name

        check_name(name)
        with self._opened() as database:
            return any(profile.name.casefold() == name.casefold() for profile in Profiles(database).all())

    def save_profile(
        self,
        name: str,
        run_id: int,
        arm: str,
        replaces: bool,
        repo_of: Callable[[Path], str],
        now: datetime | None = None,
    ) -> NamedProfile:
        """Make a profile of a run, keep it, and return it.

        Args:
            arm: which way of drafting; empty for the best one.
            replaces: it may take the place of one with the same name.
            repo_of: tells where on the Hub a model file is from.
            now: the moment; None for the clock's.
        """
        from localspec.session.profiles import make_profile, read_profile
        from localspec.store.profiles import Profiles
        from localspec.store.runs import Runs

        with self._opened() as database:
            stored = Runs(database).get(run_id)
            made = make_profile(name, stored, now or datetime.now(UTC), arm=arm, repo_of=repo_of)
            Profiles(database).save(made, replaces=replaces)
        return read_profile(made)

    def rename_profile(self, name: str, new_name: str) -> None:
        """Give a profile another name."""
        from localspec.store.profiles import Profiles

        with self._opened() as database:
            Profiles(database).rename(name, new_name)

    def delete_profile(self, name: str) -> None:
        """Forget a profile; its run stays."""
        from localspec.store.profiles import Profiles

        with self._opened() as database:
            Profiles(database).delete(name)

    @contextmanager
    def _opened(self) -> Iterator[Database]:
        with self._open_database() as database:
            self._path = database.path
            try:
                yield database
            finally:
                for notice in database.notices:
                    self._on_notice(notice)


def _facts(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def _kept_profile(profile: Profile) -> KeptProfile:
    from localspec.session.profiles import evidence_notes, file_notes, read_profile

    try:
        read = read_profile(profile)
    except LocalspecError as error:
        return KeptProfile(profile.name, profile.run_id, None, error.message, ())
    notes = (*file_notes(read), *evidence_notes(read.document.evidence))
    return KeptProfile(profile.name, profile.run_id, read, "", notes)
