"""Taking models out of a kit."""

from __future__ import annotations

import os
import stat
from pathlib import Path

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
from localspec.catalog.kit_manifest import MANIFEST, KitFile, KitManifest, listed, name_fault, names_in, read_manifest
from localspec.catalog.progress import OnTransfer
from localspec.errors import LocalspecError, ModelFileError, UsageError

_MAX_SUBFOLDERS = 99
_COPY_AGAIN = "Copy the kit again from where it was made, or export it again."


async def import_kit(folder: Path, destination: Path, on_progress: OnTransfer | None = None) -> tuple[Path, ...]:
    """Check a kit and copy its files into a folder of models; return where they are, in the order of kit.json.

    Nothing is ever overwritten. Files that are there already are not copied again. If the destination has a
    different file of one of the names, the whole kit goes into a subfolder with the kit's name.
    Cancelling leaves nothing.

    Raises:
        UsageError: the folder is no whole kit, or holds more than one.
        ModelFileError: a file is missing, changed, or not a plain file.
        LocalspecError: the destination cannot be written; DiskFullError if for want of room.
    """
    return await run_job(lambda job: _import(job, folder, destination), on_progress)


def _import(job: CopyJob, folder: Path, destination: Path) -> tuple[Path, ...]:
    manifest = read_manifest(folder)
    _check_kit_folder(folder, manifest)
    job.plan([(file.name, file.size) for file in manifest.files])
    home, wanted = _choose_home(job, folder, destination, manifest)
    require_room(home, sum(manifest.files[index].size for index in wanted))
    partials: dict[int, Path] = {}
    with made_folder(home):
        remove_partials(home)
        try:
            for index in wanted:
                file = manifest.files[index]
                partial = partial_in(home)
                partials[index] = partial
                job.begin(index, "copying")
                sha256, num_bytes = job.copy(folder / file.name, partial)
                _check_copy(folder, file, sha256, num_bytes)
                job.end(index)
            job.check()
            _place(job, manifest, partials, home)
        finally:
            for partial in partials.values():
                partial.unlink(missing_ok=True)
        sync_folder(home)
    return tuple(home / file.name for file in manifest.files)


def _check_kit_folder(folder: Path, manifest: KitManifest) -> None:
    """Check that the folder holds what the manifest lists, as far as names, kinds and sizes tell."""
    present = {name for name in names_in(folder) if name != MANIFEST}
    names = {file.name for file in manifest.files}
    missing, others = sorted(names - present), sorted(present - names)
    if missing:
        raise ModelFileError(f"The kit in {folder} lacks {listed(missing)}.", _COPY_AGAIN)
    if others:
        raise UsageError(
            f"{folder} holds {listed(others)}, of which the kit's list says nothing.",
            "Move everything that is not the kit's out of its folder.",
        )
    for file in manifest.files:
        facts = (folder / file.name).lstat()
        if not stat.S_ISREG(facts.st_mode):
            raise ModelFileError(f"{file.name!r} in {folder} is a link or no file at all.", _COPY_AGAIN)
        if facts.st_size != file.size:
            message = f"{file.name!r} in {folder} has {facts.st_size:,} bytes; the kit's list says {file.size:,}."
            raise ModelFileError(message, _COPY_AGAIN)


def _check_copy(folder: Path, file: KitFile, sha256: str, num_bytes: int) -> None:
    if (sha256, num_bytes) != (file.sha256, file.size):
        raise ModelFileError(
            f"{file.name!r} in {folder} is damaged: its SHA-256 is {sha256[:12]}…, "
            f"but the kit's list says {file.sha256[:12]}….",
            _COPY_AGAIN,
        )


def _choose_home(job: CopyJob, folder: Path, destination: Path, manifest: KitManifest) -> tuple[Path, list[int]]:
    """Return the folder that the kit's files go to, and the places in the list of those that are not there yet."""
    if os.path.lexists(destination) and not destination.is_dir():
        raise UsageError(f"{destination} is no folder.", "Choose a folder for the models.")
    own_name = folder.resolve().name
    own_name = "kit" if name_fault(f"{own_name}.gguf") else own_name
    subfolders = [own_name, *(f"{own_name}-{number}" for number in range(2, _MAX_SUBFOLDERS))]
    for home in (destination, *(destination / name for name in subfolders)):
        # A link could lead out of the folder of models.
        if home is not destination and os.path.lexists(home) and (home.is_symlink() or not home.is_dir()):
            continue
        wanted = _missing(job, home, manifest)
        if wanted is not None:
            return home, wanted
    raise UsageError(
        f"{destination} has other files of these names, in {_MAX_SUBFOLDERS} folders.", "Choose another folder."
    )


def _missing(job: CopyJob, home: Path, manifest: KitManifest) -> list[int] | None:
    """Return the places of the files that a folder does not have; None if it has different ones of these names."""
    wanted, same_size = [], []
    for index, file in enumerate(manifest.files):
        try:
            facts = (home / file.name).lstat()
        except FileNotFoundError:
            wanted.append(index)
        except OSError as error:
            raise LocalspecError(f"Cannot look into {home}: {error.strerror}.", "Check its rights.") from error
        else:
            if not stat.S_ISREG(facts.st_mode) or facts.st_size != file.size:
                return None
            same_size.append(index)
    return wanted if all(_is_same(job, index, manifest.files[index], home) for index in same_size) else None


def _is_same(job: CopyJob, index: int, file: KitFile, home: Path) -> bool:
    """Whether a folder has the very content of a kit's file under its name."""
    job.begin(index, "checking")
    is_same = job.hash(home / file.name) == file.sha256
    if is_same:
        job.end(index)
    return is_same


def _place(job: CopyJob, manifest: KitManifest, partials: dict[int, Path], home: Path) -> None:
    """Give files their names, all or none, and never a name that is taken. What came there meanwhile may do as well."""
    placed: list[Path] = []
    try:
        for index, partial in partials.items():
            file = manifest.files[index]
            with write_errors_in_words(home):
                is_placed = _rename_if_free(partial, home / file.name)
            if is_placed:
                placed.append(home / file.name)
            elif not _is_same_kind(home / file.name, file) or not _is_same(job, index, file, home):
                raise UsageError(f"{home / file.name} has just been written by somebody else.", "Import the kit again.")
    except BaseException:
        for place in placed:
            place.unlink(missing_ok=True)
        raise


def _is_same_kind(place: Path, file: KitFile) -> bool:
    try:
        facts = place.lstat()
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_size == file.size


def _rename_if_free(partial: Path, place: Path) -> bool:
    """Give a file its name, and say whether the name was free."""
    try:
        # Unlike a rename, a second name for the file never replaces what came there in the meantime.
        os.link(partial, place)
    except FileExistsError:
        return False
    except OSError:
        # exFAT, for one, has no links.
        if os.path.lexists(place):
            return False
        partial.rename(place)
    return True
