"""What the tests of downloads share: a repository with files, and a look at what lies in the cache."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path

from localspec.catalog.hub.client import Hub
from localspec.catalog.hub.queue import Downloads
from localspec.catalog.hub.values import Offer, RepoListing
from localspec.catalog.progress import TransferProgress
from tests.hub.server import TestHub

REPO = "maker/Tiny-GGUF"
DATA = random.Random(7).randbytes(700_001)
SHARD = random.Random(8).randbytes(250_000)
ETAG = hashlib.sha256(DATA).hexdigest()


def add_files(hub: TestHub) -> None:
    """Give the Hub one repository: a model, and another in two shards."""
    files = {"a.gguf": DATA, "q/b-00001-of-00002.gguf": SHARD, "q/b-00002-of-00002.gguf": DATA[:100_000]}
    hub.add_repo(REPO, files)


class Naps:
    """Sleeps that end at once, on record."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def offer_of(hub: Hub, *paths: str, repo: str = REPO) -> tuple[RepoListing, Offer]:
    """Return a listing, and files of it as one offer."""
    listing = await hub.listing(repo)
    by_path = {file.path: file for file in listing.files}
    return listing, Offer("Q4_K_M", "model", tuple(by_path[path] for path in paths))


async def pull(
    *paths: str,
    repo: str = REPO,
    seen: list[TransferProgress] | None = None,
    naps: Naps | None = None,
    token: str | None = None,
) -> Path:
    """Fetch files from the Hub that huggingface_hub is set to, into its cache; return where the first one is."""
    seen = [] if seen is None else seen
    async with Hub(token=token) as hub:
        downloads = Downloads(hub, sleep=naps or Naps())
        (path,) = await downloads.fetch([await offer_of(hub, *(paths or ("a.gguf",)), repo=repo)], seen.append)
        return path


def cache_of(hub: TestHub) -> Path:
    """Return the cache that downloads go to."""
    return hub.home / "hub"


def blobs_of(hub: TestHub, repo: str = REPO) -> Path:
    """Return the folder of a repository's contents."""
    return cache_of(hub) / f"models--{repo.replace('/', '--')}" / "blobs"


def partial_of(hub: TestHub, etag: str = ETAG) -> Path:
    """Return where a beginning is kept."""
    return blobs_of(hub) / f"{etag}.localspec.partial"


def plant_partial(hub: TestHub, data: bytes, etag: str = ETAG) -> Path:
    """Put a beginning there, as a run that was killed leaves it."""
    path = partial_of(hub, etag)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names_in(hub: TestHub) -> list[str]:
    """Return all files and links in the cache but locks, relative to the repository's folder."""
    folder = blobs_of(hub).parent
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def clean_names(hub: TestHub, paths: Sequence[str] = ("a.gguf",), contents: Sequence[bytes] = (DATA,)) -> list[str]:
    """Return what names_in() gives after a download that left nothing over."""
    commit = hub.repositories[REPO].commit
    blobs = [f"blobs/{hashlib.sha256(data).hexdigest()}" for data in contents]
    return sorted([*blobs, "refs/main", *(f"snapshots/{commit}/{path}" for path in paths)])
