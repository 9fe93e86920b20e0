"""One name for each model that was found: the short one where it is the only one, else as much more as tells apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from localspec.catalog.file_names import stem_of, typable
from localspec.catalog.found_model import FoundModel

_MAX_FOLDERS = 8


def with_unique_names(models: Iterable[FoundModel]) -> tuple[FoundModel, ...]:
    """Return the models with names of which no two are equal."""
    found = list(models)
    names = [model.name for model in found]
    longer = [_longer_names(model) for model in found]
    for level in range(_MAX_FOLDERS + 1):
        counts = Counter(names)
        clashing = [index for index, name in enumerate(names) if counts[name] > 1]
        if not clashing:
            break
        for index in clashing:
            choices = longer[index]
            names[index] = choices[min(level, len(choices) - 1)]
    # Paths differ, and so do the tags of one of Ollama's files, unless a name was made to look like another's.
    taken: Counter[str] = Counter()
    unique: list[FoundModel] = []
    for model, name in zip(found, names, strict=True):
        taken[name] += 1
        whole = name if taken[name] == 1 else f"{name} ({taken[name]})"
        unique.append(model if whole == model.name else replace(model, name=whole))
    return tuple(unique)


def other_names(model: FoundModel) -> tuple[str, ...]:
    """Return what a model is called where its short name is another's too. All of them mean it at any time.

    Args:
        model: under whatever name it has.
    """
    if model.place == "hugging face" or not model.file_name:
        return ()
    short = model.file_name if model.place == "ollama" else stem_of(model.file_name).rpartition("/")[2]
    return (short, *_longer_names(replace(model, name=short)))


def _longer_names(model: FoundModel) -> list[str]:
    """Return other names of a model, ever longer, its path last."""
    path = str(model.path)
    if model.place == "ollama":
        store = model.path.parent.parent
        return [f"{store.name}/{model.name}", f"{store}/{model.name}"]
    if model.place == "hugging face":
        commit = model.commit[:8]
        suffix = f"@{commit}" if model.name.endswith(f"@{commit}") else ""
        parts = stem_of(model.file_name).split("/")
        return [f"{model.repo}:{typable('.'.join(words))}{suffix}" for words in (parts[-1:], parts)] + [path]
    folders = model.path.parts[-_MAX_FOLDERS:-1]
    return ["/".join((*folders[-count:], model.name)) for count in range(1, len(folders))] + [path]
