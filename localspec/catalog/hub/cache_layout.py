"""The cache of huggingface_hub on disk: where a file of a repository lies, what is there, taking it away.

    CACHE/models--OWNER--NAME/blobs/ETAG                  the bytes
    CACHE/models--OWNER--NAME/snapshots/COMMIT/PATH       a relative link to them
    CACHE/models--OWNER--NAME/refs/REVISION               the commit that a name such as main stood for

Names come from outside, and links may have been planted: every path is checked before something is written there.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.hub.locks import BlobLock, lock_path
from localspec.catalog.hub.regular_file import read_regular
from localspec.catalog.places import hugging_face_folder
from localspec.errors import DownloadError, LocalspecError, UsageError

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ETAG = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
_REPO_FOLDER = re.compile(r"models--[\w.-]+", re.ASCII)
_MAX_SEGMENT_BYTES = 255
_MAX_REPO_LENGTH = 96
_MAX_REF_BYTES = 200


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A GGUF file of a snapshot."""

    repo: str
    commit: str
    path: str
    """Inside the repository, with forward slashes."""
    file: Path
    size_bytes: int


def hub_cache() -> Path:
    """Return huggingface_hub's cache folder, which HF_HUB_CACHE and HF_HOME move. Nothing is made."""
    return hugging_face_folder().absolute()


def repo_folder(cache: Path, repo: str) -> Path:
    """Return the folder of a repository.

    Raises:
        DownloadError: no repository can have this name.
    """
    parts = repo.split("/")
    name = "--".join(["models", *parts])
    is_plain = len(parts) <= 2 and all(part and not part.startswith(".") for part in parts)
    if not is_plain or len(repo) > _MAX_REPO_LENGTH or "--" in repo or _REPO_FOLDER.fullmatch(name) is None:
        raise DownloadError(f"{repo!r} is no name of a repository.", "Write it as OWNER/NAME.")
    return cache / name


def blob_path(cache: Path, repo: str, etag: str) -> Path:
    """Return where the bytes of a content lie.

    Raises:
        DownloadError: the ETag names no content, or the repository's name is none.
    """
    if _ETAG.fullmatch(etag) is None:
        raise DownloadError(f"The Hub names a content of {repo} as {etag!r}, which is no hash.", "Try again later.")
    return repo_folder(cache, repo) / "blobs" / etag


def snapshot_path(cache: Path, repo: str, commit: str, path: str) -> Path:
    """Return where a file of a commit is found by its name.

    Raises:
        DownloadError: the name would lead out of the snapshot's folder.
    """
    if _COMMIT.fullmatch(commit) is None:
        raise DownloadError(f"The Hub names a commit of {repo} as {commit!r}, which is none.", "Try again later.")
    return repo_folder(cache, repo).joinpath("snapshots", commit, *_segments(path))


def ref_path(cache: Path, repo: str, revision: str) -> Path:
    """Return where it is noted which commit a name such as `main` stood for.

    Raises:
        DownloadError: the revision's name would lead out of its folder.
    """
    return repo_folder(cache, repo).joinpath("refs", *_segments(revision))


def require_inside(cache: Path, folder: Path) -> None:
    """Check that a folder, with all links on the way to it followed, lies in the cache. It need not be there yet.

    Raises:
        DownloadError: a link leads out.
    """
    try:
        is_inside = folder.resolve().is_relative_to(cache.resolve())
    except RuntimeError:  # Python 3.11 and 3.12 say so of links that go round in a circle.
        is_inside = False
    if not is_inside:
        raise DownloadError(
            f"{folder} is reached through a link that leads out of the cache.", "Remove the link; nothing was changed."
        )


def require_own(cache: Path, folder: Path) -> None:
    """Check that no link lies on the way from the cache to a folder, so that whatever is removed there is its own.

    Raises:
        DownloadError: one does, whether it leads out of the cache or to something else in it.
    """
    require_inside(cache, folder)
    if not _is_own(cache, folder):
        raise DownloadError(f"{folder} is reached through a link.", "Remove the link; nothing was changed.")


def is_whole(file: Path, size_bytes: int) -> bool:
    """Return whether a regular file of this size is there, links followed."""
    try:
        return file.is_file() and file.stat().st_size == size_bytes
    except OSError:
        return False


def repo_folders(cache: Path) -> tuple[Path, ...]:
    """Return the folders of all models in the cache, links left out; empty where there is no cache."""
    try:
        return tuple(
            sorted(
                folder
                for folder in cache.iterdir()
                if _REPO_FOLDER.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink()
            )
        )
    except OSError:
        return ()


def repo_of(folder: Path) -> str:
    """Return the `owner/name` whose folder this is."""
    return folder.name.removeprefix("models--").replace("--", "/", 1)


def cached_files(cache: Path) -> tuple[CachedFile, ...]:
    """Return the GGUF files of all snapshots, sorted by repository, commit and path. Broken links are left out."""
    found = []
    for folder in repo_folders(cache):
        for commit, path, entry in _entries(folder):
            if path.lower().endswith(".gguf"):
                with contextlib.suppress(OSError):
                    if entry.is_file():
                        found.append(CachedFile(repo_of(folder), commit, path, entry, entry.stat().st_size))
    return tuple(found)


def remove_cached(cache: Path, repo: str, commit: str, paths: Sequence[str]) -> int:
    """Remove files of a snapshot, the blobs that nothing else shows, and folders that become empty.

    Returns:
        How many bytes that freed.

    Raises:
        UsageError: one of them is being downloaded.
        LocalspecError: something cannot be removed.
    """
    folder = repo_folder(cache, repo)
    pointers = [snapshot_path(cache, repo, commit, path) for path in paths]
    blobs = folder / "blobs"
    for place in (blobs, *(pointer.parent for pointer in pointers)):
        require_own(cache, place)
    require_inside(cache, lock_path(blobs / "any").parent)
    kept = {target for _, _, entry in _entries(folder) if entry not in pointers and (target := _target(entry))}
    freed_bytes = 0
    try:
        for pointer in pointers:
            if not os.path.lexists(pointer):
                continue
            blob = _target(pointer)
            freed_bytes += pointer.lstat().st_size if blob is None else 0
            if blob is None or blob.parent.resolve() != blobs.resolve() or blob in kept:
                pointer.unlink()
                continue
            freed_bytes += _remove_blob(blob, pointer)
    except OSError as error:
        raise LocalspecError(
            f"{repo} cannot be removed: {error.strerror}.", "Check the rights of its files."
        ) from error
    _remove_empty_below(folder, "snapshots", commit)
    if not (folder / "snapshots" / commit).exists():
        _forget_commit(folder, commit)
    remove_empty_folders(folder)
    return freed_bytes


def remove_empty_folders(folder: Path) -> None:
    """Remove what holds nothing any more in a repository's folder, and the folder itself if that was all.

    What links lead to stays as it is.
    """
    for part in ("refs", ".no_exist", "blobs"):
        _remove_empty_below(folder, part)
    # Stays as long as unfinished blobs do: without it, huggingface_hub calls the cache damaged.
    if not (folder / "blobs").exists():
        _remove_empty_below(folder, "snapshots")
    with contextlib.suppress(OSError):
        folder.rmdir()


def _segments(path: str) -> tuple[str, ...]:
    segments = tuple(path.split("/"))
    for segment in segments:
        is_foul = not segment.isprintable() or any(character in segment for character in "\\:")
        if is_foul or segment in {"", ".", ".."} or len(os.fsencode(segment)) > _MAX_SEGMENT_BYTES:
            raise DownloadError(
                f"The name {path!r} is not used: it might lead out of the cache.", "Choose another file."
            )
    return segments


def _entries(folder: Path) -> Iterator[tuple[str, str, Path]]:
    snapshots = folder / "snapshots"
    for place, folders, names in os.walk(snapshots):
        folders.sort()
        parts = Path(place).relative_to(snapshots).parts
        if parts:
            for name in sorted(names):
                yield parts[0], "/".join([*parts[1:], name]), Path(place, name)


def _target(entry: Path) -> Path | None:
    # One hop only: a blob may be a link itself, into huggingface_hub's store of shared blobs.
    if not entry.is_symlink():
        return None
    return Path(os.path.normpath(entry.parent.resolve() / os.readlink(entry)))


def _remove_blob(blob: Path, pointer: Path) -> int:
    with BlobLock(blob) as lock:
        if not lock.try_take():
            raise UsageError(f"{pointer.name} is being downloaded.", "Stop the download first, or wait for its end.")
        pointer.unlink()
        size_bytes = 0
        with contextlib.suppress(FileNotFoundError):
            size_bytes = 0 if blob.is_symlink() else blob.stat().st_size
            blob.unlink()
        lock.remove()
        return size_bytes


def _forget_commit(folder: Path, commit: str) -> None:
    # A ref to a commit that is not there makes huggingface_hub call the cache damaged.
    for place, _, names in _walk_own(folder, "refs"):
        for ref in (Path(place, name) for name in names):
            with contextlib.suppress(OSError):
                if read_regular(ref, _MAX_REF_BYTES).strip() == commit.encode():
                    ref.unlink()
    # Its marks of files that a commit lacks.
    for place, _, names in _walk_own(folder, ".no_exist", commit):
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(Path(place, name))


def _remove_empty_below(folder: Path, *parts: str) -> None:
    for place, _, _ in sorted(_walk_own(folder, *parts), reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(place)


def _walk_own(folder: Path, *parts: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk through what lies below a part of a repository's folder; nothing if a link lies on the way to it."""
    if _is_own(folder.parent, folder.joinpath(*parts)):
        yield from os.walk(folder.joinpath(*parts))


def _is_own(cache: Path, folder: Path) -> bool:
    try:
        return folder.resolve() == cache.resolve() / folder.relative_to(cache)
    except (RuntimeError, ValueError):
        return False
