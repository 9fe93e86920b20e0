"""Where models may lie on this machine: localspec's folders, the Hugging Face cache, and what the user adds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from localspec.errors import LocalspecError
from localspec.paths import demo_models_dir, models_dir
from localspec.settings import ModelsGroup

PlaceKind = Literal["localspec", "demo", "hugging face", "lm studio", "ollama", "folder"]

_LM_STUDIO_FOLDERS = (".lmstudio/models", ".cache/lm-studio/models")
_OLLAMA_FOLDERS = ("/usr/share/ollama/.ollama/models", "/var/lib/ollama/.ollama/models", "/var/lib/ollama")
_MAX_LOOKS = 2_000
"""Entries looked at to tell a folder's shape."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder, and how models are laid out in it."""

    kind: PlaceKind
    folder: Path


def places(models: ModelsGroup, environ: Mapping[str, str] = os.environ) -> tuple[Place, ...]:
    """Return the places to look at, in order of precedence. Those that do not exist are left out.

    Args:
        models: the settings with the user's folders.
        environ: environment variables that move folders.
    """
    own: list[Place] = []
    for kind, folder_of in (("localspec", models_dir), ("demo", demo_models_dir)):
        try:
            own.append(Place("localspec" if kind == "localspec" else "demo", folder_of(environ)))
        except LocalspecError:
            # A folder that cannot even be named holds no models; who needs it elsewhere says what is wrong.
            continue
    hub = Place("hugging face", hugging_face_folder(environ))
    wanted = [*own, hub, *(recognise(folder) for folder in models.folders)]
    return tuple(_once(place for place in wanted if _is_folder(place.folder)))


def folder_notes(models: ModelsGroup) -> tuple[str, ...]:
    """Return a sentence for each of the user's folders that cannot be looked at."""
    notes = []
    for folder in models.folders:
        if not _is_folder(folder):
            is_there = os.path.lexists(folder)
            notes.append(f"The folder {folder} of the settings is {'no folder' if is_there else 'not there'}.")
        elif not os.access(folder, os.R_OK | os.X_OK):
            notes.append(f"The folder {folder} of the settings cannot be read.")
    return tuple(notes)


def hugging_face_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the Hugging Face cache by the rules of huggingface_hub/constants.py, which is slow to import.

    `~` and `$NAME` inside the variables mean what they mean in this process. Empty ones count as not set, where
    huggingface_hub would take them for the current folder.
    """
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    home = _expanded(environ.get("HF_HOME") or os.path.join(cache, "huggingface"))
    hub = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(_expanded(hub))


def recognise(folder: Path) -> Place:
    """Say by its shape what a user's folder is. A home folder of Ollama or Hugging Face leads to the models in it."""
    for ollama in (folder, folder / "models"):
        if _is_folder(ollama / "manifests") and _is_folder(ollama / "blobs"):
            return Place("ollama", ollama)
    for cache in (folder, folder / "hub"):
        if any(name.startswith("models--") and _is_folder(cache / name / "snapshots") for name in _names(cache)):
            return Place("hugging face", cache)
    if folder.as_posix().endswith(_LM_STUDIO_FOLDERS) or _has_publishers(folder):
        return Place("lm studio", folder)
    return Place("folder", folder)


def suggest_places(
    models: ModelsGroup,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    shared: tuple[str, ...] = _OLLAMA_FOLDERS,
) -> tuple[Place, ...]:
    """Return the usual folders of LM Studio and Ollama that exist and that the settings do not name.

    Args:
        models: the settings.
        environ: for OLLAMA_MODELS.
        home: the user's home folder, by default the real one.
        shared: where Ollama keeps models when it runs as a service.
    """
    home = Path(os.path.expanduser("~")) if home is None else home
    studio = [Place("lm studio", home / name) for name in _LM_STUDIO_FOLDERS]
    moved = [Path(environ["OLLAMA_MODELS"])] if environ.get("OLLAMA_MODELS") else []
    ollama = [Place("ollama", folder) for folder in (*moved, home / ".ollama/models", *map(Path, shared))]
    known = {_real(recognise(folder).folder) for folder in models.folders}
    there = [place for place in (*studio, *ollama) if _is_folder(place.folder) and _real(place.folder) not in known]
    return tuple(_once(place for place in there if place.kind != "ollama" or recognise(place.folder).kind == "ollama"))


def _once(wanted: Iterator[Place]) -> Iterator[Place]:
    seen: set[str] = set()
    for place in wanted:
        if (real := _real(place.folder)) not in seen:
            seen.add(real)
            yield place


def _has_publishers(folder: Path) -> bool:
    """Whether all GGUFs lie in publisher/repository/, as LM Studio has them."""
    looks = 0
    has_models = False
    for publisher in _names(folder):
        if _is_gguf(publisher):
            return False
        for repository in _names(folder / publisher):
            if _is_gguf(repository):
                return False
            for name in _names(folder / publisher / repository):
                has_models = has_models or _is_gguf(name)
                looks += 1
                if looks >= _MAX_LOOKS:
                    return has_models
    return has_models


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder)[:_MAX_LOOKS] if not name.startswith("."))
    except (OSError, ValueError):
        return []


def _is_gguf(name: str) -> bool:
    return name.lower().endswith(".gguf")


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)


def _expanded(text: str) -> str:
    return os.path.expandvars(os.path.expanduser(text))
