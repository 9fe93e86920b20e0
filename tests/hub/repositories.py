"""What a made-up Hub holds: repositories, their commits, and the bytes of their files, real or claimed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_LAST_MODIFIED = "2025-03-01T12:00:00.000Z"


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file: given ones, then zeros up to the size."""

    head: bytes | Path
    size: int
    sha256: str
    blob_id: str
    """Git's name for it."""

    def read(self, start: int, count: int) -> bytes:
        """Return the bytes from `start`, at most `count`, fewer at the end."""
        count = max(0, min(count, self.size - start))
        if isinstance(self.head, bytes):
            piece = self.head[start : start + count]
        else:
            with self.head.open("rb") as file:
                file.seek(start)
                piece = file.read(count)
        return piece + bytes(count - len(piece))


def content_of(data: bytes | Path) -> Content:
    """Return the content that some bytes, or a file's, are."""
    size = len(data) if isinstance(data, bytes) else data.stat().st_size
    sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    if isinstance(data, bytes):
        sha256.update(data)
        git.update(data)
    else:
        with data.open("rb") as file:
            while piece := file.read(2**20):
                sha256.update(piece)
                git.update(piece)
    return Content(data, size, sha256.hexdigest(), git.hexdigest())


def virtual_content(size: int, prefix: bytes) -> Content:
    """Return content that claims a size; its hashes are made up, since nobody could hash a petabyte."""
    seed = b"%d:" % size + prefix
    return Content(
        prefix, size, hashlib.sha256(seed).hexdigest(), hashlib.sha1(seed, usedforsecurity=False).hexdigest()
    )


@dataclass(slots=True)
class Repository:
    """One repository of models, with all commits that it ever had."""

    name: str
    tags: tuple[str, ...]
    base_models: tuple[str, ...]
    gated: bool | Literal["auto", "manual"]
    token: str | None
    licence: str
    downloads: int
    likes: int
    lfs: bool
    gguf: Mapping[str, Any] | None
    commits: dict[str, dict[str, Content]] = field(default_factory=dict)
    """Files by path, by commit; the last one is main."""
    refs: dict[str, str] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """The commit that main is at."""
        return self.refs["main"]

    @property
    def files(self) -> dict[str, Content]:
        """The files of main."""
        return self.commits[self.commit]

    def put(self, changes: Mapping[str, Content]) -> None:
        """Make a commit with some files added or replaced."""
        files = (dict(self.files) if self.refs else {}) | dict(changes)
        seed = "\n".join([self.name, str(len(self.commits)), *(f"{path} {files[path].sha256}" for path in files)])
        commit = hashlib.sha1(seed.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
        self.commits[commit] = files
        self.refs["main"] = commit

    def resolve(self, revision: str) -> str | None:
        """Return the commit that a revision names."""
        return revision if revision in self.commits else self.refs.get(revision)

    def is_lfs(self, path: str) -> bool:
        """Whether a file is in large-file storage: GGUF files are, unless the whole repository does without."""
        return self.lfs and path.lower().endswith(".gguf")

    def etag(self, path: str, content: Content) -> str:
        """Return what the Hub names the content by."""
        return content.sha256 if self.is_lfs(path) else content.blob_id

    def all_tags(self) -> tuple[str, ...]:
        """Return the tags, those that the Hub itself adds included."""
        found = list(self.tags)
        if any(path.lower().endswith(".gguf") for path in self.files):
            found.append("gguf")
        for base in self.base_models:
            found += [f"base_model:{base}", f"base_model:quantized:{base}"]
        if self.licence:
            found.append(f"license:{self.licence}")
        return tuple(dict.fromkeys(found))


def model_json(
    repository: Repository, commit: str | None = None, *, blobs: bool = False, expand: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what the API says of a repository; with `expand`, nothing but these properties."""
    commit = commit or repository.commit
    siblings: list[dict[str, Any]] = []
    for path, content in repository.commits[commit].items():
        sibling: dict[str, Any] = {"rfilename": path}
        if blobs:
            sibling |= {"size": content.size, "blobId": content.blob_id}
            if repository.is_lfs(path):
                sibling["lfs"] = {"sha256": content.sha256, "size": content.size, "pointerSize": 135}
        siblings.append(sibling)
    card: dict[str, Any] = {"license": repository.licence} if repository.licence else {}
    if repository.base_models:
        card["base_model"] = list(repository.base_models)
    bases = {"relation": "quantized", "models": [{"_id": name, "id": name} for name in repository.base_models]}
    properties: dict[str, Any] = {
        "author": repository.name.partition("/")[0],
        "sha": commit,
        "lastModified": _LAST_MODIFIED,
        "createdAt": _LAST_MODIFIED,
        "private": repository.token is not None and not repository.gated,
        "gated": repository.gated,
        "disabled": False,
        "downloads": repository.downloads,
        "likes": repository.likes,
        "tags": list(repository.all_tags()),
        "cardData": card,
        "siblings": siblings,
    }
    if repository.gguf is not None:
        properties["gguf"] = dict(repository.gguf)
    if expand:
        properties["baseModels"] = bases if repository.base_models else None
        properties = {name: value for name, value in properties.items() if name in expand}
    return {"_id": commit[:24], "id": repository.name, "modelId": repository.name, **properties}
