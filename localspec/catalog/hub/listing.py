"""The Hub's answers about repositories, checked and turned into values. Every field may be missing or nonsense."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from localspec.catalog.hub.values import RepoFile, RepoHit, RepoListing

MAX_FILE_BYTES = 1 << 41
"""2 TiB: no model comes near, most file systems can hold a sparse file of that size."""

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?![^T])", re.ASCII)
_MAX_PATH_BYTES = 1024
_MAX_FILES = 10_000
_MAX_COUNT = 10**15
_MAX_TAGS = 1_000
_MAX_BASE_MODELS = 32


def listing_of(answer: object, repo: str, revision: str) -> RepoListing:
    """Return a repository's listing; files whose path would not be safe everywhere are left out, and counted.

    Args:
        answer: the JSON document.
        repo: what was asked for.
        revision: likewise.

    Raises:
        ValueError: the answer names no commit, or lists no files.
    """
    fields = _mapping(answer)
    commit, siblings = fields.get("sha"), fields.get("siblings")
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise ValueError("no commit")
    if not isinstance(siblings, list):
        raise ValueError("no list of files")
    paths = [(path, entry) for entry in map(_mapping, siblings) if isinstance(path := entry.get("rfilename"), str)]
    # The sort is stable. Where there are too many files, those that are no models can be spared.
    paths.sort(key=lambda item: not item[0].lower().endswith(".gguf"))
    files: dict[str, RepoFile] = {}
    num_unsafe = num_surplus = 0
    for path, entry in paths:
        if path in files:
            continue
        if len(files) == _MAX_FILES:
            num_surplus += 1
        elif is_safe_path(path):
            files[path] = _file(path, entry)
        else:
            num_unsafe += 1
    return RepoListing(
        repo=repo,
        revision=revision,
        commit=commit,
        files=tuple(files.values()),
        base_models=_base_models(fields),
        licence=_licence(fields),
        is_gated=bool(fields.get("gated")),
        downloads=_count(fields.get("downloads")),
        tags=_tags(fields),
        num_unsafe=num_unsafe,
        num_surplus=num_surplus,
    )


def hit_of(answer: object) -> RepoHit | None:
    """Return one answer of a search, from its part of the JSON document; None where its name is none."""
    fields = _mapping(answer)
    name = fields.get("id")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return None
    gguf = _mapping(fields.get("gguf"))
    architecture, modified = gguf.get("architecture"), fields.get("lastModified")
    date = _DATE.match(modified) if isinstance(modified, str) else None
    return RepoHit(
        repo=name,
        downloads=_count(fields.get("downloads")),
        likes=_count(fields.get("likes")),
        is_gated=bool(fields.get("gated")),
        base_models=_base_models(fields),
        architecture=architecture[:80] if isinstance(architecture, str) else "",
        num_params=_count(gguf.get("total")),
        last_modified=date[0] if date else "",
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
    if not path.isprintable() and any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in path):
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


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _file(path: str, entry: Mapping[str, object]) -> RepoFile:
    stored = _mapping(entry.get("lfs"))
    sha256 = stored.get("sha256")
    is_hash = isinstance(sha256, str) and _SHA256.fullmatch(sha256) is not None
    size = _count(stored.get("size") if stored else entry.get("size"), MAX_FILE_BYTES)
    return RepoFile(path, size, str(sha256) if is_hash else "")


def _base_models(fields: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names in tags such as `base_model:quantized:OWNER/NAME`, in the card and in `baseModels`."""
    found: list[object] = [tag.rpartition(":")[2] for tag in _tags(fields) if tag.startswith("base_model:")]
    stated = _mapping(fields.get("cardData")).get("base_model")
    found += stated if isinstance(stated, list) else [stated]
    models = _mapping(fields.get("baseModels")).get("models")
    found += [_mapping(model).get("id") for model in models] if isinstance(models, list) else []
    names = dict.fromkeys(name for name in found if isinstance(name, str) and _NAME.fullmatch(name))
    return tuple(names)[:_MAX_BASE_MODELS]


def _licence(fields: Mapping[str, object]) -> str:
    stated = _mapping(fields.get("cardData")).get("license")
    if isinstance(stated, str) and stated:
        return stated[:120]
    return next((tag.removeprefix("license:")[:120] for tag in _tags(fields) if tag.startswith("license:")), "")


def _tags(fields: Mapping[str, object]) -> tuple[str, ...]:
    tags = fields.get("tags")
    return tuple(tag for tag in tags[:_MAX_TAGS] if isinstance(tag, str)) if isinstance(tags, list) else ()


def _count(value: object, largest: int = _MAX_COUNT) -> int:
    """Return a number as it stands; 0, which means unknown, for one that nothing real has and for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= largest else 0
