"""A repository of one model, and how its list, its place and its bytes are asked for."""

from __future__ import annotations

import json

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.values import RemoteFile, RepoFile, RepoListing
from tests.hub.server import TestHub

REPO = "maker/Tiny-GGUF"


DATA = bytes(range(256)) * 9000


async def find(client: Hub, path: str = "a.gguf", repo: str = REPO) -> tuple[RepoListing, RepoFile]:
    listing = await client.listing(repo)
    return listing, next(file for file in listing.files if file.path == path)


async def locate(client: Hub, path: str = "a.gguf", repo: str = REPO) -> RemoteFile:
    return await client.locate(*await find(client, path, repo))


async def fetch(client: Hub, remote: RemoteFile, start: int = 0, end: int | None = None) -> bytes:
    async with client.read(remote, start, end) as reply:
        return b"".join([chunk async for chunk in reply.chunks()])


def answer(hub: TestHub, document: object) -> None:
    hub.fault(body=json.dumps(document).encode())
