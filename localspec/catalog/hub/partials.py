"""Files that came in part: `blobs/ETAG.localspec.partial`, and a note beside each that says of what.

The name says which content it is, so a download goes on with it; the note is for people, and for finding what an
earlier content of the same file left behind.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from localspec.catalog.hub.cache_layout import blob_path, remove_empty_folders, repo_folders, repo_of, require_own
from localspec.catalog.hub.locks import BlobLock
from localspec.catalog.hub.regular_file import read_regular
from localspec.errors import LocalspecError, UsageError

_OURS = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})\.localspec\.partial", re.ASCII)
# With a random part since huggingface_hub 2.4, so that none of them is ever gone on with.
_FOREIGN = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})(?:\.[0-9a-f]{8})?\.incomplete", re.ASCII)
_MAX_NOTE_BYTES = 64 * 1024


class PartialNote(BaseModel):
    """What the file beside a partial says. It was on disk, where anything may have happened to it."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    repo: str = Field(max_length=200)
    path: str = Field(max_length=4096)
    size_bytes: int = Field(ge=0)
    etag: str = Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")


@dataclass(frozen=True, slots=True)
class Partial:
    """Part of a file in the cache."""

    cache: Path
    file: Path
    repo: str
    etag: str
    have_bytes: int
    path: str
    """Of the file in its repository; empty where that is not known."""
    size_bytes: int | None
    """Of the whole file; None where that is not known."""
    is_ours: bool
    """Whether a download goes on with it; otherwise huggingface_hub left it behind, and it is of no more use."""


def partial_path(blob: Path) -> Path:
    """Return where the beginning of a blob is kept until it is whole."""
    return blob.with_name(f"{blob.name}.localspec.partial")


def note_path(blob: Path) -> Path:
    """Return where it is noted what that is of."""
    return blob.with_name(f"{blob.name}.localspec.json")


def read_note(blob: Path) -> PartialNote | None:
    """Return what is noted of a blob's partial; None if nothing is, or nothing that makes sense."""
    try:
        note = PartialNote.model_validate_json(read_regular(note_path(blob), _MAX_NOTE_BYTES))
    except (OSError, ValidationError):
        return None
    return note if note.etag == blob.name and note.repo == repo_of(blob.parent.parent) else None


def write_note(blob: Path, note: PartialNote) -> None:
    """Note what a blob's partial is of.

    Raises:
        OSError: it cannot be written.
    """
    if read_note(blob) != note:
        # A planted link would be written through.
        note_path(blob).unlink(missing_ok=True)
        note_path(blob).write_text(note.model_dump_json(), encoding="utf-8")


def forget(blob: Path) -> None:
    """Remove a blob's partial and its note, if there are any.

    Raises:
        OSError: they cannot be removed.
    """
    partial_path(blob).unlink(missing_ok=True)
    note_path(blob).unlink(missing_ok=True)


def remove_superseded(cache: Path, note: PartialNote) -> None:
    """Remove the partials of other contents of the same file; one that is being written is left.

    Raises:
        OSError: one cannot be removed.
    """
    blobs = blob_path(cache, note.repo, note.etag).parent
    for file in sorted(blobs.glob("*.localspec.partial")):
        match = _OURS.fullmatch(file.name)
        if match is None or match[1] == note.etag:
            continue
        blob = blobs / match[1]
        other = read_note(blob)
        if other is not None and other.path == note.path:
            with BlobLock(blob) as lock:
                if lock.try_take():
                    forget(blob)
                    lock.remove()


def list_partials(cache: Path) -> tuple[Partial, ...]:
    """Return what is left of downloads that did not end, also of huggingface_hub's own, sorted by place."""
    found = []
    for folder in repo_folders(cache):
        blobs = folder / "blobs"
        if blobs.is_symlink():
            continue
        with contextlib.suppress(OSError):
            for file in sorted(blobs.iterdir()):
                ours, foreign = _OURS.fullmatch(file.name), _FOREIGN.fullmatch(file.name)
                match = ours or foreign
                facts = file.lstat()
                if match is None or not stat.S_ISREG(facts.st_mode):
                    continue
                note = read_note(blobs / match[1]) if ours else None
                found.append(
                    Partial(
                        cache=cache,
                        file=file,
                        repo=repo_of(folder),
                        etag=match[1],
                        have_bytes=facts.st_size,
                        path=note.path if note else "",
                        size_bytes=note.size_bytes if note else None,
                        is_ours=ours is not None,
                    )
                )
    return tuple(found)


def remove_partial(partial: Partial) -> None:
    """Remove what is left of a download, its note, and folders that become empty.

    Raises:
        UsageError: a download is writing it.
        LocalspecError: it is no partial of the cache, or cannot be removed.
    """
    blobs, folder = partial.file.parent, partial.file.parent.parent
    is_partial = (_OURS if partial.is_ours else _FOREIGN).fullmatch(partial.file.name)
    if not is_partial or is_partial[1] != partial.etag or blobs.name != "blobs" or folder.parent != partial.cache:
        raise LocalspecError(f"{partial.file} is no part of a download.", "List them again; nothing was removed.")
    require_own(partial.cache, blobs)
    blob = blobs / partial.etag
    try:
        with BlobLock(blob) as lock:
            if not lock.try_take():
                raise UsageError(
                    f"{partial.path or partial.file.name} is being downloaded.", "Stop the download first, or wait."
                )
            if partial.is_ours:
                forget(blob)
            else:
                os.unlink(partial.file)
            if not os.path.lexists(blob):
                lock.remove()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise LocalspecError(
            f"{partial.file} cannot be removed: {error.strerror}.", "Check the rights of its folder."
        ) from error
    remove_empty_folders(folder)
