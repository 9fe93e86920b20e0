"""Removing models from this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from localspec.catalog.found_model import FoundModel
from localspec.catalog.hub.cache_layout import remove_cached
from localspec.catalog.places import hugging_face_folder
from localspec.errors import LocalspecError, UsageError
from localspec.paths import demo_models_dir, models_dir

_MASTERS = {"lm studio": "LM Studio", "ollama": "Ollama"}


def check_removable(model: FoundModel) -> None:
    """Refuse what localspec has not put there.

    Raises:
        UsageError: the file is another program's or the user's own, or a link leads to it out of localspec's folder.
    """
    if model.place in _MASTERS:
        raise UsageError(
            f"{model.name} belongs to {_MASTERS[model.place]}; localspec does not remove it.",
            f"Remove it there{f': ollama rm {model.name}' if model.place == 'ollama' else ''}.",
        )
    home = _home(model)
    # A Hugging Face cache that the settings name may be another user's or another machine's.
    if home is None or not model.path.is_relative_to(home):
        raise UsageError(
            f"{model.name} lies in a folder of yours; localspec does not remove it.", f"Delete {model.path} yourself."
        )
    # The Hugging Face cache is often moved by a link; folders of localspec's own have variables for that.
    is_moved = model.place != "hugging face" and home.is_symlink()
    for path in (model.path, *model.shards):
        if is_moved or not _is_inside(path, home):
            raise UsageError(
                f"A link leads from {home} to {path.parent.resolve()}, where {model.name} lies; "
                "localspec removes nothing there.",
                f"Delete {path} yourself, or remove the link.",
            )


def remove_model(model: FoundModel, others: Sequence[FoundModel] = ()) -> int:
    """Remove a model's files and return how many bytes that freed. Of a link only the link goes.

    Args:
        model: what to remove.
        others: the models that stay.

    Raises:
        UsageError: it is not localspec's to remove, or is being downloaded.
        LocalspecError: a file cannot be removed.
    """
    check_removable(model)
    if model.place == "hugging face":
        cache = hugging_face_folder()
        snapshot = cache / f"models--{model.repo.replace('/', '--')}" / "snapshots" / model.commit
        paths = [path.relative_to(snapshot).as_posix() for path in model.shards]
        return remove_cached(cache, model.repo, model.commit, paths)
    kept = {path for other in others for path in other.shards}
    freed = 0
    for path in model.shards:
        if path in kept:
            continue
        # Removing takes a while, and folders change meanwhile.
        check_removable(model)
        try:
            size = path.lstat().st_size
            path.unlink()
        except OSError as error:
            raise LocalspecError(
                f"{path} cannot be removed: {error.strerror}.", "Check the rights of the file."
            ) from error
        freed += size
    return freed


def _home(model: FoundModel) -> Path | None:
    """Return the folder whose content localspec removes; None for places that are not its own."""
    match model.place:
        case "localspec":
            return models_dir()
        case "demo":
            return demo_models_dir()
        case "hugging face":
            return hugging_face_folder()
        case _:
            return None


def _is_inside(path: Path, home: Path) -> bool:
    """Whether a file, or a link to one, lies in a folder when all links on the way to it are followed."""
    folder = os.path.realpath(path.parent)
    return Path(folder).is_relative_to(os.path.realpath(home))
