"""What a person's word for a model means."""

from __future__ import annotations

from localspec.catalog.found_model import FoundModel
from localspec.catalog.naming import existing_file, resolve
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
    """Return the local model that is meant, or None if the word can only mean one on the Hub.

    Raises:
        UsageError: it is neither here nor of the form OWNER/NAME[:QUANT], or several here are meant.
        ModelFileError: it is a path, and there is no such file.
    """
    found = local_models(settings)
    try:
        return existing_file(argument, found) or resolve(argument, found)
    except UsageError:
        if _is_of_the_hub(argument, found):
            return None
        raise


def _is_of_the_hub(argument: str, found: tuple[FoundModel, ...]) -> bool:
    from localspec.catalog.hub.values import parse_reference

    try:
        reference = parse_reference(argument)
    except UsageError:
        return False
    # Where several quantisations of it are here, the person has to say which.
    here = sum(model.repo.casefold() == reference.repo.casefold() for model in found)
    return here == 0 or bool(reference.quantisation)
