"""From what a user types to a model on this machine."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from localspec.catalog.families import is_same_line, parse_family
from localspec.catalog.file_names import is_model, is_side_file, quantisation_in, shard_names, stem_of, typable
from localspec.catalog.found_model import FoundModel
from localspec.catalog.hub.values import RepoReference, parse_reference
from localspec.catalog.unique_names import other_names
from localspec.errors import ModelFileError, UsageError

_MAX_SHOWN = 8
_MAX_LENGTH = 200
_MAX_NEAREST = 5
_NEARLY_THE_SAME = 0.75
"""Of difflib's ratio: a letter or two that differ."""
_OWN_FOLDERS = ("models", "demo")
"""Last parts of paths.models_dir and paths.demo_models_dir."""
_FOR_A_SHELL = re.compile(r"^-|[\s'\"`$\\;|&<>()*?\[\]{}!~#^]")
"""An option, or what bash expands, quotes or ends a word at."""


def resolve(argument: str, found: Sequence[FoundModel]) -> FoundModel:
    """Return the model that an argument means.

    In order: a file of that path; a name as listed, then without regard to capitals; PLACE/NAME, which a list shows
    where a name alone would mean several; OWNER/NAME[:QUANT] of a repository that is here; the only name that begins
    so, or has a word that begins so.

    Args:
        argument: what the user typed.
        found: what is on this machine.

    Raises:
        UsageError: no model or several are meant; the nearest are named.
        ModelFileError: it is a path to nothing, or to a folder.
    """
    if not argument.strip():
        raise UsageError("An empty name means no model.", "Type a path, or a name that `localspec models` shows.")
    if (file := existing_file(argument, found)) is not None:
        return file
    for model in found:
        if model.name == argument:
            return model
    word = argument.casefold()
    reference = _reference(argument)
    matches = [model for model in found if model.name.casefold() == word]
    if not matches and "/" in word:
        matches = [model for model in found if word in map(str.casefold, other_names(model))]
    if not matches and reference is not None and (cached := _of_repo(reference, found)):
        return _of_quantisation(reference, cached)
    if not matches and not _is_path(argument):
        matches = _beginning_with(word, found)
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(
            f"{_short(argument)} may mean several models.",
            f"Type more of the name: {_listed(_names(matches))}.",
        )
    raise _not_here(argument, reference, found)


def existing_file(argument: str, found: Sequence[FoundModel] = ()) -> FoundModel | None:
    """Return the model of a file that exists, None if the argument is no such path. Any shard leads to the first."""
    path = _expanded(argument)
    if path is None or not _exists(path) or _is_folder(path):
        return None
    folder = path.parent
    names = shard_names(path.name)
    shards = tuple(folder / name for name in names if name == path.name or _exists(folder / name))
    whole = Path(os.path.abspath(path))
    for model in found:
        if whole in model.shards:
            return model
    return FoundModel(
        name=stem_of(path.name),
        path=shards[0],
        shards=shards,
        place="folder",
        quantisation=quantisation_in(path.name),
        file_bytes=sum(_size(shard) for shard in shards),
        missing=tuple(name for name in names if folder / name not in shards),
        file_name=names[0],
    )


def complete(
    prefix: str, found: Sequence[FoundModel], is_usable: Callable[[FoundModel], bool] = lambda model: True
) -> list[str]:
    """Return the names that begin with what is typed so far, without regard to capitals. For a shell.

    Each model is offered once, one of the Hub without its owner unless that was begun. Names that a shell, a terminal
    or the command itself would take for something else are left out: what is completed is inserted as it is.

    Args:
        prefix: what is typed.
        found: what is on this machine. What lacks files is left out.
        is_usable: leaves out more of those that would be offered.
    """
    word = prefix.casefold()
    names: set[str] = set()
    for model in found:
        whole, short, _ = _keys(model)
        name = next((key for key in (short, whole) if key.casefold().startswith(word)), "")
        is_safe = name.isprintable() and _FOR_A_SHELL.search(name) is None
        if name and is_safe and not model.missing and is_usable(model):
            names.add(name)
    return sorted(names)


def is_own_place(reference: RepoReference) -> bool:
    """Say whether a name begins with one of localspec's own folders, as PLACE/NAME does: nobody on the Hub is meant."""
    return reference.repo.partition("/")[0].casefold() in _OWN_FOLDERS


def _of_repo(reference: RepoReference, found: Sequence[FoundModel]) -> list[FoundModel]:
    repo = reference.repo.casefold()
    models = [model for model in found if model.repo.casefold() == repo]
    if reference.revision != "main":
        models = [model for model in models if model.commit and model.commit.startswith(reference.revision)]
    return _newest(models)


def _of_quantisation(reference: RepoReference, cached: list[FoundModel]) -> FoundModel:
    """Return the model of a repository that is meant."""
    word = reference.quantisation.casefold()
    # A file that only drafts for these models is meant by whoever names it in full.
    models = [model for model in cached if not is_side_file(model.file_name.rpartition("/")[2])] or cached
    readings = (
        [model for model in models if word in ("", model.quantisation.casefold())],
        [model for model in cached if word in _labels(model)],
        [model for model in models if model.quantisation.casefold().startswith(word)],
    )
    matches = next((some for some in readings if some), [])
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UsageError(f"{reference} may mean several models.", f"Choose one: {_listed(_names(matches))}.")
    raise UsageError(
        f"{reference} is not on this machine.",
        f"Of this repository there is {_listed(_names(cached))}. To fetch the other: localspec pull {reference}",
    )


def _labels(model: FoundModel) -> list[str]:
    parts = stem_of(model.file_name).casefold().split("/")
    return [parts[-1], *(typable(".".join(words)) for words in (parts[-1:], parts))]


def _beginning_with(word: str, found: Sequence[FoundModel]) -> list[FoundModel]:
    keys = [([key.casefold() for key in _keys(model)], model) for model in found]
    inside = re.compile(rf"(?<![^\W_]){re.escape(word)}")
    tests = (word.__eq__, lambda key: key.startswith(word), lambda key: inside.search(key) is not None)
    for test in tests:
        if matches := _newest([model for texts, model in keys if any(map(test, texts))]):
            return matches
    return []


def _keys(model: FoundModel) -> list[str]:
    """Return what a model may be called: its name, the name without its owner or `:latest`, its file's name."""
    short = model.name.removeprefix(f"{model.repo.partition('/')[0]}/") if model.repo else model.name
    return [model.name, short.removesuffix(":latest"), stem_of(model.file_name).rpartition("/")[2]]


def _newest(models: list[FoundModel]) -> list[FoundModel]:
    """Leave out older commits of the same file. The newest comes first."""
    seen: set[tuple[str, str]] = set()
    kept: list[FoundModel] = []
    for model in models:
        key = (model.repo.casefold(), model.file_name if model.repo else str(model.path))
        if key not in seen:
            seen.add(key)
            kept.append(model)
    return kept


def _not_here(
    argument: str, reference: RepoReference | None, found: Sequence[FoundModel]
) -> UsageError | ModelFileError:
    path = _expanded(argument)
    shown = _short(argument)
    # OWNER/NAME means the Hub, whatever folders there are here.
    if path is not None and reference is None:
        is_beside = len(path.parts) > 1 and _is_folder(path.parent)
        if _is_path(argument) or is_beside or _is_folder(path):
            return _no_file(path, shown)
    near = _near_models(argument, found)
    nearest = f"Nearest here: {_listed(near)}." if near else "`localspec models` lists what is here."
    if reference is not None and not is_own_place(reference):
        return UsageError(f"{shown} is not on this machine.", f"{nearest} To fetch it: localspec pull {reference}")
    return UsageError(f"No model is called {shown}.", f"{nearest} `localspec search WORDS` looks on the Hub.")


def _near_models(argument: str, found: Sequence[FoundModel]) -> list[str]:
    """Return names, as lists show them, of models of the same family, or with nearly the same name."""
    word, family = argument.casefold()[:_MAX_LENGTH], parse_family(argument)
    ranked: list[tuple[float, str]] = []
    for model in _newest(list(found)):
        likeness = max(difflib.SequenceMatcher(None, key.casefold(), word).ratio() for key in _keys(model))
        is_kin = any(is_same_line(family, parse_family(name)) for name in (model.name, model.repo))
        if is_kin or likeness >= _NEARLY_THE_SAME:
            ranked.append((-likeness, model.name))
    return [name for _, name in sorted(ranked)[:_MAX_NEAREST]]


def _no_file(path: Path, shown: str) -> ModelFileError:
    try:
        is_folder = path.is_dir()
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        near = _nearest(path.name, _models_in(path.parent))
        hint = f"Nearest in that folder: {_listed(near)}." if near else "Check the path; a model is a .gguf file."
        return ModelFileError(f"There is no file {shown}.", hint)
    except OSError as error:
        return ModelFileError(f"{shown} cannot be opened: {error.strerror}.", "Check the path and its rights.")
    inside = _models_in(path) if is_folder else []
    hint = f"Models in it: {_listed(inside)}." if inside else "Give the path of a .gguf file."
    return ModelFileError(f"{shown} is a folder, not a model.", hint)


def _nearest(word: str, names: Sequence[str]) -> list[str]:
    by_word = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold()[:_MAX_LENGTH], by_word, n=5, cutoff=0.45)
    return [by_word[key] for key in near]


def _models_in(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if is_model(name))
    except (OSError, ValueError):
        return []


def _names(models: Sequence[FoundModel]) -> list[str]:
    return [model.name for model in models]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(_short, names[:_MAX_SHOWN])) + (" …" if len(names) > _MAX_SHOWN else "")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[:100]} … {text[-50:]}"


def _reference(argument: str) -> RepoReference | None:
    try:
        return None if argument.lower().endswith(".gguf") else parse_reference(argument)
    except UsageError:
        return None


def _is_path(argument: str) -> bool:
    """Whether it can only be a path: a name of the Hub has one slash, and not in front."""
    parts = argument.replace(os.sep, "/").split("/")
    is_marked = parts[0] in ("", ".", "..") or argument.startswith("~") or "\\" in argument
    return is_marked or argument.lower().endswith(".gguf") or len(parts) > 2


def _expanded(argument: str) -> Path | None:
    try:
        return Path(argument).expanduser()
    except (RuntimeError, ValueError):
        return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
