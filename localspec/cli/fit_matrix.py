"""`localspec fit --matrix`: which quantisations fit with which contexts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from localspec.cli.errand import run_errand, stepper
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.fit_options import FitChoice
from localspec.cli.screen import Report, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.workplace import Workplace, open_workplace
from localspec.engine.interface import Engine
from localspec.planning.devices import PlanDevice
from localspec.planning.wording import device_title
from localspec.session.figures import bytes_text, context_text
from localspec.session.fit import device_record
from localspec.session.header_questions import read_facts
from localspec.session.library import local_models
from localspec.session.located import LocatedModel, locate_offer
from localspec.session.matrix import MAX_MODELS, MatrixModel, MatrixRow, OpenModel, contexts_up_to, fit_matrix
from localspec.session.plain_text import one_line
from localspec.session.quantisations import local_quantisations
from localspec.session.records import encode_record

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.catalog.hub.values import Offer, RepoListing

SCHEMA = 1

_LEGEND = (
    "fits: whole on the GPU, or in host memory where there is no GPU. partial: with some layers in host memory. "
    "-: not at all."
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """The table with its headings."""

    target: LocatedModel
    draft: LocatedModel | None
    devices: tuple[PlanDevice, ...]
    contexts: tuple[int, ...]
    rows: tuple[MatrixRow, ...]


def run_matrix(services: Services, choice: FitChoice, is_json: bool) -> int:
    """Print the table, and return the exit code: 0 if anything in it fits."""
    place = open_workplace(services, choice)

    async def work(engine: Engine, report: Report) -> Matrix:
        return await _matrix(place, engine, report)

    matrix = run_errand(services, "looking at the model", work)
    for note in place.notes:
        say_notice(f"note: {one_line(note)}")
    _show(results_console(is_json), matrix)
    if is_json:
        print(encode_record(matrix_record(matrix, place.notes)))
    fits = any(cell in ("fits", "partial") for row in matrix.rows for cell in row.cells)
    return EXIT_DONE if fits else EXIT_FAILED


async def _matrix(place: Workplace, engine: Engine, report: Report) -> Matrix:
    target = await place.target(report)
    draft = await place.draft(engine, target, report)
    facts = await read_facts(engine, target.path)
    contexts = contexts_up_to(facts.n_ctx_train)
    devices = await place.devices(engine)
    async with _models(place, target, report) as models, place.probe(engine) as probe:
        if len(models) > MAX_MODELS:
            left_out = ", ".join(model.label for model in models[MAX_MODELS:])
            place.notes.append(f"Only the {MAX_MODELS} smallest are looked at, not {left_out}.")
        rows = await fit_matrix(
            probe,
            devices,
            models[:MAX_MODELS],
            None if draft is None else draft.path,
            place.wishes(draft is not None),
            contexts,
            stepper(report),
        )
    return Matrix(target, draft, devices, contexts, rows)


@asynccontextmanager
async def _models(place: Workplace, target: LocatedModel, report: Report) -> AsyncIterator[list[MatrixModel]]:
    """Give the quantisations on offer, the smallest first; headers on the Hub are fetched when they are asked for."""
    listing = target.listing
    if listing is None:
        found = [] if target.found is None else local_quantisations(target.found, local_models(place.settings))
        yield [
            MatrixModel(model.quantisation or model.name, model.file_bytes, _here(model.path)) for model in found
        ] or [MatrixModel(target.label, 0, _here(target.path))]
        return
    from localspec.catalog.hub.offers import offers

    async with place.services.open_hub() as hub:
        yield [
            MatrixModel(offer.quantisation, offer.size_bytes, _there(hub, listing, offer, report))
            for offer in offers(listing)
            if offer.kind == "model"
        ]


def _here(path: Path) -> OpenModel:
    async def opened() -> Path:
        return path

    return opened


def _there(hub: Hub, listing: RepoListing, offer: Offer, report: Report) -> OpenModel:
    async def opened() -> Path:
        return (await locate_offer(hub, listing, offer, lambda text, fraction: report(text, 0.5, ""))).path

    return opened


def matrix_record(matrix: Matrix, notes: Sequence[str]) -> dict[str, Any]:
    """Return the document of `fit --matrix --json`."""
    return {
        "schema": SCHEMA,
        "target": matrix.target.label,
        "draft": None if matrix.draft is None else matrix.draft.label,
        "devices": [device_record(device) for device in matrix.devices],
        "contexts": list(matrix.contexts),
        "matrix": [asdict(row) for row in matrix.rows],
        "notes": list(notes),
    }


def _show(console: Console, matrix: Matrix) -> None:
    draft = "" if matrix.draft is None else f" with draft {matrix.draft.label}"
    say(console, one_line(f"What fits: {matrix.target.repo or matrix.target.label}{draft}"), style="bold")
    for device in matrix.devices:
        name = "host memory" if device.kind == "host" else device_title(device, matrix.devices)
        what_if = ", hypothetical" if device.is_hypothetical else ""
        say(console, one_line(f"{name}{what_if}: {bytes_text(device.budget_bytes)} for models"))
    console.print()
    grid = table("Quantisation", "Size", *map(context_text, matrix.contexts))
    for row in matrix.rows:
        grid.add_row(one_line(row.label), bytes_text(row.size_bytes or None), *row.cells)
    print_table(console, grid)
    say(console, _LEGEND)
    for row in matrix.rows:
        if row.failure:
            say(console, one_line(f"{row.label}: {row.failure}"))
