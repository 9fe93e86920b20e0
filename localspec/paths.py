"""Every place on disk that localspec uses, one function each.

The four folders follow the platform's custom, and each can be moved by an environment variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import PlatformDirs

from localspec.errors import LocalspecError

_PACKAGE = Path(__file__).resolve().parent


def config_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return (creating) the folder of settings; LOCALSPEC_CONFIG moves it.

    Raises:
        LocalspecError: the folder cannot be made or written. So for all four folders.
    """
    return _writable("LOCALSPEC_CONFIG", _place("LOCALSPEC_CONFIG", _dirs().user_config_path, environ))


def data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return (creating) the folder of what the user made and wants kept; LOCALSPEC_DATA moves it."""
    return _writable("LOCALSPEC_DATA", _place("LOCALSPEC_DATA", _dirs().user_data_path, environ))


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return (creating) the folder of what can be made again; LOCALSPEC_CACHE moves it."""
    return _writable("LOCALSPEC_CACHE", _place("LOCALSPEC_CACHE", _dirs().user_cache_path, environ))


def log_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return (creating) the folder of log files; LOCALSPEC_LOG moves it."""
    return _writable("LOCALSPEC_LOG", _place("LOCALSPEC_LOG", _dirs().user_log_path, environ))


def settings_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where settings.toml is looked for. Nothing is created: a read-only home may still read settings."""
    return _place("LOCALSPEC_CONFIG", _dirs().user_config_path, environ) / "settings.toml"


def engine_log_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the log file of the engine process and of llama.cpp; its folder exists."""
    return log_dir(environ) / "engine.log"


def models_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of models that were put into localspec's own care. Nothing is created before one is."""
    return _place("LOCALSPEC_DATA", _dirs().user_data_path, environ) / "models"


def answers_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of earlier answers that drafts are copied from. Nothing is created before one is kept."""
    return _place("LOCALSPEC_DATA", _dirs().user_data_path, environ) / "answers"


def pacing_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of what adaptive drafting has learnt. Nothing is created before something is kept."""
    return _place("LOCALSPEC_DATA", _dirs().user_data_path, environ) / "pacing"


def demo_models_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the demo's model copies. Nothing is created before one is made."""
    return _place("LOCALSPEC_CACHE", _dirs().user_cache_path, environ) / "demo"


def prompts_dir(package: Path = _PACKAGE) -> Path:
    """Return the folder of the bench prompts, one TOML file for each workload."""
    return _package_data("prompts", "assets/prompts", package)


def curated_models_dir(package: Path = _PACKAGE) -> Path:
    """Return the folder of the curated model pairs."""
    return _package_data("models", "models", package)


def _dirs() -> PlatformDirs:
    return PlatformDirs("localspec", appauthor=False)


def _place(variable: str, default: Path, environ: Mapping[str, str]) -> Path:
    wanted = environ.get(variable, "")
    try:
        return Path(wanted).expanduser().absolute() if wanted else default
    except (RuntimeError, ValueError) as error:
        raise LocalspecError(
            f"{variable} is no folder name: {error}", f"Set {variable} to a folder, or leave it out."
        ) from None


def _writable(variable: str, folder: Path) -> Path:
    hint = f"Make the folder writable, or set {variable} to one that is."
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LocalspecError(f"Cannot make the folder {folder}: {reason}", hint) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LocalspecError(f"Cannot write in the folder {folder}", hint)
    return folder


def _package_data(name: str, repository_folder: str, package: Path) -> Path:
    # A wheel carries the data inside the package; an editable install reads the repository's own folders.
    for folder in (package / "_data" / name, package.parent / repository_folder):
        if folder.is_dir():
            return folder
    raise LocalspecError(
        f"This installation lacks its folder of {name}.", "Install localspec again; files of the package are missing."
    )
