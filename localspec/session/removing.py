"""Removing models from this machine."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.catalog.found_model import FoundModel
from localspec.catalog.hub.cache_layout import remove_cached
from localspec.catalog.places import hugging_face_folder
from localspec.errors import LocalspecError, UsageError

_MASTERS = {"lm studio": "LM Studio", "ollama": "Ollama"}


def check_removable(model: FoundModel) -> None:
    """Refuse what localspec has not put there.

    Raises:
        UsageError: the file is another program's or the user's own.
    """
    # A Hugging Face cache that the settings name may be another user's or another machine's.
    is_elsewhere = model.place == "hugging face" and not model.path.is_relative_to(hugging_face_folder())
    if model.place in ("localspec", "demo", "hugging face") and not is_elsewhere:
        return
    if model.place in _MASTERS:
        raise UsageError(
            f"{model.name} belongs to {_MASTERS[model.place]}; localspec does not remove it.",
            f"Remove it there{f': ollama rm {model.name}' if model.place == 'ollama' else ''}.",
        )
    raise UsageError(
        f"{model.name} lies in a folder of yours; localspec does not remove it.", f"Delete {model.path} yourself."
    )


def remove_model(model: FoundModel, others: Sequence[FoundModel] = ()) -> int:
    """Remove a model's files and return how many bytes that freed.

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
        try:
            size = path.lstat().st_size
            path.unlink()
        except OSError as error:
            raise LocalspecError(
                f"{path} cannot be removed: {error.strerror}.", "Check the rights of the file."
            ) from error
        freed += size
    return freed
