"""What the Hub rightly answers: which file or repository a URL means, who may read it, and the bytes of a range."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tests.hub.repositories import Content, Repository, model_json

if TYPE_CHECKING:
    from tests.hub.server import TestHub

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(slots=True)
class Answer:
    """A status, headers, and a body: either some bytes or a piece of a file."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    content: Content | None = None
    start: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL is about."""

    kind: str
    """`search`, `model`, `file` or `unknown`."""
    name: str = ""
    repository: Repository | None = None
    commit: str = ""
    path: str = ""
    content: Content | None = None


def target_of(hub: TestHub, port_name: str, path: str) -> Target:
    parts = path.strip("/").split("/")
    if port_name == "cdn":
        if len(parts) < 5 or parts[0] != "cdn":
            return Target("unknown")
        return _file(hub, "/".join(parts[2:4]), parts[1], "/".join(parts[4:]))
    if parts == ["api", "models"]:
        return Target("search")
    if parts[:2] == ["api", "models"] and len(parts) >= 4:
        name = "/".join(parts[2:4])
        revision = "/".join(parts[5:]) if parts[4:5] == ["revision"] else "main"
        repository = hub.repositories.get(name)
        return Target("model", name, repository, (repository.resolve(revision) or "") if repository else "")
    if len(parts) >= 5 and parts[2] == "resolve":
        # Revisions with slashes come quoted, so that one part is left; refs/pr/1 is how git names one unquoted.
        return _file(hub, "/".join(parts[:2]), *_split_revision(hub, "/".join(parts[:2]), parts[3:]))
    return Target("unknown")


def _split_revision(hub: TestHub, name: str, parts: list[str]) -> tuple[str, str]:
    repository = hub.repositories.get(name)
    for length in range(len(parts) - 1, 0, -1):
        if repository is not None and repository.resolve("/".join(parts[:length])):
            return "/".join(parts[:length]), "/".join(parts[length:])
    return parts[0], "/".join(parts[1:])


def _file(hub: TestHub, name: str, revision: str, path: str) -> Target:
    repository = hub.repositories.get(name)
    commit = (repository.resolve(revision) or "") if repository else ""
    content = repository.commits[commit].get(path) if repository and commit else None
    return Target("file", f"{name}/{path}", repository, commit, path, content)


def _refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    said = {"Content-Type": "application/json", "X-Error-Message": message} | headers
    if code:
        said["X-Error-Code"] = code
    return Answer(status, said, json.dumps({"error": message}).encode())


def _access(target: Target, headers: dict[str, str], is_file: bool) -> Answer | None:
    """Return the refusal that somebody gets who may not read, in the Hub's own codes."""
    repository = target.repository
    token = headers.get("authorization", "").removeprefix("Bearer ")
    if repository is None or (repository.token is not None and not repository.gated and token != repository.token):
        # The Hub does not tell strangers whether a repository is private or missing.
        if not token:
            return _refusal(401, "RepoNotFound", "Invalid username or password.")
        return _refusal(404, "RepoNotFound", "Repository not found")
    if repository.gated and is_file and (not token or token != repository.token):
        message = f"Access to model {repository.name} is restricted. You must have access to it."
        return _refusal(403 if token else 401, "GatedRepo", message)
    if not target.commit:
        return _refusal(404, "RevisionNotFound", "Invalid rev id")
    return None


def file_answer(target: Target, headers: dict[str, str], range_header: str | None) -> Answer:
    refusal = _access(target, headers, is_file=True)
    if refusal is not None:
        return refusal
    repository = cast("Repository", target.repository)
    said = {"X-Repo-Commit": target.commit}
    if target.content is None:
        return _refusal(404, "EntryNotFound", "Entry not found", **said)
    etag = repository.etag(target.path, target.content)
    said["ETag"] = f'"{etag}"'
    if repository.is_lfs(target.path):
        said |= {"X-Linked-Size": str(target.content.size), "X-Linked-Etag": f'"{etag}"'}
    return ranged(target.content, said, headers, range_header)


def ranged(content: Content, said: dict[str, str], headers: dict[str, str], range_header: str | None) -> Answer:
    said = {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"} | said
    match = _RANGE.fullmatch(range_header.strip()) if range_header else None
    is_stale = "if-range" in headers and headers["if-range"] != said.get("ETag")
    if match is None or match.groups() == ("", "") or is_stale:
        return Answer(200, said, content=content, length=content.size)
    first, last = match.groups()
    start = int(first) if first else max(0, content.size - int(last))
    end = min(content.size, int(last) + 1) if first and last else content.size
    if start >= end:
        said |= {"Content-Range": f"bytes */{content.size}"}
        return Answer(416, said)
    said |= {"Content-Range": f"bytes {start}-{end - 1}/{content.size}"}
    return Answer(206, said, content=content, start=start, length=end - start)


def api_answer(hub: TestHub, target: Target, headers: dict[str, str], query: dict[str, list[str]]) -> Answer:
    expand = (*query.get("expand", ()), *query.get("expand[]", ()))
    if target.kind == "search":
        found = _search(hub, query)
        answer: Any = [model_json(repository, expand=expand) for repository in found]
    elif target.kind == "model":
        refusal = _access(target, headers, is_file=False)
        if refusal is not None:
            return refusal
        blobs = query.get("blobs", ["false"])[0].lower() in ("true", "1")
        answer = model_json(cast("Repository", target.repository), target.commit, blobs=blobs, expand=expand)
    else:
        return _refusal(404, "", "Sorry, we can't find the page you are looking for.")
    return Answer(200, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(answer).encode())


def _search(hub: TestHub, query: dict[str, list[str]]) -> list[Repository]:
    words = query.get("search", [""])[0].lower().split()
    wanted = {tag for value in query.get("filter", ()) for tag in value.split(",")}
    found = [
        repository
        for repository in hub.repositories.values()
        if all(word in repository.name.lower() for word in words)
        and wanted <= set(repository.all_tags())
        and (repository.token is None or repository.gated)
        and query.get("author", [repository.name.partition("/")[0]]) == [repository.name.partition("/")[0]]
    ]
    key = query.get("sort", ["downloads"])[0]
    if key in ("downloads", "likes"):
        found.sort(key=lambda repository: cast(int, getattr(repository, key)), reverse=True)
    return found[: int(query.get("limit", ["1000"])[0])]
