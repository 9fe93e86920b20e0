"""`localspec show`: what a model is, from its header, and what its repository offers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console

from localspec.catalog.curated import CuratedPair, curated_folders, pairs_for, read_curated
from localspec.catalog.facts import ModelFacts
from localspec.catalog.found_model import FoundModel
from localspec.cli.advice import command_line
from localspec.cli.errand import run_errand, stepper
from localspec.cli.failures import EXIT_DONE, say_notice
from localspec.cli.models import params_text, remark
from localspec.cli.pair import choose_offline
from localspec.cli.screen import DASH, Report, print_table, results_console, say, table
from localspec.cli.search import drafts_text, offer_record
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.errors import OfflineError, UsageError
from localspec.session.arguments import find_local
from localspec.session.figures import bytes_text
from localspec.session.header_questions import read_facts
from localspec.session.library import local_models
from localspec.session.located import LocatedModel, copy_of, local_model, locate_offer
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record

if TYPE_CHECKING:
    from localspec.catalog.hub.values import Offer, RepoListing

SCHEMA = 1
_MAX_ROWS = 200

Presence = Literal["whole", "part", ""]
_PRESENCE: dict[Presence, str] = {"whole": "here", "part": "in part", "": ""}


@dataclass(frozen=True, slots=True)
class Description:
    """Everything that is told of a model."""

    model: LocatedModel | None
    """None for a repository without a model that could be read."""
    facts: ModelFacts | None
    listing: RepoListing | None
    offers: tuple[Offer, ...]
    pairs: tuple[CuratedPair, ...]
    here: tuple[Presence, ...] = ()
    """How much of each offer is on this machine."""
    is_named: bool = True
    """Whether the quantisation was asked for."""


def run_show(services: Services, argument: str, is_remote: bool, is_json: bool) -> int:
    """Read one header, print what it says, and return the exit code."""
    settings = settings_in_force()
    found = None if is_remote else find_local(argument, settings)
    here = local_models(settings)
    notes: list[str] = []

    async def work(engine: Engine, report: Report) -> Description:
        if found is not None:
            return await _describe_local(engine, found, report)
        try:
            return await _describe_remote(services, engine, argument, here, report)
        except OfflineError as error:
            if is_remote:
                raise
            return await _describe_local(engine, choose_offline(argument, here, error, notes.append), report)

    description = run_errand(services, "looking at the model", work)
    for note in notes:
        say_notice(f"note: {one_line(note)}")
    _show(results_console(is_json), description)
    if is_json:
        print(encode_record(show_record(description)))
    return EXIT_DONE


async def _describe_local(engine: Engine, found: FoundModel, report: Report) -> Description:
    report("reading the header", 0.0, "")
    facts = await read_facts(engine, found.path)
    curated = read_curated(curated_folders()).pairs
    return Description(local_model(found), facts, None, (), pairs_for(found.repo, facts.base_models, curated))


async def _describe_remote(
    services: Services, engine: Engine, argument: str, here: Sequence[FoundModel], report: Report
) -> Description:
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
        offer = choose_offer(listing, reference.quantisation)
        model = await locate_offer(hub, listing, offer, stepper(report), here)
    facts = await read_facts(engine, model.path)
    curated = read_curated(curated_folders()).pairs
    pairs = pairs_for(listing.repo, (*listing.base_models, *facts.base_models), curated)
    present = tuple(_presence(listing, offer, here) for offer in found)
    return Description(model, facts, listing, found, pairs, present, bool(reference.quantisation))


def _presence(listing: RepoListing, offer: Offer, here: Sequence[FoundModel]) -> Presence:
    from localspec.session.pulling import missing_bytes

    if copy_of(listing, offer, here) is not None:
        return "whole"
    missing = missing_bytes(listing, offer)
    return "whole" if not missing and offer.size_bytes else "part" if missing < offer.size_bytes else ""


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
        "offers": [
            {**offer_record(offer), "here": present or None}
            for offer, present in zip(description.offers, description.here, strict=True)
        ],
        "pairs": [dataclasses.asdict(pair) for pair in description.pairs],
    }


def _show(console: Console, description: Description) -> None:
    model, listing = description.model, description.listing
    if listing is not None:
        say(console, one_line(f"{listing.repo} on the Hub, commit {listing.commit[:12]}"), style="bold")
        say(console, one_line(_terms(listing)))
        console.print()
        grid = table("Quantisation", "Size", "Files", "Kind", "On this machine")
        grid.columns[3].justify = grid.columns[4].justify = "left"
        chosen = None if model is None else model.offer
        for offer, present in list(zip(description.offers, description.here, strict=True))[:_MAX_ROWS]:
            mark = " *" if offer is chosen or offer == chosen else ""
            kind = "model" if offer.kind == "model" else f"{offer.kind} draft only"
            size = bytes_text(offer.size_bytes or None)
            grid.add_row(one_line(offer.quantisation) + mark, size, str(len(offer.files)), kind, _PRESENCE[present])
        print_table(console, grid)
        if chosen is not None:
            say(console, "* described below" if description.is_named else "* taken if none is named")
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
