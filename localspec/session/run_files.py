"""Are a kept run's model files still those that were measured?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath, PureWindowsPath

from localspec.errors import UsageError
from localspec.session.hashing import read_sha256
from localspec.session.run_document import RunModel
from localspec.store.values import StoredRun


def whole_path(run: StoredRun, role: str, model: RunModel) -> Path:
    """Return where a run's model lay.

    Raises:
        UsageError: an earlier release kept it relative to a folder that is not known.
    """
    # A database may have come from another system.
    if not (PurePosixPath(model.path).is_absolute() or PureWindowsPath(model.path).is_absolute()):
        raise UsageError(
            f"Run {run.summary.id} kept its {role} as {model.path}, a path that began in a folder it does not name: "
            "which file that was is not known.",
            "Measure again with `localspec bench`, and make the profile of that run.",
        )
    return Path(model.path)


def check_model(run: StoredRun, role: str, model: RunModel, on_reading: Callable[[Path], None]) -> None:
    """Refuse a file that is not the one that was measured. One that is not there is no other one.

    Args:
        run: the kept run.
        role: `target` or `draft`.
        model: of the run's document.
        on_reading: called before a file is read through for its SHA-256.

    Raises:
        UsageError: size or SHA-256 is another.
        ModelFileError: the file cannot be read.
    """
    path = whole_path(run, role, model)
    try:
        num_bytes = path.stat().st_size
    except (OSError, ValueError):
        return
    asked = run.request.get(role)
    kept_bytes = asked.get("file_bytes") if isinstance(asked, dict) else None
    if isinstance(kept_bytes, int) and kept_bytes != num_bytes:
        raise _other(run, role, path, f"it has {num_bytes} bytes, and what was measured had {kept_bytes}")
    if not model.sha256:
        return
    on_reading(path)
    sha256 = read_sha256(path)
    if sha256 != model.sha256:
        raise _other(run, role, path, f"its SHA-256 is {sha256}, and that of what was measured {model.sha256}")


def _other(run: StoredRun, role: str, path: Path, why: str) -> UsageError:
    return UsageError(
        f"The {role} at {path} is not the file that run {run.summary.id} measured: {why}.",
        "Put that file back, or measure this one with `localspec bench`.",
    )
