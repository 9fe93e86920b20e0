"""Going through folders within bounds: each folder once, whatever links there are. Nothing raises."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

MAX_DEPTH = 6
MAX_ENTRIES = 100_000

_MAX_FAILURES = 20

Facts = os.stat_result | None
"""Of a file; None for a link whose file is gone or out of reach."""


@dataclass(slots=True)
class Walk:
    """Remembers which folders were seen, over all places."""

    max_entries: int = MAX_ENTRIES
    """Of one place."""
    num_entries: int = 0
    failures: list[str] = field(default_factory=list)
    """A sentence for each of the first folders and files that could not be looked at."""
    _seen: set[tuple[int, int] | str] = field(default_factory=set)

    @property
    def is_exhausted(self) -> bool:
        """Whether this place has more entries than are looked at."""
        return self.num_entries > self.max_entries

    def folders(
        self, top: str, is_wanted: Callable[[str], bool], *, is_whole: bool = False
    ) -> Iterator[tuple[str, dict[str, Facts]]]:
        """Yield each folder with its wanted files by name; those seen before are left out.

        Args:
            top: where to begin.
            is_wanted: says of a file's name whether the file counts.
            is_whole: look into hidden folders and however deep, as far as there are entries left.
        """
        pending = [(top, 0)]
        while pending and not self.is_exhausted:
            folder, depth = pending.pop()
            if not self._is_new(folder):
                continue
            names, below = self._look(folder, is_wanted, is_whole)
            if depth < MAX_DEPTH or is_whole:
                pending.extend((path, depth + 1) for path in reversed(below))
            files = {name: facts for name in names for facts in self.facts(os.path.join(folder, name))}
            if files:
                yield folder, files

    def names(self, folder: str) -> list[str]:
        """Return what a folder holds, sorted and bounded; nothing where it cannot be read."""
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.num_entries += 1
                    if self.is_exhausted:
                        break
                    names.append(entry.name)
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            self._fail(folder, error)
        return sorted(names)

    def facts(self, path: str) -> Iterator[Facts]:
        """Yield what is known of a file, or nothing if it is none or vanished meanwhile."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError) as error:
            if os.path.islink(path):
                yield None
            elif not isinstance(error, FileNotFoundError):
                self._fail(path, error)
            return
        if stat.S_ISREG(facts.st_mode):
            yield facts

    def _look(self, folder: str, is_wanted: Callable[[str], bool], has_hidden: bool) -> tuple[list[str], list[str]]:
        wanted: list[str] = []
        below: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    self.num_entries += 1
                    if self.is_exhausted:
                        break
                    is_hidden = entry.name.startswith(".")
                    if is_hidden and not has_hidden:
                        continue
                    if _is_folder(entry):
                        below.append(entry.path)
                    elif not is_hidden and is_wanted(entry.name):
                        wanted.append(entry.name)
        except OSError as error:
            self._fail(folder, error)
        return sorted(wanted), sorted(below)

    def _is_new(self, folder: str) -> bool:
        try:
            facts = os.stat(folder)
        except (OSError, ValueError):
            return False
        # Some network file systems number nothing.
        key = (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(folder)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _fail(self, path: str, error: Exception) -> None:
        if len(self.failures) < _MAX_FAILURES:
            self.failures.append(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
