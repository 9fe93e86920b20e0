"""kit.json: what a kit holds. It may come from anybody's USB stick, so every word of it is checked."""

from __future__ import annotations

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from localspec.errors import LocalspecError, ModelFileError, UsageError

MANIFEST = "kit.json"
UNFINISHED = ".localspec-kit"
"""Marks a folder whose export was begun and not finished."""
VERSION = 1

_MAX_MANIFEST_BYTES = 2**20
_MAX_FILES = 2_000
_MAX_NAMED = 5
_MAX_NAME_BYTES = 255
_MAX_SIZE_BYTES = 2**53
_FORBIDDEN = frozenset('/\\:*?"<>|')
_RESERVED = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³])", re.IGNORECASE)
_CLUTTER = {"thumbs.db", "desktop.ini", "system volume information", "$recycle.bin", "lost+found"}

KitRole = Literal["target", "draft"]


def name_fault(name: str) -> str:
    """Return why a name cannot be a model file's on every system; empty if it can."""
    if not name:
        return "it is empty"
    if _FORBIDDEN & set(name):
        return "it holds a character that separates folders or that some systems forbid"
    if not name.isprintable():
        return "it holds a character that cannot be seen"
    if name.startswith((".", " ", "-", "~")) or name.endswith((".", " ")):
        return "it begins or ends with a character that hides it or has a meaning of its own"
    if not name.lower().endswith(".gguf"):
        return "it does not end in .gguf"
    if _RESERVED.fullmatch(name.partition(".")[0].rstrip()):
        return "Windows keeps it for a device"
    if len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
        return f"it is longer than {_MAX_NAME_BYTES} bytes"
    return ""


def same_name(name: str) -> str:
    """Return what is equal for names that some file system takes for one: case and Unicode's spellings."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _plain(name: str) -> str:
    fault = name_fault(name)
    if fault:
        raise ValueError(f"{name!r} is no name for a file: {fault}")
    return name


class KitFile(BaseModel):
    """One file of a kit. Texts that are not known are empty."""

    model_config = ConfigDict(frozen=True)

    name: Annotated[str, AfterValidator(_plain)]
    size: int = Field(ge=0, le=_MAX_SIZE_BYTES)
    """In bytes."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    role: KitRole
    repo: str = Field(default="", pattern=r"^(?:[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)?$", max_length=200)
    """`owner/name` on the Hub."""
    commit: str = Field(default="", pattern=r"^(?:[0-9a-f]{40})?$")
    quantisation: str = Field(default="", max_length=100)
    licence: str = Field(default="", max_length=200)


class KitManifest(BaseModel):
    """What kit.json says."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    localspec: str = Field(max_length=100)
    """The version of localspec that made it."""
    files: tuple[KitFile, ...] = Field(min_length=1, max_length=_MAX_FILES)
    """In order: the shards of a split model follow each other."""

    @model_validator(mode="after")
    def _whole(self) -> KitManifest:
        if len({same_name(file.name) for file in self.files}) < len(self.files):
            raise ValueError("two files have one name")
        if all(file.role != "target" for file in self.files):
            raise ValueError("there is no target")
        return self

    @property
    def size_bytes(self) -> int:
        """All files together."""
        return sum(file.size for file in self.files)


class _AnyManifest(BaseModel):
    version: int


def read_manifest(folder: Path) -> KitManifest:
    """Return what a kit's kit.json says. The files themselves are not looked at.

    Raises:
        UsageError: the folder is no kit, or one that was not finished.
        ModelFileError: its kit.json is damaged, made by a later version, or lists what no kit may hold.
    """
    path = folder / MANIFEST
    text = _read(folder, path)
    hint = "Export the kit again, or copy it again from where it was made."
    try:
        version = _AnyManifest.model_validate_json(text).version
        if version > VERSION:
            raise ModelFileError(
                f"The kit in {folder} is of version {version}; this localspec reads up to {VERSION}.",
                "Import it with the version of localspec that made it, or a later one.",
            )
        return KitManifest.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ModelFileError(f"{path} is damaged: {place + ': ' if place else ''}{first['msg']}.", hint) from None


def _read(folder: Path, path: Path) -> bytes:
    try:
        descriptor = open_plain(path)
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(_MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        if (folder / UNFINISHED).exists():
            raise UsageError(
                f"The kit in {folder} was not finished: its export was interrupted.",
                "Export it again to the same folder; what is there is kept.",
            ) from None
        raise UsageError(
            f"{folder} is no kit: there is no {MANIFEST} in it.", "Give the folder that `localspec kit export` made."
        ) from None
    except OSError as error:
        raise LocalspecError(f"{path} cannot be read: {error.strerror}.", "Check the folder and its rights.") from error
    if len(text) > _MAX_MANIFEST_BYTES:
        raise ModelFileError(f"{path} is far too long for a kit's list.", "Export the kit again.")
    return text


def open_plain(path: Path) -> int:
    """Open a regular file for reading, and return its descriptor.

    Raises:
        OSError: it cannot be opened, or it is a link, a pipe or a device.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))


def visible_names(names: Iterable[str]) -> list[str]:
    """Return the entries of a folder that count, sorted: not hidden ones, nor what systems leave on every disk."""
    return sorted(name for name in names if not name.startswith(".") and name.lower() not in _CLUTTER)


def names_in(folder: Path) -> list[str]:
    """Return the entries of a folder that count.

    Raises:
        UsageError: it is no folder.
        LocalspecError: it cannot be looked into.
    """
    try:
        return visible_names(os.listdir(folder))
    except NotADirectoryError:
        raise UsageError(f"{folder} is no folder.", "Give a folder.") from None
    except OSError as error:
        raise LocalspecError(f"Cannot look into {folder}: {error.strerror}.", "Check its rights.") from error


def listed(names: Sequence[str]) -> str:
    """Return the first of some names for a sentence."""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(repr(name) for name in names[:_MAX_NAMED]) + more
