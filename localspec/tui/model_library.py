"""What the Models screen knows: the models here, what is left of downloads, and what may draft for one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localspec.errors import LocalspecError
from localspec.session.figures import percent_text

if TYPE_CHECKING:
    from localspec.catalog.curated import CuratedList
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.partials import Partial
    from localspec.engine.interface import Engine
    from localspec.session.candidates import Candidate
    from localspec.session.library import ModelEntry
    from localspec.settings import Settings


@dataclass(frozen=True, slots=True)
class Library:
    """The models of this machine, as far as they are read."""

    entries: tuple[ModelEntry, ...] = ()
    partials: tuple[Partial, ...] = ()
    notes: tuple[str, ...] = ()
    """On folders that could not be looked at."""
    activity: str = "looking for models"
    """What is going on; empty when all is read."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no models, and that is certain."""
        return not self.entries and not self.activity

    def find(self, path: Path) -> ModelEntry | None:
        """Return the model whose first file this is."""
        return next((entry for entry in self.entries if entry.found.path == path), None)


@dataclass(frozen=True, slots=True)
class Drafts:
    """What may draft for a target."""

    target: str = ""
    """Name of the model; empty for none."""
    candidates: tuple[Candidate, ...] = ()
    notes: tuple[str, ...] = ()
    activity: str = ""
    """What is going on; empty when the search is over."""
    failure: str = ""
    """Why nothing can be said."""


async def load_library(settings: Settings, probe: Engine, publish: Callable[[Library], None]) -> Library:
    """Look at all folders, then read the headers; what is known so far is published.

    Files that cannot be read are entries with their reason.
    """
    from localspec.catalog.hub.partials import list_partials
    from localspec.catalog.places import hugging_face_folder
    from localspec.session.library import ModelEntry, read_library, scan_models

    scan = await asyncio.to_thread(scan_models, settings)
    partials = await asyncio.to_thread(list_partials, hugging_face_folder())
    unread = tuple(ModelEntry(found, None) for found in scan.models)
    publish(Library(unread, partials, scan.notes, "reading headers"))

    def on_read(index: int, count: int, name: str) -> None:
        publish(Library(unread, partials, scan.notes, f"reading headers, {index + 1} of {count}"))

    entries = await read_library(probe, scan.models, on_read)
    return Library(entries, partials, scan.notes, "")


async def find_drafts(
    probe: Engine, entry: ModelEntry, library: Library, publish: Callable[[Drafts], None], hub: Hub | None = None
) -> Drafts:
    """Return what may draft for a model of the library.

    Args:
        probe: reads headers and compares vocabularies.
        entry: the target.
        library: the models of this machine.
        publish: hears what is going on.
        hub: where to look further; None to stay on this machine.
    """
    from localspec.session.candidates import find_candidates
    from localspec.session.located import local_model

    name = entry.found.name
    if entry.facts is None:
        unread = "could not be read" if entry.failure else "is not read yet"
        return Drafts(name, failure=f"Its header {unread}, so nothing is known of its drafts.")
    if entry.facts.draft_only is not None:
        return Drafts(name, failure=f"It is a {entry.facts.draft_only} head: it drafts, and nothing drafts for it.")
    notes: list[str] = []
    publish(Drafts(name, activity="looking for drafts"))
    curated = await asyncio.to_thread(known_pairs)
    notes += [f"{failure.message} {failure.hint}" for failure in curated.failures]
    try:
        candidates = await find_candidates(
            probe,
            local_model(entry.found).as_target(entry.facts),
            curated=curated.pairs,
            local=library.entries,
            hub=hub,
            on_progress=lambda text, fraction: publish(Drafts(name, activity=f"{text}, {percent_text(fraction)}")),
            on_note=notes.append,
        )
    except LocalspecError as error:
        return Drafts(name, notes=tuple(notes), failure=f"{error.message} {error.hint}")
    return Drafts(name, candidates, tuple(notes))


def known_pairs() -> CuratedList:
    """Return the curated pairs, the user's own among them."""
    from localspec.catalog.curated import curated_folders, read_curated

    return read_curated(curated_folders())
