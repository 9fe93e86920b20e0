"""What a finished download leaves in the cache beside the bytes: the link in a snapshot, and the ref of a revision."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from localspec.catalog.hub.cache_layout import ref_path, repo_folder, require_inside
from localspec.catalog.hub.regular_file import read_regular

_MAX_TRIES = 3
_MAX_REF_BYTES = 200


def link_snapshot(cache: Path, blob: Path, pointer: Path) -> None:
    """Make `pointer` in a snapshot show a blob; where links are not possible, the blob itself moves there.

    Raises:
        DownloadError: a link on the way leads out of the cache.
        OSError: it cannot be written.
    """
    from huggingface_hub import constants

    require_inside(cache, pointer.parent)
    pointer.parent.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(blob.parent.resolve() / blob.name, pointer.parent.resolve())
    if pointer.is_symlink() and os.readlink(pointer) == target:
        return
    if not constants.HF_HUB_DISABLE_SYMLINKS:
        pointer.unlink(missing_ok=True)
        with contextlib.suppress(OSError, NotImplementedError):
            pointer.symlink_to(target)
            return
    os.replace(blob, pointer)


def write_ref(cache: Path, repo: str, revision: str, commit: str) -> None:
    """Note which commit a name such as `main` stood for. A commit's own hash needs no note.

    Raises:
        DownloadError: the revision's name would lead out of its folder.
        OSError: it cannot be written.
    """
    if revision == commit:
        return
    folder, ref = repo_folder(cache, repo), ref_path(cache, repo, revision)
    require_inside(cache, ref.parent)
    with contextlib.suppress(OSError):
        if read_regular(ref, _MAX_REF_BYTES) == commit.encode():
            return
    ref.parent.mkdir(parents=True, exist_ok=True)
    # Drafts lie beside refs, not in it: whatever lies there is taken for a revision. Those of killed runs go.
    for left_over in folder.glob(".ref.*.localspec.tmp"):
        left_over.unlink(missing_ok=True)
    draft = folder / f".ref.{os.getpid()}.localspec.tmp"
    for _ in range(_MAX_TRIES):
        draft.write_text(commit, encoding="ascii")
        # Another process may just have taken the draft for a left-over.
        with contextlib.suppress(FileNotFoundError):
            os.replace(draft, ref)
            return
