"""`localspec search`: GGUF models on the Hub, with sizes and known drafts."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from localspec.catalog.curated import CuratedPair, curated_folders, pairs_for, read_curated
from localspec.cli.errand import run_errand
from localspec.cli.failures import EXIT_DONE
from localspec.cli.labels import Name, fitting_table
from localspec.cli.screen import DASH, Report, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.engine.interface import Engine
from localspec.errors import LocalspecError
from localspec.session.figures import bytes_span, bytes_text, count_text
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoHit, RepoListing

SCHEMA = 1
NUM_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """A repository that the search found."""

    hit: RepoHit
    listing: RepoListing | None
    offers: tuple[Offer, ...]
    failure: str
    """Why its files are not known."""
    pairs: tuple[CuratedPair, ...]


def run_search(services: Services, words: str, limit: int, is_json: bool) -> int:
    """Ask the Hub, print what it says, and return the exit code."""

    async def work(engine: Engine, report: Report) -> tuple[SearchAnswer, ...]:
        async with services.open_hub() as hub:
            return await search_hub(hub, words, limit, report)

    answers = run_errand(services, "searching the Hub", work)
    console = results_console(is_json)
    _show(console, words, answers)
    if is_json:
        print(encode_record(search_record(words, answers)))
    return EXIT_DONE


async def search_hub(hub: Hub, words: str, limit: int, report: Report) -> tuple[SearchAnswer, ...]:
    """Return what a search finds, with the files of each repository.

    Raises:
        HubError: the search itself failed.
    """
    from localspec.catalog.hub.offers import offers

    report("searching the Hub", 0.0, "")
    hits = await hub.search(words, limit)
    curated = read_curated(curated_folders()).pairs
    free = asyncio.Semaphore(NUM_AT_ONCE)
    num_done = 0

    async def look(hit: RepoHit) -> SearchAnswer:
        nonlocal num_done
        listing, failure = None, ""
        async with free:
            try:
                listing = await hub.listing(hit.repo)
            except LocalspecError as error:
                failure = error.message
        num_done += 1
        report("reading sizes", num_done / len(hits), "")
        base_models = hit.base_models or (listing.base_models if listing is not None else ())
        found = () if listing is None else offers(listing)
        return SearchAnswer(hit, listing, found, failure, pairs_for(hit.repo, base_models, curated))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(look(hit)) for hit in hits]
    return tuple(task.result() for task in tasks)


def search_record(words: str, answers: Sequence[SearchAnswer]) -> dict[str, Any]:
    """Return the document of `search --json`."""
    return {
        "schema": SCHEMA,
        "words": words,
        "repos": [
            {
                **dataclasses.asdict(answer.hit),
                "offers": [offer_record(offer) for offer in answer.offers],
                "pairs": [dataclasses.asdict(pair) for pair in answer.pairs],
                "failure": answer.failure or None,
            }
            for answer in answers
        ],
    }


def offer_record(offer: Offer) -> dict[str, Any]:
    """Return an offer as JSON has it."""
    return {
        "quantisation": offer.quantisation,
        "kind": offer.kind,
        "size_bytes": offer.size_bytes,
        "files": [dataclasses.asdict(file) for file in offer.files],
    }


def size_span(offers: Sequence[Offer]) -> str:
    """Return the known sizes on offer, smallest to greatest."""
    sizes = sorted(offer.size_bytes for offer in offers if offer.kind == "model" and offer.size_bytes)
    if not sizes:
        return DASH
    return bytes_text(sizes[0]) if sizes[0] == sizes[-1] else bytes_span(sizes[0], "to", sizes[-1])


def drafts_text(pairs: Sequence[CuratedPair]) -> str:
    """Return the drafts that are known for a target, in a few words."""
    words = {}
    for pair in pairs:
        if pair.method == "ngram":
            continue
        words[pair.draft_repo or pair.draft_base or f"its own {pair.method} heads"] = pair.method
    shown = [name if method == "draft" else f"{name} ({method})" for name, method in words.items()]
    return ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "")


def _show(console: Console, words: str, answers: Sequence[SearchAnswer]) -> None:
    if not answers:
        say(
            console, one_line(f"The Hub has no GGUF model for {words!r}. Try fewer words, such as a family and a size.")
        )
        return
    print_table(console, _grid(console, answers))
    known = [answer for answer in answers if drafts_text(answer.pairs)]
    if known:
        console.print()
        say(console, "Known drafts:")
    for answer in known:
        say(console, one_line(f"{answer.hit.repo}: {drafts_text(answer.pairs)}"), indent=2)
    console.print()
    say(console, "`localspec show REPOSITORY` lists its quantisations; `localspec pair REPOSITORY` looks for drafts.")


def _grid(console: Console, answers: Sequence[SearchAnswer]) -> Table:
    """Return the table, on a narrow screen with fewer columns, and at the worst with owners on lines of their own."""
    is_sized = any(answer.hit.num_params for answer in answers)
    choices = [("Parameters", "Downloads", "Sizes"), ("Parameters" if is_sized else "Downloads", "Sizes")]
    return fitting_table(console, *(partial(_grid_of, answers, columns) for columns in choices))


def _grid_of(answers: Sequence[SearchAnswer], columns: Sequence[str], shown: Name) -> Table:
    grid = table("Repository", *columns)
    for column in grid.columns[1:]:
        column.no_wrap = True
    for answer in answers:
        repo = answer.hit.repo + (" (gated)" if answer.hit.is_gated else "")
        row = {
            "Parameters": count_text(answer.hit.num_params),
            "Downloads": count_text(answer.hit.downloads),
            "Sizes": "not told" if answer.failure else size_span(answer.offers),
        }
        grid.add_row(shown(repo), *(row[column] for column in columns))
    return grid
