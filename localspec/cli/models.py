"""`localspec models`: what is on this machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from localspec.catalog.facts import ModelFacts
from localspec.catalog.hub.partials import Partial, list_partials
from localspec.catalog.places import PlaceKind, hugging_face_folder, suggest_places
from localspec.cli.errand import run_errand
from localspec.cli.failures import EXIT_DONE
from localspec.cli.labels import Name, fitting_table, name_in_table
from localspec.cli.screen import DASH, Report, fits, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.session.figures import bytes_text, context_text, count_text
from localspec.session.library import ModelEntry, read_library, scan_models
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record
from localspec.settings import Settings

SCHEMA = 1

WHERE: dict[PlaceKind, str] = {
    "localspec": "own",
    "demo": "demo",
    "hugging face": "hub",
    "lm studio": "LM Studio",
    "ollama": "Ollama",
    "folder": "folder",
}
"""Places in a column."""


def run_models(services: Services, is_json: bool) -> int:
    """Read all headers, print the list, and return the exit code."""
    settings = settings_in_force()
    scan = scan_models(settings)

    async def work(engine: Engine, report: Report) -> tuple[ModelEntry, ...]:
        def on_read(index: int, count: int, name: str) -> None:
            report("reading headers", index / count, f"{index + 1} of {count}: {one_line(name)[:40]}")

        return await read_library(engine, scan.models, on_read)

    entries = run_errand(services, "looking for models", work)
    partials = list_partials(hugging_face_folder())
    console = results_console(is_json)
    _show(console, entries, partials)
    for note in scan.notes:
        say(console, f"note: {one_line(note)}")
    _suggest(console, settings)
    if is_json:
        print(encode_record(models_record(entries, partials, scan.notes)))
    return EXIT_DONE


def models_record(entries: Sequence[ModelEntry], partials: Sequence[Partial], notes: Sequence[str]) -> dict[str, Any]:
    """Return the document of `models --json`."""
    return {
        "schema": SCHEMA,
        "models": [entry_record(entry) for entry in entries],
        "partials": [
            {
                "repo": partial.repo,
                "path": partial.path or None,
                "file": str(partial.file),
                "have_bytes": partial.have_bytes,
                "size_bytes": partial.size_bytes,
                "is_resumable": partial.is_ours,
            }
            for partial in partials
        ],
        "notes": list(notes),
    }


def entry_record(entry: ModelEntry) -> dict[str, Any]:
    """Return a model as JSON has it."""
    found = entry.found
    return {
        "name": found.name,
        "path": str(found.path),
        "shards": [str(path) for path in found.shards],
        "missing": list(found.missing),
        "place": found.place,
        "repo": found.repo or None,
        "commit": found.commit or None,
        "file_bytes": found.file_bytes,
        "facts": None if entry.facts is None else dataclasses.asdict(entry.facts),
        "failure": entry.failure or None,
        "hint": entry.hint or None,
    }


def remark(facts: ModelFacts) -> str:
    """Return what is unusual about a model, in a few words."""
    parts = []
    if facts.draft_only is not None:
        parts.append(f"{facts.draft_only} draft only")
    if facts.num_mtp_layers and facts.draft_only is None:
        parts.append(f"{facts.num_mtp_layers} MTP layer{'s' if facts.num_mtp_layers > 1 else ''}")
    if not facts.template_fingerprint and facts.draft_only is None:
        parts.append("no chat template")
    return ", ".join(parts)


def params_text(facts: ModelFacts) -> str:
    """Return the number of parameters, with the active ones where they are fewer."""
    total, active = count_text(facts.num_params), count_text(facts.num_active_params)
    is_sparse = facts.num_experts > 0 and 0 < facts.num_active_params < facts.num_params
    return f"{total} ({active} active)" if is_sparse else total


def _show(console: Console, entries: Sequence[ModelEntry], partials: Sequence[Partial]) -> None:
    if entries:
        print_table(console, fitting_grid(console, entries))
    else:
        say(
            console,
            "There are no models here yet. `localspec search WORDS` finds some on the Hub, `localspec demo` brings a "
            "small one, and folders of your own go into settings.toml: [models] folders = [...].",
        )
    failed = [entry for entry in entries if entry.facts is None]
    if failed:
        console.print()
    for entry in failed:
        say(console, one_line(f"{entry.found.name}: {entry.failure}"))
        if entry.hint:
            say(console, one_line(entry.hint), indent=2)
    if partials:
        size = sum(partial.have_bytes for partial in partials)
        console.print()
        say(console, f"{_counted(len(partials), 'download')} broken off, {bytes_text(size)}:")
        for partial in partials:
            say(console, partial_line(partial), indent=2)
        say(console, "`localspec pull` goes on with them, `localspec remove --partial` removes them.")


def partial_line(partial: Partial) -> str:
    """Return what is left of a download, in one line."""
    whole = "" if partial.size_bytes is None else f" of {bytes_text(partial.size_bytes)}"
    kind = "" if partial.is_ours else " (left by huggingface_hub, of no more use)"
    return one_line(
        f"{partial.repo} {partial.path or partial.file.name}: {bytes_text(partial.have_bytes)}{whole}{kind}"
    )


def fitting_grid(console: Console, entries: Sequence[ModelEntry]) -> Table:
    """Return the table with as many columns as fit, and at the worst with owners on lines of their own."""
    columns = ["Name", "Parameters", "Quantisation", "Size", "Context", "Where"]
    choices = [
        ["Name", "Architecture", *columns[1:-1], "Vocabulary", "Where", "Remarks"],
        columns,
        ["Name", "Params", "Quantisation", "Size", "Where"],
    ]
    if not console.is_terminal:
        # For other programs to search: a line may be long, but no name is broken.
        whole = [_grid(entries, choice, name_in_table) for choice in choices]
        grid = next((grid for grid in whole if fits(console, grid)), whole[-1])
        console.width = max(console.width, Measurement.get(console, console.options.update(width=10_000), grid).maximum)
        return grid
    return fitting_table(console, *(partial(_grid, entries, choice) for choice in choices))


def _quantisation(entry: ModelEntry) -> str:
    return (entry.facts.quantisation if entry.facts else entry.found.quantisation) or DASH


def _grid(entries: Sequence[ModelEntry], columns: Sequence[str], shown: Name) -> Table:
    grid = table(*columns)
    for index, column in enumerate(grid.columns):
        if columns[index] in ("Architecture", "Quantisation", "Vocabulary", "Where", "Remarks"):
            column.justify = "left"
        column.no_wrap = index > 0
    for entry in entries:
        facts, found = entry.facts, entry.found
        row = {
            "Name": found.name,
            "Architecture": facts.architecture if facts else DASH,
            "Parameters": params_text(facts) if facts else DASH,
            "Params": params_text(facts) if facts else DASH,
            "Quantisation": _quantisation(entry),
            "Size": bytes_text(found.file_bytes),
            "Context": context_text(facts.n_ctx_train) if facts else DASH,
            "Vocabulary": _vocabulary(facts),
            "Where": WHERE[found.place],
            "Remarks": remark(facts) if facts else "cannot be read" if not found.missing else "incomplete",
        }
        grid.add_row(shown(row["Name"]), *(one_line(row[column]) for column in columns if column != "Name"))
    return grid


def _vocabulary(facts: ModelFacts | None) -> str:
    if facts is None or not facts.n_vocab:
        return DASH
    return f"{facts.n_vocab} {facts.vocabulary_fingerprint[:4]}"


def _suggest(console: Console, settings: Settings) -> None:
    for place in suggest_places(settings.models):
        say(console, one_line(f"{WHERE[place.kind]} keeps models in {place.folder}."))
        say(console, "To list them too, add that folder to settings.toml: [models] folders = [...].", indent=2)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
