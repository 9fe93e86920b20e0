"""What a person's word for a model means."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.catalog.file_names import is_side_file, shard_names
from localspec.catalog.found_model import FoundModel
from localspec.catalog.hub.values import RepoReference, parse_reference
from localspec.catalog.naming import existing_file, is_own_place, resolve
from localspec.catalog.unique_names import other_names
from localspec.errors import UsageError
from localspec.session.library import local_models
from localspec.settings import Settings


def named_model(argument: str, settings: Settings) -> FoundModel:
    """Return the local model that is given by path or name. Only a name needs a look at the folders.

    Raises:
        UsageError: no model is called so, or several are.
        ModelFileError: it is a path, and there is no such file.
    """
    return existing_file(argument) or resolve(argument, local_models(settings))


def find_local(argument: str, settings: Settings) -> FoundModel | None:
    """Return the local model that is meant, or None if the word means a repository on the Hub.

    OWNER/NAME alone means the repository, whatever of it is here.

    Raises:
        UsageError: it is neither here nor of the form OWNER/NAME[:QUANT], or several here are meant.
        ModelFileError: it is a path, and there is no such file.
    """
    found = local_models(settings)
    file = existing_file(argument, found)
    if file is not None or is_repository(argument, found):
        return file
    try:
        return resolve(argument, found)
    except UsageError:
        if _is_of_the_hub(argument):
            return None
        raise


def is_repository(argument: str, found: Sequence[FoundModel]) -> bool:
    """Say whether a word is OWNER/NAME without a quantisation and without a commit, and no name of a local model."""
    reference = _reference(argument)
    if reference is None or reference.quantisation or reference.revision != "main" or is_own_place(reference):
        return False
    word = argument.casefold()
    return not any(word in (model.name.casefold(), *map(str.casefold, other_names(model))) for model in found)


def choose_local(argument: str, found: Sequence[FoundModel]) -> tuple[FoundModel | None, tuple[str, ...]]:
    """Return what of a repository is here and is taken where the Hub cannot be asked, and the names of all of it.

    None if nothing of it is here whole.
    """
    reference = _reference(argument)
    here = [model for model in found if reference is not None and is_of(reference, model) and not model.missing]
    if not here:
        return None, ()
    models = [model for model in here if not is_side_file(model.file_name.rpartition("/")[2])] or here
    return usual(models), tuple(model.name for model in models)


def is_of(reference: RepoReference, model: FoundModel) -> bool:
    """Say whether a local model is what OWNER/NAME[:QUANT] means, or one of several that it may mean."""
    if model.repo.casefold() != reference.repo.casefold():
        return False
    word = reference.quantisation.casefold()
    return word in ("", model.quantisation.casefold(), model.name.rpartition(":")[2].casefold())


def usual(models: Sequence[FoundModel]) -> FoundModel:
    """Return what is taken of a model's quantisations if none is named: the same as of all that the Hub offers."""
    from localspec.catalog.hub.offers import choose_offer
    from localspec.catalog.hub.values import RepoFile, RepoListing

    files: dict[str, RepoFile] = {}
    for model in models:
        folder, _, first = model.file_name.rpartition("/")
        for index, name in enumerate(shard_names(first)):
            path = f"{folder}/{name}" if folder else name
            files[path] = RepoFile(path, 0 if index else model.file_bytes, "")
    listing = RepoListing(models[0].repo, "main", "", tuple(files.values()), (), "", False, 0)
    try:
        chosen = choose_offer(listing, "").files[0].path
    except UsageError:
        return models[0]
    return next(model for model in models if model.file_name == chosen)


def _is_of_the_hub(argument: str) -> bool:
    reference = _reference(argument)
    return reference is not None and not is_own_place(reference)


def _reference(argument: str) -> RepoReference | None:
    try:
        return parse_reference(argument)
    except UsageError:
        return None
