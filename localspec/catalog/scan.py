"""Finding models by the names and sizes of files alone: no model is opened, and nothing raises.

Names of files are foreign text. They are kept as they are, undecodable bytes included, and nobody interprets them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localspec.catalog.file_names import group_names, is_model, is_side_file, quantisation_in, stem_of, typable
from localspec.catalog.found_model import FoundModel
from localspec.catalog.ollama import ollama_models
from localspec.catalog.places import Place, PlaceKind
from localspec.catalog.unique_names import with_unique_names
from localspec.catalog.walk import MAX_ENTRIES, Facts, Walk

__all__ = ["FoundModel", "Scan", "scan"]


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found, in order of precedence."""

    models: tuple[FoundModel, ...]
    notes: tuple[str, ...]
    """Sentences on what could not be looked at."""


def scan(places: Sequence[Place], max_entries: int = MAX_ENTRIES) -> Scan:
    """Return the models of all places, each once however many ways lead to its folder.

    Args:
        places: in order of precedence.
        max_entries: of one place; then the search stops, with a note.
    """
    walk = Walk(max_entries)
    models: list[FoundModel] = []
    notes: list[str] = []
    for place in places:
        walk.num_entries = 0
        match place.kind:
            case "hugging face":
                models.extend(_hub_models(str(place.folder), walk))
            case "ollama":
                models.extend(_ollama_models(place.folder, walk))
            case _:
                models.extend(_folder_models(place, walk))
        if walk.is_exhausted:
            notes.append(f"{place.folder} has more than {max_entries:,} entries; the rest was not looked at.")
    return Scan(with_unique_names(models), (*notes, *walk.failures))


def _folder_models(place: Place, walk: Walk) -> Iterator[FoundModel]:
    for folder, files in walk.folders(str(place.folder), is_model):
        parts = os.path.relpath(folder, place.folder).split(os.sep)
        # LM Studio keeps the Hub's names: publisher/repository/file.gguf.
        repo = "/".join(parts) if place.kind == "lm studio" and len(parts) == 2 else ""
        for names in group_names(files):
            stem = stem_of(names[0])
            yield _found(folder, names, files, place.kind, stem, repo=repo, file_name=names[0])


def _ollama_models(store: Path, walk: Walk) -> Iterator[FoundModel]:
    for model in ollama_models(store, walk):
        folder = str(model.blobs[0].parent)
        names = tuple(path.name for path in model.blobs)
        blobs = {path.name: facts for path in model.blobs for facts in walk.facts(str(path))}
        quantisation = quantisation_in(model.tag)
        yield _found(folder, names, blobs, "ollama", model.name, quantisation=quantisation, file_name=model.name)


def _hub_models(cache: str, walk: Walk) -> Iterator[FoundModel]:
    for entry in walk.names(cache):
        # The layout's own rule; the Hub allows no repository a name with two hyphens in a row.
        repo = entry.removeprefix("models--").replace("--", "/")
        if not entry.startswith("models--") or repo.count("/") > 1 or walk.is_exhausted:
            continue
        known: set[tuple[object, ...]] = set()
        in_use: set[str] = set()
        for commit in _commits(os.path.join(cache, entry), walk):
            found = list(_snapshot_models(os.path.join(cache, entry, "snapshots", commit), repo, commit, walk, known))
            for model in found:
                # The newest keeps the short name, so that an older one does not change what it means.
                is_older = model.name in in_use
                yield replace(model, name=f"{model.name}@{commit[:8]}") if is_older else model
            in_use.update(model.name for model in found)


def _snapshot_models(
    snapshot: str, repo: str, commit: str, walk: Walk, known: set[tuple[object, ...]]
) -> Iterator[FoundModel]:
    # What a repository has was fetched by name, however deep it lies there.
    for folder, files in walk.folders(snapshot, is_model, is_whole=True):
        inside = os.path.relpath(folder, snapshot).replace(os.sep, "/")
        prefix = "" if inside == "." else f"{inside}/"
        for names in group_names(files):
            file_name = prefix + names[0]
            # Most commits of a repository share most of their files.
            blobs = [_blob(os.path.join(folder, name), facts) for name in names if (facts := files.get(name))]
            content = tuple(blobs) if blobs else (file_name,)
            if content in known:
                continue
            known.add(content)
            quantisation = quantisation_in(names[0]) or quantisation_in(prefix)
            # The quantisation alone means the model, not what drafts for it.
            label = typable(stem_of(names[0])) if is_side_file(names[0]) or not quantisation else quantisation
            yield _found(
                folder,
                names,
                files,
                "hugging face",
                f"{repo}:{label}",
                repo=repo,
                quantisation=quantisation,
                commit=commit,
                file_name=file_name,
            )


def _blob(path: str, facts: os.stat_result) -> object:
    # Some network file systems number nothing.
    return (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)


def _commits(repo_folder: str, walk: Walk) -> list[str]:
    """Return the commits of which files are here: that of `main` first, then the newest."""
    snapshots = os.path.join(repo_folder, "snapshots")
    main = _first_word(os.path.join(repo_folder, "refs", "main"))
    return sorted(walk.names(snapshots), key=lambda name: (name != main, -_mtime(os.path.join(snapshots, name)), name))


def _found(
    folder: str,
    names: tuple[str, ...],
    files: dict[str, Facts],
    place: PlaceKind,
    name: str,
    *,
    repo: str = "",
    quantisation: str | None = None,
    commit: str = "",
    file_name: str,
) -> FoundModel:
    """Return the model that files of these names, in order, make up."""
    there = {file: facts for file in names if (facts := files.get(file)) is not None}
    shards = tuple(Path(folder, file) for file in there)
    return FoundModel(
        name=name,
        path=shards[0] if shards else Path(folder, names[0]),
        shards=shards,
        place=place,
        repo=repo,
        quantisation=quantisation_in(names[0]) if quantisation is None else quantisation,
        file_bytes=sum(facts.st_size for facts in there.values()),
        missing=tuple(file for file in names if file not in there),
        commit=commit,
        file_name=file_name,
    )


def _first_word(path: str) -> str:
    try:
        # Opening a pipe would wait for ever.
        if not os.path.isfile(path):
            return ""
        with open(path, "rb") as file:
            return file.read(64).decode("ascii", "replace").strip()
    except (OSError, ValueError):
        return ""


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0
