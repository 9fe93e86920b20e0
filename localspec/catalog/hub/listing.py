"""The Hub's answers about repositories, checked and turned into values. Every field may be missing or nonsense."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from localspec.catalog.hub.values import RepoFile, RepoHit, RepoListing

if TYPE_CHECKING:
    from huggingface_hub import ModelInfo

MAX_FILE_BYTES = 1 << 41
"""2 TiB: no model comes near, most file systems can hold a sparse file of that size."""

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE)
_MAX_PATH_BYTES = 1024


def listing_of(info: ModelInfo, repo: str, revision: str) -> RepoListing:
    """Return a repository's listing; files whose path would not be safe everywhere are left out.

    Raises:
        ValueError: the answer names no commit, or lists no files.
    """
    commit = info.sha
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise ValueError("no commit")
    if info.siblings is None:
        raise ValueError("no list of files")
    files: dict[str, RepoFile] = {}
    for sibling in info.siblings:
        path: Any = sibling.rfilename
        if not is_safe_path(path) or path in files:
            continue
        lfs: Any = sibling.lfs
        size, sha256 = (lfs.size, lfs.sha256) if lfs is not None else (sibling.size, "")
        is_hash = isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None
        files[path] = RepoFile(path, _count(size), sha256 if is_hash else "")
    return RepoListing(
        repo=repo,
        revision=revision,
        commit=commit,
        files=tuple(files.values()),
        base_models=_base_models(info),
        licence=_licence(info),
        is_gated=_is_gated(info),
        downloads=_count(info.downloads),
        tags=_tags(info),
    )


def hit_of(info: ModelInfo) -> RepoHit | None:
    """Return one answer of a search; None where its name is none."""
    name: Any = info.id
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    gguf: Any = info.gguf
    gguf = gguf if isinstance(gguf, dict) else {}
    architecture = gguf.get("architecture")
    modified: Any = info.last_modified
    return RepoHit(
        repo=name,
        downloads=_count(info.downloads),
        likes=_count(info.likes),
        is_gated=_is_gated(info),
        base_models=_base_models(info),
        architecture=architecture[:80] if isinstance(architecture, str) else "",
        num_params=_count(gguf.get("total")),
        last_modified=modified.date().isoformat() if isinstance(modified, datetime) else "",
    )


def is_safe_path(path: object) -> bool:
    """Say whether a repository's path stays inside a folder on every system, and can be written there."""
    if not isinstance(path, str) or not path:
        return False
    try:
        if len(path.encode()) > _MAX_PATH_BYTES:
            return False
    except UnicodeEncodeError:
        return False
    # Control and format characters, lone surrogates, line and paragraph separators.
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in path):
        return False
    return all(_is_safe_segment(segment) for segment in path.split("/"))


def _is_safe_segment(segment: str) -> bool:
    return (
        segment not in ("", ".", "..")
        and not any(sign in '\\:<>"|?*' for sign in segment)
        and segment[-1] not in ". "
        and _RESERVED.fullmatch(segment) is None
        and len(segment.encode()) <= 255
    )


def _base_models(info: ModelInfo) -> tuple[str, ...]:
    """Return the names in tags such as `base_model:quantized:OWNER/NAME`, in the card and in `baseModels`."""
    found: list[object] = [tag.rpartition(":")[2] for tag in _tags(info) if tag.startswith("base_model:")]
    card: Any = info.card_data
    stated = getattr(card, "base_model", None)
    found += [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    related: Any = info.base_models
    models = related.get("models") if isinstance(related, dict) else None
    found += [model.get("id") for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str) and _NAME.fullmatch(name)))


def _licence(info: ModelInfo) -> str:
    card: Any = info.card_data
    stated = getattr(card, "license", None)
    if isinstance(stated, str) and stated:
        return stated[:120]
    return next((tag.removeprefix("license:")[:120] for tag in _tags(info) if tag.startswith("license:")), "")


def _tags(info: ModelInfo) -> tuple[str, ...]:
    tags: Any = info.tags
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, Iterable) else ()


def _is_gated(info: ModelInfo) -> bool:
    return bool(info.gated)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
