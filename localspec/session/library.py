"""The models on this machine, with what their headers say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localspec.catalog.file_names import stem_of, typable
from localspec.catalog.places import folder_notes, places
from localspec.catalog.scan import FoundModel, Scan, scan
from localspec.errors import EngineDiedError, LocalspecError, ModelFileError

if TYPE_CHECKING:
    from localspec.catalog.facts import ModelFacts
    from localspec.catalog.header_cache import HeaderCache, Reading
    from localspec.engine.interface import Engine
    from localspec.settings import Settings

MAX_DEATHS = 3
"""Engines that may die one after the other before the rest of the files is left unread."""

OnRead = Callable[[int, int, str], None]
"""Called before each model with its index from 0, the number of models, and its name."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model, and what its header says or why it says nothing."""

    found: FoundModel
    facts: ModelFacts | None
    failure: str = ""
    """Empty where there are facts."""
    hint: str = ""


def scan_models(settings: Settings) -> Scan:
    """Return the models on this machine without opening any, and notes on folders that could not be looked at."""
    result = scan(places(settings.models))
    return Scan(result.models, (*folder_notes(settings.models), *result.notes))


def local_models(settings: Settings) -> tuple[FoundModel, ...]:
    """Return the models on this machine without opening any."""
    return scan_models(settings).models


async def read_library(
    engine: Engine,
    found: Sequence[FoundModel],
    on_progress: OnRead | None = None,
    cache: HeaderCache | None = None,
) -> tuple[ModelEntry, ...]:
    """Return an entry for each model, in order. A file that cannot be read is an entry with its reason.

    The engine is asked, and so started, only for files that are new or changed. Cancelling keeps what was read.

    Args:
        engine: reads headers.
        found: the models.
        on_progress: called before each model.
        cache: what was read earlier; by default the cache folder's.
    """
    from localspec.catalog.header_cache import HeaderCache

    cache = await asyncio.to_thread(HeaderCache) if cache is None else cache
    entries: list[ModelEntry] = []
    try:
        async for entry in _entries(engine, found, on_progress, cache):
            entries.append(entry)
    finally:
        cache.save()
    return tuple(entries)


async def _entries(
    engine: Engine, found: Sequence[FoundModel], on_progress: OnRead | None, cache: HeaderCache
) -> AsyncIterator[ModelEntry]:
    from localspec.catalog.header_cache import Reading, stamp_of

    num_deaths = 0
    death = Reading(None)
    for index, model in enumerate(found):
        if on_progress is not None:
            on_progress(index, len(found), model.name)
        if model.missing:
            yield ModelEntry(model, None, *_missing(model))
            continue
        stamp = stamp_of(model.shards)
        reading = None if stamp is None else cache.get(stamp)
        if reading is None and num_deaths == MAX_DEATHS:
            reading = death
        elif reading is None:
            try:
                reading, is_lasting = await _read(engine, model)
                num_deaths = 0
                if is_lasting and stamp is not None:
                    cache.put(stamp, reading)
            except EngineDiedError as error:
                num_deaths += 1
                reading = death = Reading(None, error.message, error.hint)
        yield ModelEntry(model, reading.facts, reading.failure, reading.hint)


async def _read(engine: Engine, model: FoundModel) -> tuple[Reading, bool]:
    """Return what the header says, and whether it will say so again as long as the file stays the same."""
    from localspec.catalog.facts import facts_of
    from localspec.catalog.header_cache import Reading
    from localspec.engine.events import HeaderRead
    from localspec.engine.interface import last_event
    from localspec.engine.requests import ReadHeader

    try:
        answer = await last_event(engine, ReadHeader(id=engine.next_id(), path=str(model.path)))
        if not isinstance(answer, HeaderRead):
            raise LocalspecError("The engine gave another answer than the one asked for.", "Install localspec again.")
        return Reading(facts_of(answer.header)), True
    except EngineDiedError:
        raise
    except LocalspecError as error:
        # Rights may be put in order without a change to the file.
        is_of_the_file = isinstance(error, ModelFileError) and all(os.access(file, os.R_OK) for file in model.shards)
        return Reading(None, error.message, error.hint), is_of_the_file
    except ValueError as error:
        return Reading(None, f"What its header says makes no sense: {error}.", "Download the file again."), True


def _missing(model: FoundModel) -> tuple[str, str]:
    """Return message and hint for a model of which files are gone."""
    names = ", ".join(model.missing[:3]) + (" …" if len(model.missing) > 3 else "")
    num_files = len(model.shards) + len(model.missing)
    if num_files == 1:
        message = f"The file is gone: {model.path} leads to nothing."
    else:
        message = f"{len(model.missing)} of its {num_files} files are missing in {model.path.parent}: {names}."
    if model.place == "hugging face":
        label = typable(stem_of(model.file_name).rpartition("/")[2])
        return message, f"To fetch what is missing: localspec pull {model.repo}:{label}"
    if model.place == "ollama":
        return message, f"To fetch it again: ollama pull {model.name}"
    return message, "Download it into the same folder."
