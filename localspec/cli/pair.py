"""`localspec pair`: can one model draft for another, and which ones can?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from localspec.catalog.curated import curated_folders, read_curated
from localspec.catalog.facts import ModelFacts
from localspec.catalog.found_model import FoundModel
from localspec.catalog.pairing import PairVerdict
from localspec.cli.errand import run_errand, stepper
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.figures import bytes_text, number_text, percent_text
from localspec.cli.labels import Name, fitting_table
from localspec.cli.screen import DASH, Report, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.text import one_line
from localspec.engine.interface import Engine
from localspec.errors import EngineDiedError, LocalspecError
from localspec.session.arguments import find_local
from localspec.session.candidates import Candidate, find_candidates
from localspec.session.header_questions import ask_verdicts, read_facts
from localspec.session.library import read_library, scan_models
from localspec.session.located import LocatedModel, local_model, locate_on_hub
from localspec.session.ranking import cost_ratio
from localspec.session.records import encode_record
from localspec.settings import Settings, load_settings

SCHEMA = 1

SENTENCES = {
    "PAIR": "a pair",
    "PAIR_WITH_NOTE": "a pair, with a note",
    "NO_PAIR": "no pair",
    "UNKNOWN": "cannot be said",
}


_LEGEND = (
    "Cost: what a draft step reads, in target steps. Pays from: the acceptance rate from which 4 drafted tokens a "
    "round gain, if checking 5 tokens costs as much as one; on a processor it costs more."
)


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """The verdict on two models."""

    target: LocatedModel
    draft: LocatedModel
    target_facts: ModelFacts
    draft_facts: ModelFacts
    verdict: PairVerdict
    cost_ratio: float | None


def run_pair(services: Services, target: str, draft: str | None, is_local: bool, is_json: bool) -> int:
    """Print a verdict or ranked candidates, and return the exit code."""
    settings = load_settings()
    found = find_local(target, settings)
    console = results_console(is_json)
    if draft is None:
        return _list_candidates(services, settings, target, found, is_local, is_json)
    found_draft = find_local(draft, settings)

    async def work(engine: Engine, report: Report) -> PairAnswer:
        one = await locate(services, target, found, report)
        other = await locate(services, draft, found_draft, report)
        return await judge(engine, one, other, report)

    answer = run_errand(services, "looking at the models", work)
    _show_verdict(console, answer)
    if is_json:
        print(encode_record(pair_record(answer)))
    return EXIT_DONE if answer.verdict.status in ("PAIR", "PAIR_WITH_NOTE") else EXIT_FAILED


async def locate(services: Services, argument: str, found: FoundModel | None, report: Report) -> LocatedModel:
    """Return a model by what was found here, or else by asking the Hub."""
    if found is not None:
        return local_model(found)
    async with services.open_hub() as hub:
        return await locate_on_hub(hub, argument, stepper(report))


async def judge(engine: Engine, target: LocatedModel, draft: LocatedModel, report: Report) -> PairAnswer:
    """Return the verdict on two models whose headers are at hand.

    Raises:
        LocalspecError: one of the headers cannot be read.
    """
    report("comparing the two", 0.8, "")
    facts, draft_facts = await read_facts(engine, target.path), await read_facts(engine, draft.path)
    verdict = (await ask_verdicts(engine, target.path, [draft.path]))[draft.path]
    if isinstance(verdict, EngineDiedError):
        raise verdict
    if isinstance(verdict, LocalspecError):
        verdict = PairVerdict("UNKNOWN", verdict.message.removesuffix("."))
    return PairAnswer(target, draft, facts, draft_facts, verdict, cost_ratio(facts, draft_facts))


def _list_candidates(
    services: Services, settings: Settings, argument: str, found: FoundModel | None, is_local: bool, is_json: bool
) -> int:
    console = results_console(is_json)
    notes: list[str] = []

    async def work(engine: Engine, report: Report) -> tuple[LocatedModel, tuple[Candidate, ...]]:
        target = await locate(services, argument, found, report)
        return target, await candidates_for(services, engine, settings, target, is_local, report, notes.append)

    target, candidates = run_errand(services, "looking at the model", work)
    for note in notes:
        say_notice(f"note: {one_line(note)}")
    show_candidates(console, target, candidates)
    if is_json:
        record = {
            "schema": SCHEMA,
            "target": target.label,
            "candidates": [candidate_record(candidate) for candidate in candidates],
            "notes": notes,
        }
        print(encode_record(record))
    return EXIT_DONE


async def candidates_for(
    services: Services,
    engine: Engine,
    settings: Settings,
    target: LocatedModel,
    is_local: bool,
    report: Report,
    on_note: Any,
) -> tuple[Candidate, ...]:
    """Return what may draft for a target: known pairs, models that are here, and the Hub unless only this machine
    counts."""
    step = stepper(report)
    curated = read_curated(curated_folders())
    for failure in curated.failures:
        on_note(f"{failure.message} {failure.hint}")
    report("reading headers", 0.0, "")
    here = await read_library(engine, scan_models(settings).models)
    if is_local:
        return await find_candidates(
            engine, target.as_target(), curated=curated.pairs, local=here, on_progress=step, on_note=on_note
        )
    async with services.open_hub() as hub:
        return await find_candidates(
            engine, target.as_target(), curated=curated.pairs, local=here, hub=hub, on_progress=step, on_note=on_note
        )


def show_candidates(console: Console, target: LocatedModel, candidates: Sequence[Candidate]) -> None:
    """Print ranked candidates, then the refused ones."""
    accepted = [one for one in candidates if not one.refusal]
    refused = [one for one in candidates if one.refusal]
    say(console, one_line(f"What may draft for {target.label}"), style="bold")
    print_table(console, fitting_table(console, partial(_grid, accepted)))
    if any(one.cost_ratio for one in accepted):
        say(console, _LEGEND)
    console.print()
    for rank, one in enumerate(accepted, 1):
        say(console, one_line(f"{rank}. {one.label}: {one.reason}"))
    if refused:
        console.print()
        say(console, "Refused:", style="bold")
    for one in refused:
        say(console, one_line(f"{one.label}: {one.refusal}"), indent=2)


def _grid(accepted: Sequence[Candidate], shown: Name) -> Table:
    grid = table("", "Draft", "Method", "Size", "Cost", "Pays from")
    for index in (1, 2):
        grid.columns[index].justify = "left"
    for rank, one in enumerate(accepted, 1):
        size = bytes_text(one.size_bytes) if one.size_bytes else DASH
        pays = percent_text(one.break_even) if one.break_even is not None and one.method != "ngram" else DASH
        cost = number_text(one.cost_ratio) if one.method != "ngram" else "0"
        here = " (here)" if one.source == "local" else ""
        grid.add_row(str(rank), shown(one.label + here), one.method, size, cost, pays)
    return grid


def _show_verdict(console: Console, answer: PairAnswer) -> None:
    verdict = answer.verdict
    say(console, f"target  {one_line(answer.target.label)}")
    say(console, f"draft   {one_line(answer.draft.label)}")
    say(console, f"verdict {SENTENCES[verdict.status]}", style="bold")
    if verdict.reason:
        say(console, one_line(verdict.reason), indent=2)
    for note in verdict.notes:
        say(console, one_line(f"note: {note}"), indent=2)
    if verdict.status in ("PAIR", "PAIR_WITH_NOTE") and answer.cost_ratio is not None:
        say(console, f"A draft step reads {answer.cost_ratio:.2f} of what a target step reads.", indent=2)


def pair_record(answer: PairAnswer) -> dict[str, Any]:
    """Return the document of `pair TARGET DRAFT --json`."""
    return {
        "schema": SCHEMA,
        "target": answer.target.label,
        "draft": answer.draft.label,
        **verdict_record(answer.verdict),
        "cost_ratio": answer.cost_ratio,
    }


def verdict_record(verdict: PairVerdict) -> dict[str, Any]:
    """Return a verdict as JSON has it."""
    return {
        "verdict": verdict.status,
        "reason": verdict.reason or None,
        "notes": list(verdict.notes),
        "method": verdict.method,
    }


def candidate_record(candidate: Candidate) -> dict[str, Any]:
    """Return a candidate as JSON has it."""
    return {
        "label": candidate.label,
        "source": candidate.source,
        "method": candidate.method,
        "size_bytes": candidate.size_bytes,
        "verdict": None if candidate.verdict is None else verdict_record(candidate.verdict),
        "cost_ratio": candidate.cost_ratio,
        "break_even": candidate.break_even,
        "reason": candidate.reason or None,
        "refusal": candidate.refusal or None,
        "path": None if candidate.path is None else str(candidate.path),
        "facts": None if candidate.facts is None else dataclasses.asdict(candidate.facts),
    }
