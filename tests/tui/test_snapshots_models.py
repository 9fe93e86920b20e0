"""Models, the search of the Hub and the memory plan as pictures, of models that were made up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from localspec.catalog.curated import CuratedList
from localspec.catalog.hub.values import Offer, RepoFile, RepoHit, RepoListing
from localspec.catalog.pairing import PairVerdict
from localspec.catalog.progress import FileProgress, TransferProgress
from localspec.engine.values import ContextSettings, DeviceInfo
from localspec.planning.devices import GIB
from localspec.tui.app import LocalspecApp
from localspec.tui.download_queue import Transfer
from localspec.tui.hub_browsing import Browsing, OfferRow
from localspec.tui.model_library import Library
from localspec.tui.screens.fit import FitScreen
from localspec.tui.screens.hub import HubScreen
from localspec.tui.screens.models import ModelsScreen
from localspec.tui.state import ChosenModel, Launch, Workbench
from tests.candidate_kit import engine, entry, facts
from tests.plan_kit import gpu, host, planned, wishes_for
from tests.replay_scenes import Look
from tests.tui.fit_kit import DRAFT_PATH, TARGET_PATH, MeasuringEngine
from tests.tui.snapshot_kit import LARGE, SMALL, TURNED, keep_still, looks, shown

BIG, SMALL_MODEL, OTHER, BROKEN = "Qwen3-8B-Q4_K_M", "Qwen3-0.6B-Q8_0", "gemma-3-1b-it-Q4_0", "half-a-file"
VERDICTS = {
    "Qwen3-0.6B": PairVerdict("PAIR_WITH_NOTE", "", notes=("the vocabularies differ in size: 151936 and 151669",)),
    "gemma": PairVerdict("NO_PAIR", "token 7 is 'the' in the target and '<unused1>' in the draft"),
}
LIBRARY = Library(
    (
        entry(BIG, facts("Qwen3 8B", 4800), repo="Qwen/Qwen3-8B-GGUF", file_bytes=4800 << 20),
        entry(
            SMALL_MODEL,
            replace(facts("Qwen3 0.6B", 610, 600_000_000), quantisation="Q8_0"),
            file_bytes=610 << 20,
        ),
        entry(
            OTHER,
            replace(facts("Gemma 3 1B", 700, 1_000_000_000), architecture="gemma3", quantisation="Q4_0"),
            file_bytes=700 << 20,
        ),
        entry(BROKEN, None, failure="The file ends in the middle of its tensors.", file_bytes=90 << 20),
    ),
    activity="",
)


@asynccontextmanager
async def models(
    look: Look, folder: Path, monkeypatch: pytest.MonkeyPatch, library: Library = LIBRARY
) -> AsyncIterator[tuple[LocalspecApp, Pilot[int]]]:
    """Open the screen of models with a library that needs no files."""

    async def load(*_: object) -> Library:
        return library

    monkeypatch.setattr("localspec.tui.screens.models.load_library", load)
    monkeypatch.setattr("localspec.tui.model_library.known_pairs", lambda: CuratedList((), ()))
    bench = Workbench(target=ChosenModel(BIG, Path(f"/models/{BIG}.gguf")))
    launch = Launch(workbench=bench if library.entries else Workbench(), screen="models")
    async with shown(look, lambda: engine({"8B": 4800, "0.6B": 610}, VERDICTS), folder, launch) as (app, pilot):
        yield app, pilot


def has_drafts(app: LocalspecApp) -> Callable[[], bool]:
    screen = app.screen
    assert isinstance(screen, ModelsScreen)
    return lambda: bool(screen.drafts.candidates) and not screen.drafts.activity


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_models_and_what_may_draft(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with models(look, tmp_path, monkeypatch) as (app, pilot):
        await pilot.press("down", "down", "down")
        await keep_still("models", look, pilot, has_drafts(app))


@looks(SMALL, LARGE)
async def test_no_models(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with models(look, tmp_path, monkeypatch, Library(activity="")) as (_, pilot):
        await keep_still("models-none", look, pilot)


@looks(SMALL, LARGE)
async def test_downloads(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with models(look, tmp_path, monkeypatch) as (app, pilot):
        app.transfers = transfers()
        await keep_still("models-downloads", look, pilot, has_drafts(app))


def transfers() -> tuple[Transfer, ...]:
    listing = RepoListing("unsloth/Qwen3-8B-GGUF", "main", "c" * 40, (), (), "", False, 1)
    names = ("Qwen3-8B-00001-of-00002.gguf", "Qwen3-8B-00002-of-00002.gguf")
    offer = Offer("Q4_K_M", "model", tuple(RepoFile(name, 4 * GIB, "") for name in names))
    files = (FileProgress(names[0], 4 * GIB, 4 * GIB), FileProgress(names[1], GIB, 4 * GIB))
    progress = TransferProgress(names[1], 1, 2, "fetching", GIB, 4 * GIB, 5 * GIB, 8 * GIB, 10 * 2.0**20, 317.0, files)
    failure = "The connection to the Hub was lost."
    return (
        Transfer(1, "unsloth/Qwen3-0.6B-GGUF:Q8_0", listing, offer, "done"),
        Transfer(2, "unsloth/Qwen3-8B-GGUF:Q4_K_M", listing, offer, "running", progress),
        Transfer(3, "ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", listing, offer, "failed", None, failure, "Try again."),
    )


def hit(repo: str, downloads: int, params: int, is_gated: bool = False) -> RepoHit:
    return RepoHit(repo, downloads, 10, is_gated, ("Qwen/Qwen3-8B",), "qwen3", params, "2026-01-15T00:00:00Z")


async def browsing() -> Browsing:
    sizes = {"Q2_K": 3.2, "Q4_K_M": 4.7, "Q6_K": 6.3, "Q8_0": 8.1, "F16": 15.3}
    offers = tuple(
        Offer(name, "model", (RepoFile(f"Qwen3-8B-{name}.gguf", int(size * GIB), ""),)) for name, size in sizes.items()
    )
    files = tuple(file for offer in offers for file in offer.files)
    listing = RepoListing(
        "unsloth/Qwen3-8B-GGUF", "main", "c" * 40, files, ("Qwen/Qwen3-8B",), "apache-2.0", False, 120_000
    )
    plan, _ = await planned((gpu(8), host()), wishes_for(draft=False))
    rows = tuple(
        OfferRow(
            offer, "here" if offer.quantisation == "Q2_K" else "", plan if offer.quantisation == "Q4_K_M" else None
        )
        for offer in offers
    )
    hits = (
        hit("unsloth/Qwen3-8B-GGUF", 120_000, 8_190_000_000),
        hit("Qwen/Qwen3-8B-GGUF", 98_000, 8_190_000_000),
        hit("bartowski/Qwen_Qwen3-8B-GGUF", 51_000, 8_190_000_000),
        hit("somebody/Qwen3-8B-behind-terms-GGUF", 900, 8_190_000_000, is_gated=True),
    )
    return Browsing("qwen3 8b", hits, listing, rows)


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_search_of_the_hub(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with models(look, tmp_path, monkeypatch) as (app, pilot):
        await pilot.press("h")
        screen = app.screen
        assert isinstance(screen, HubScreen)
        screen._known = screen.browsing = await browsing()
        screen.query_one(Input).value = "qwen3 8b"
        screen.offers.focus()
        await pilot.press("down")
        await keep_still("hub", look, pilot)


BENCH = Workbench(
    target=ChosenModel("Qwen3-8B-Q4_K_M", TARGET_PATH),
    draft=ChosenModel("Qwen3-0.6B-Q8_0", DRAFT_PATH),
    context=ContextSettings(n_ctx=4096),
    draft_context=ContextSettings(n_ctx=4096),
)


@asynccontextmanager
async def fit(look: Look, folder: Path, bench: Workbench) -> AsyncIterator[Pilot[int]]:
    """Open the memory plan on a machine with one GPU of 8 GiB."""
    card = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 4060", "gpu", "CUDA", 8 * GIB, 8 * GIB)
    async with shown(
        look, lambda: MeasuringEngine(reported=(card,)), folder, Launch(workbench=bench, screen="fit")
    ) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, FitScreen)
        yield pilot


def is_planned(pilot: Pilot[int]) -> Callable[[], bool]:
    screen = pilot.app.screen
    assert isinstance(screen, FitScreen)
    return lambda: not screen.is_measuring and screen.snapshot.drafts is not None


@looks(SMALL, LARGE, quick=SMALL)
async def test_a_plan_that_fits(look: Look, tmp_path: Path) -> None:
    async with fit(look, tmp_path, BENCH) as pilot:
        await keep_still("fit", look, pilot, is_planned(pilot))


@looks(SMALL, LARGE, *TURNED)
async def test_a_plan_that_asks_for_something(look: Look, tmp_path: Path) -> None:
    bench = replace(BENCH, context=ContextSettings(n_ctx=65536), draft_context=ContextSettings(n_ctx=65536))
    async with fit(look, tmp_path, bench) as pilot:
        await keep_still("fit-offers", look, pilot, is_planned(pilot))
