"""`localspec show`: what a model is, from its header, and what its repository offers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from localspec.catalog.curated import CuratedPair, curated_folders, pairs_for, read_curated
from localspec.catalog.facts import ModelFacts
from localspec.cli.advice import command_line
from localspec.cli.errand import run_errand, stepper
from localspec.cli.failures import EXIT_DONE
from localspec.cli.figures import bytes_text
from localspec.cli.models import params_text, remark
from localspec.cli.screen import DASH, Report, print_table, results_console, say, table
from localspec.cli.search import drafts_text, offer_record
from localspec.cli.services import Services
from localspec.cli.text import one_line
from localspec.engine.interface import Engine
from localspec.errors import UsageError
from localspec.session.arguments import find_local
from localspec.session.header_questions import read_facts
from localspec.session.located import LocatedModel, local_model, locate_offer
from localspec.session.records import encode_record
from localspec.settings import load_settings

if TYPE_CHECKING:
    from localspec.catalog.hub.values import Offer, RepoListing

SCHEMA = 1
_MAX_ROWS = 200


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that is told of a model."""

    model: LocatedModel | None
    """None for a repository without a model that could be read."""
    facts: ModelFacts | None
    listing: RepoListing | None
    offers: tuple[Offer, ...]
    pairs: tuple[CuratedPair, ...]


def run_show(services: Services, argument: str, is_remote: bool, is_json: bool) -> int:
    """Read one header, print what it says, and return the exit code."""
    settings = load_settings()
    found = None if is_remote else find_local(argument, settings)

    async def work(engine: Engine, report: Report) -> Description:
        if found is None:
            return await _describe_remote(services, engine, argument, report)
        report("reading the header", 0.0, "")
        facts = await read_facts(engine, found.path)
        curated = read_curated(curated_folders()).pairs
        return Description(local_model(found), facts, None, (), pairs_for(found.repo, facts.base_models, curated))

    description = run_errand(services, "looking at the model", work)
    _show(results_console(is_json), description)
    if is_json:
        print(encode_record(show_record(description)))
    return EXIT_DONE


async def _describe_remote(services: Services, engine: Engine, argument: str, report: Report) -> Description:
    from localspec.catalog.hub.offers import choose_offer, offers
    from localspec.catalog.hub.values import parse_reference

    reference = parse_reference(argument)
    async with services.open_hub() as hub:
        report(f"asking the Hub for {reference.repo}", 0.0, "")
        listing = await hub.listing(reference.repo, reference.revision)
        found = offers(listing)
        if not found and not reference.quantisation:
            others = "".join(f" {note}" for note in left_out(listing))
            raise UsageError(
                f"{listing.repo} has no GGUF model.{others}",
                f"Look for a repository with GGUF files: localspec search {listing.repo.partition('/')[2]}",
            )
        model = await locate_offer(hub, listing, choose_offer(listing, reference.quantisation), stepper(report))
    facts = await read_facts(engine, model.path)
    curated = read_curated(curated_folders()).pairs
    pairs = pairs_for(listing.repo, (*listing.base_models, *facts.base_models), curated)
    return Description(model, facts, listing, found, pairs)


def show_record(description: Description) -> dict[str, Any]:
    """Return the document of `show --json`."""
    model, listing = description.model, description.listing
    found = None if model is None else model.found
    return {
        "schema": SCHEMA,
        "name": None if model is None else model.label,
        "path": None if found is None else str(found.path),
        "is_remote": found is None,
        "repo": None if model is None else model.repo or None,
        "commit": listing.commit if listing is not None else None if found is None else found.commit or None,
        "licence": None if listing is None else listing.licence or None,
        "is_gated": None if listing is None else listing.is_gated,
        "base_models": [] if listing is None else list(listing.base_models),
        "num_unsafe_files": None if listing is None else listing.num_unsafe,
        "num_surplus_files": None if listing is None else listing.num_surplus,
        "facts": None if description.facts is None else dataclasses.asdict(description.facts),
        "offers": [offer_record(offer) for offer in description.offers],
        "pairs": [dataclasses.asdict(pair) for pair in description.pairs],
    }


def _show(console: Console, description: Description) -> None:
    model, listing = description.model, description.listing
    if listing is not None:
        say(console, one_line(f"{listing.repo} on the Hub, commit {listing.commit[:12]}"), style="bold")
        say(console, one_line(_terms(listing)))
        console.print()
        grid = table("Quantisation", "Size", "Files", "Kind")
        grid.columns[3].justify = "left"
        chosen = None if model is None else model.offer
        for offer in description.offers[:_MAX_ROWS]:
            mark = " *" if offer is chosen or offer == chosen else ""
            kind = "model" if offer.kind == "model" else f"{offer.kind} draft only"
            size = bytes_text(offer.size_bytes or None)
            grid.add_row(one_line(offer.quantisation) + mark, size, str(len(offer.files)), kind)
        print_table(console, grid)
        if num_more := len(description.offers[_MAX_ROWS:]):
            say(console, f"{num_more} more, larger ones are not shown; --json lists them all.")
        for note in left_out(listing):
            say(console, note)
        console.print()
    if model is not None and description.facts is not None:
        title = f"{model.label}, from its header" if model.is_remote else model.label
        say(console, one_line(title), style="bold")
        rows = table("Header", "")
        rows.columns[1].justify = "left"
        for name, value in fact_rows(description.facts, model):
            rows.add_row(name, one_line(value))
        print_table(console, rows)
    drafts = drafts_text(description.pairs)
    console.print()
    if drafts:
        say(console, one_line(f"Known drafts: {drafts}."))
    if model is not None and description.facts is not None and description.facts.draft_only is None:
        say(console, f"To look for drafts: {command_line('localspec', 'pair', model.label)}")
        if model.is_remote:
            say(console, f"To fetch it: {command_line('localspec', 'pull', model.label)}")


def left_out(listing: RepoListing) -> list[str]:
    """Return a sentence for each reason for which files of a repository are not offered."""
    notes = []
    if listing.num_unsafe == 1:
        notes.append("1 file has a name that is not used here: it might lead out of a folder, or hide what it says.")
    elif listing.num_unsafe:
        notes.append(
            f"{listing.num_unsafe} files have names that are not used here: they might lead out of a folder, or hide "
            "what they say."
        )
    if listing.num_surplus:
        notes.append(f"{listing.num_surplus} more files were not looked at: the repository has too many.")
    return notes


def _terms(listing: RepoListing) -> str:
    parts = [f"licence: {listing.licence or 'not stated'}"]
    if listing.is_gated:
        parts.append("gated: its terms have to be accepted on its page, and a token is needed")
    if listing.base_models:
        parts.append(f"made from {', '.join(listing.base_models[:3])}")
    return "; ".join(parts)


def fact_rows(facts: ModelFacts, model: LocatedModel) -> list[tuple[str, str]]:
    """Return what a header says, as lines with names."""
    rows = [
        ("title", facts.title or DASH),
        ("architecture", facts.architecture),
        ("parameters", params_text(facts)),
        ("quantisation", facts.quantisation or DASH),
        ("file size", bytes_text(facts.file_bytes)),
        ("read per token", bytes_text(facts.active_bytes)),
        ("trained context", f"{facts.n_ctx_train or DASH} positions"),
        ("layers, width", f"{facts.n_layer}, {facts.n_embd}"),
        ("vocabulary", f"{facts.n_vocab} tokens, fingerprint {facts.vocabulary_fingerprint or DASH}"),
        ("chat template", "yes" if facts.template_fingerprint else "none"),
        ("licence", facts.licence or "not stated in the file"),
    ]
    if facts.num_experts:
        rows.insert(3, ("experts", f"{facts.num_experts_used} of {facts.num_experts} used for a token"))
    if facts.base_models:
        rows.append(("made from", ", ".join(facts.base_models)))
    if remark(facts):
        rows.append(("remarks", remark(facts)))
    if facts.draft_only is not None and facts.target_hidden_size:
        layers = ", ".join(map(str, facts.target_layers))
        rows.append(("made for", f"a target of width {facts.target_hidden_size}, reading its layers {layers}"))
    if model.found is not None:
        rows.append(("file", str(model.found.path)))
        if len(model.found.shards) > 1:
            rows.append(("shards", str(len(model.found.shards))))
    return rows
