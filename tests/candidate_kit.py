"""Made-up models, repositories and an engine for the search for candidates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from localspec.catalog.curated import CuratedMethod, CuratedPair
from localspec.catalog.facts import ModelFacts
from localspec.catalog.found_model import FoundModel
from localspec.catalog.header import GgufHeader, TensorInfo
from localspec.catalog.hub.values import Offer, RepoFile, RepoHit, RepoListing
from localspec.catalog.pairing import PairVerdict
from localspec.engine.events import EngineFailed, Event, HeaderRead, PairsChecked
from localspec.engine.requests import CheckPairs, ReadHeader, Request
from localspec.errors import LocalspecError, ModelFileError
from localspec.session.candidates import Candidate, CandidateTarget
from localspec.session.library import ModelEntry
from tests.scripted_engine import ScriptedEngine

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub

MIB = 1024 * 1024
VOCABULARY = "v" * 32


def facts(
    title: str = "Qwen3 8B",
    active_mib: int = 4000,
    params: int = 8_000_000_000,
    vocabulary: str = VOCABULARY,
    bases: tuple[str, ...] = (),
) -> ModelFacts:
    """A dense model of the given size."""
    return ModelFacts(
        title=title,
        architecture="qwen3",
        quantisation="Q4_K_M",
        num_params=params,
        num_active_params=params,
        file_bytes=active_mib * MIB,
        tensor_bytes=active_mib * MIB,
        active_bytes=active_mib * MIB,
        n_ctx_train=32768,
        n_layer=36,
        n_embd=4096,
        num_experts=0,
        num_experts_used=0,
        n_vocab=151936,
        vocabulary_fingerprint=vocabulary,
        num_mtp_layers=0,
        draft_only=None,
        target_hidden_size=0,
        target_layers=(),
        template_fingerprint="",
        licence="",
        base_models=bases,
    )


TARGET = CandidateTarget(
    Path("/models/Qwen3-8B-Q4_K_M.gguf"), "Qwen3-8B-Q4_K_M", "Qwen/Qwen3-8B-GGUF", ("Qwen/Qwen3-8B",), facts()
)


def entry(name: str, what: ModelFacts | None, repo: str = "", failure: str = "", **more: object) -> ModelEntry:
    """A model on this machine."""
    path = Path(f"/models/{name}.gguf")
    found = FoundModel(name=name, path=path, shards=(path,), place="folder", repo=repo)
    return ModelEntry(replace(found, **more), what, failure)  # type: ignore[arg-type]


def curated(draft_repo: str, method: CuratedMethod = "draft", draft_base: str = "", notes: str = "") -> CuratedPair:
    """A claim about the target."""
    return CuratedPair(
        family="Qwen3",
        target_base="Qwen/Qwen3-8B",
        target_repo="",
        target_aliases=(),
        target_params="8B",
        draft_base=draft_base,
        draft_repo=draft_repo,
        draft_file="",
        method=method,
        notes=notes,
        source="https://example.org/pairs",
        is_tried=False,
        llama_cpp="",
    )


def hit(repo: str, downloads: int = 1, bases: tuple[str, ...] = (), params: int = 0) -> RepoHit:
    """An answer of a search."""
    return RepoHit(repo, downloads, 0, False, bases, "qwen3", params, "")


class FakeHub:
    """Repositories with one file each; a repository may be a failure instead."""

    def __init__(self, hits: Sequence[RepoHit] = (), failures: dict[str, LocalspecError] | None = None) -> None:
        self.hits = tuple(hits)
        self.failures = failures or {}
        self.searched: list[str] = []
        self.listed: list[str] = []
        self.files: dict[str, tuple[str, ...]] = {}

    async def search(self, words: str, limit: int = 20) -> tuple[RepoHit, ...]:
        await asyncio.sleep(0)
        self.searched.append(words)
        if "search" in self.failures:
            raise self.failures["search"]
        return self.hits[:limit]

    async def listing(self, repo: str, revision: str = "main") -> RepoListing:
        await asyncio.sleep(0)
        self.listed.append(repo)
        if repo in self.failures:
            raise self.failures[repo]
        name = repo.rpartition("/")[2].removesuffix("-GGUF")
        names = self.files.get(repo, (f"{name}-Q4_K_M.gguf", f"{name}-Q8_0.gguf"))
        files = tuple(RepoFile(file, 1000, "") for file in names)
        return RepoListing(repo, revision, "c" * 40, files, (), "", False, 1)


async def fetch(hub: Hub, listing: RepoListing, offer: Offer) -> Path:
    """Stands for fetch_header."""
    await asyncio.sleep(0)
    if "broken" in listing.repo:
        raise ModelFileError(f"{listing.repo} is no GGUF.", "Choose another.")
    return Path("/headers") / listing.repo / offer.files[0].path


def engine(sizes_mib: dict[str, int] | None = None, verdicts: dict[str, PairVerdict] | None = None) -> ScriptedEngine:
    """An engine that knows headers and verdicts by a part of the path; verdicts are PAIR by default."""

    def header(path: str) -> GgufHeader:
        size = next((size for part, size in (sizes_mib or {}).items() if part in path), 300) * MIB
        tensor = TensorInfo("output.weight", "Q4_0", (size, 1), 0, size)
        return GgufHeader(
            path=path,
            version=3,
            file_bytes=size,
            data_offset=0,
            shards=(path,),
            metadata={"general.architecture": "qwen3"},
            tensors=(tensor,),
            num_tensors=1,
            num_params=size,
            tensor_bytes=size,
            vocabulary_fingerprint=VOCABULARY,
        )

    def verdict(path: str) -> PairVerdict:
        found = (verdict for part, verdict in (verdicts or {}).items() if part in path)
        return next(found, PairVerdict("PAIR", ""))

    def answer(request: Request) -> list[Event] | None:
        if isinstance(request, ReadHeader):
            return [HeaderRead(request.id, header(request.path))]
        if isinstance(request, CheckPairs):
            if any("deadly" in path for path in request.draft_paths):
                return [EngineFailed(request.id, "EngineDiedError", "The engine died.", "", is_fatal=True)]
            return [PairsChecked(request.id, tuple(verdict(path) for path in request.draft_paths))]
        return None

    return ScriptedEngine(answer=answer)


def as_hub(fake: FakeHub) -> Hub:
    return cast("Hub", fake)


def labels(found: Sequence[Candidate]) -> list[str]:
    return [one.label for one in found if not one.refusal]


def one(found: Sequence[Candidate], label: str) -> Candidate:
    [match] = [each for each in found if each.label == label]
    return match
