"""Putting models into a kit."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec import __version__
from localspec.catalog.hub.disk import sync_folder
from localspec.catalog.kit_copy import (
    CopyJob,
    made_folder,
    partial_in,
    remove_partials,
    require_room,
    run_job,
    write_errors_in_words,
)
from localspec.catalog.kit_manifest import (
    MANIFEST,
    UNFINISHED,
    KitFile,
    KitManifest,
    KitRole,
    listed,
    name_fault,
    names_in,
    read_manifest,
    same_name,
    visible_names,
)
from localspec.catalog.progress import OnTransfer
from localspec.errors import LocalspecError, ModelFileError, UsageError


@dataclass(frozen=True, slots=True)
class KitPart:
    """A file to put into a kit. Texts that are not known are empty."""

    path: Path
    """Links are followed: the Hub's cache consists of them."""
    role: KitRole
    name: str = ""
    """In the kit; empty for the file's own. Shards keep their published names, or llama.cpp does not find them."""
    repo: str = ""
    commit: str = ""
    quantisation: str = ""
    licence: str = ""

    @property
    def file_name(self) -> str:
        """The name in the kit."""
        return self.name or self.path.name


async def export_kit(folder: Path, parts: Sequence[KitPart], on_progress: OnTransfer | None = None) -> KitManifest:
    """Copy models into a folder and write their list. What an earlier export left there whole is kept.

    Cancelling leaves whole files only, and the next export to the same folder goes on with them.

    Args:
        folder: made if it is not there; an existing one is empty, or holds a kit of the same file names.
        parts: at least one target; the shards of a split model one after another.
        on_progress: called in the event loop.

    Raises:
        UsageError: the folder holds something else, or the parts make up no kit.
        ModelFileError: a part cannot be read.
        LocalspecError: the folder cannot be written; DiskFullError if for want of room.
    """
    return await run_job(lambda job: _export(job, folder, tuple(parts)), on_progress)


def _export(job: CopyJob, folder: Path, parts: tuple[KitPart, ...]) -> KitManifest:
    sizes = _part_sizes(parts)
    _check_export_folder(folder, {part.file_name for part in parts})
    require_room(folder, sum(size for part, size in zip(parts, sizes, strict=True) if not _has(folder, part, size)))
    job.plan([(part.file_name, size) for part, size in zip(parts, sizes, strict=True)])
    marker, files = folder / UNFINISHED, []
    with made_folder(folder):
        remove_partials(folder)
        try:
            with write_errors_in_words(folder):
                marker.touch()
            for index, (part, size) in enumerate(zip(parts, sizes, strict=True)):
                sha256 = _export_part(job, index, part, size, folder)
                files.append(_kit_file(part, size, sha256))
                job.end(index)
            manifest = KitManifest(localspec=__version__, files=tuple(files))
            _write_manifest(folder, manifest)
        except BaseException:
            with contextlib.suppress(OSError):
                if not visible_names(os.listdir(folder)):
                    marker.unlink(missing_ok=True)
            raise
        with contextlib.suppress(OSError):
            marker.unlink(missing_ok=True)
    return manifest


def _export_part(job: CopyJob, index: int, part: KitPart, size: int, folder: Path) -> str:
    """Put one file into the kit unless it is there, and return its SHA-256."""
    place = folder / part.file_name
    if _has(folder, part, size):
        job.begin(index, "checking")
        sha256 = job.hash(part.path, follows_links=True)
        job.begin(index, "checking")
        if job.hash(place) == sha256:
            return sha256
    job.begin(index, "copying")
    partial = partial_in(folder)
    try:
        sha256, num_bytes = job.copy(part.path, partial, follows_links=True)
        if num_bytes != size:
            raise ModelFileError(f"{part.path} changed while it was copied.", "Try again when nothing writes to it.")
        with write_errors_in_words(folder):
            # From here on an older list would not be true.
            (folder / MANIFEST).unlink(missing_ok=True)
            partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)
    return sha256


def _part_sizes(parts: tuple[KitPart, ...]) -> list[int]:
    if all(part.role != "target" for part in parts):
        raise UsageError("A kit needs a target.", "Name the model that the kit is for.")
    if len({same_name(part.file_name) for part in parts}) < len(parts):
        raise UsageError("Two files of the kit would have one name.", "Rename one of them.")
    sizes = []
    for part in parts:
        fault = name_fault(part.file_name)
        if fault:
            raise UsageError(f"{part.file_name!r} is no name for a file of a kit: {fault}.", "Rename the file.")
        try:
            facts = part.path.stat()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ModelFileError(f"{part.path} cannot be read: {reason}.", "Check the file and its rights.") from error
        if not stat.S_ISREG(facts.st_mode):
            raise ModelFileError(f"{part.path} is no file.", "Give a GGUF file.")
        sizes.append(facts.st_size)
    return sizes


def _check_export_folder(folder: Path, names: set[str]) -> None:
    hint = "Give a new folder, or an empty one."
    present = names_in(folder) if folder.exists() or folder.is_symlink() else []
    others = [name for name in present if name not in {MANIFEST, *names}]
    is_kit = os.path.lexists(folder / MANIFEST) or (folder / UNFINISHED).exists()
    if present and not is_kit:
        raise UsageError(f"{folder} is not empty, and it is no kit.", hint)
    if MANIFEST in present:
        try:
            read_manifest(folder)
        except LocalspecError as error:
            raise UsageError(f"{folder} holds a damaged kit: {error.message}", hint) from error
    if others:
        raise UsageError(f"{folder} holds another kit, with {listed(others)}.", hint)
    for name in present:
        if not stat.S_ISREG((folder / name).lstat().st_mode):
            raise UsageError(f"{name!r} in {folder} is no plain file.", hint)


def _has(folder: Path, part: KitPart, size: int) -> bool:
    with contextlib.suppress(OSError):
        facts = (folder / part.file_name).lstat()
        return stat.S_ISREG(facts.st_mode) and facts.st_size == size
    return False


def _kit_file(part: KitPart, size: int, sha256: str) -> KitFile:
    return KitFile(
        name=part.file_name,
        size=size,
        sha256=sha256,
        role=part.role,
        repo=part.repo,
        commit=part.commit,
        quantisation=part.quantisation,
        licence=part.licence,
    )


def _write_manifest(folder: Path, manifest: KitManifest) -> None:
    partial = partial_in(folder)
    try:
        with write_errors_in_words(folder):
            with partial.open("x", encoding="utf-8", newline="\n") as file:
                file.write(manifest.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            partial.replace(folder / MANIFEST)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(folder)
