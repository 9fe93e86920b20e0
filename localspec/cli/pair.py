"""`localspec pair`: can one model draft for another, and which ones can?"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from localspec.catalog.costs import cost_words, too_dear_words
from localspec.catalog.curated import curated_folders, read_curated
from localspec.catalog.facts import ModelFacts
from localspec.catalog.found_model import FoundModel
from localspec.catalog.pairing import PairVerdict
from localspec.cli.candidate_list import show_candidates
from localspec.cli.errand import run_errand, stepper
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.screen import Report, results_console, say
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.errors import EngineDiedError, LocalspecError, OfflineError
from localspec.session.arguments import choose_local, find_local
from localspec.session.candidates import Candidate, SearchExtent, find_candidates
from localspec.session.header_questions import ask_verdicts, read_facts
from localspec.session.library import local_models, read_library, scan_models
from localspec.session.located import LocatedModel, local_model, locate_on_hub
from localspec.session.plain_text import one_line
from localspec.session.ranking import cost_ratio
from localspec.session.records import encode_record
from localspec.settings import Settings

SCHEMA = 1

SENTENCES = {
    "PAIR": "a pair",
    "PAIR_WITH_NOTE": "a pair, with a note",
    "NO_PAIR": "no pair",
    "UNKNOWN": "cannot be said",
}


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
    settings = settings_in_force()
    found = find_local(target, settings)
    console = results_console(is_json)
    if draft is None:
        return _list_candidates(services, settings, target, found, is_local, is_json)
    found_draft = find_local(draft, settings)
    notes: list[str] = []

    async def work(engine: Engine, report: Report) -> PairAnswer:
        one = await locate(services, settings, target, found, report, notes.append)
        other = await locate(services, settings, draft, found_draft, report, notes.append)
        return await judge(engine, one, other, report)

    answer = run_errand(services, "looking at the models", work)
    for note in notes:
        say_notice(f"note: {one_line(note)}")
    _show_verdict(console, answer)
    if is_json:
        print(encode_record(pair_record(answer)))
    return EXIT_DONE if answer.verdict.status in ("PAIR", "PAIR_WITH_NOTE") else EXIT_FAILED


async def locate(
    services: Services,
    settings: Settings,
    argument: str,
    found: FoundModel | None,
    report: Report,
    on_note: Callable[[str], None],
) -> LocatedModel:
    """Return a model by what was found here, or else by asking the Hub, or by what is here if that is out of reach.

    Raises:
        OfflineError: it is out of reach, and nothing of the repository is here.
    """
    if found is not None:
        return local_model(found)
    here = local_models(settings)
    try:
        async with services.open_hub() as hub:
            return await locate_on_hub(hub, argument, stepper(report), here)
    except OfflineError as error:
        return local_model(choose_offline(argument, here, error, on_note))


def choose_offline(
    argument: str, here: Sequence[FoundModel], error: OfflineError, on_note: Callable[[str], None]
) -> FoundModel:
    """Return what is here of a repository, and say so.

    Raises:
        OfflineError: nothing of it is.
    """
    chosen, names = choose_local(argument, here)
    if chosen is None:
        raise error
    taken = f"; taken is {chosen.name}" if len(names) > 1 else ""
    on_note(f"{error.message.rstrip('.')}. Of {argument} there is {', '.join(names)} on this machine{taken}.")
    return chosen


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
    extents: list[SearchExtent] = []
    if found is None and is_local:
        found, _ = choose_local(argument, local_models(settings))

    async def work(engine: Engine, report: Report) -> tuple[LocatedModel, tuple[Candidate, ...]]:
        target = await locate(services, settings, argument, found, report, notes.append)
        return target, await candidates_for(
            services, engine, settings, target, is_local, report, notes.append, extents.append
        )

    target, candidates = run_errand(services, "looking at the model", work)
    for note in notes:
        say_notice(f"note: {one_line(note)}")
    [extent] = extents
    show_candidates(console, target, candidates, extent)
    if is_json:
        record = {
            "schema": SCHEMA,
            "target": target.label,
            "candidates": [candidate_record(candidate) for candidate in candidates],
            "searched": extent.searched,
            "left_out": dict(extent.left_out),
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
    on_note: Callable[[str], None],
    on_extent: Callable[[SearchExtent], None] = lambda extent: None,
) -> tuple[Candidate, ...]:
    """Return what may draft for a target: known pairs, models that are here, and the Hub unless only this machine
    counts."""
    step = stepper(report)
    curated = read_curated(curated_folders())
    for failure in curated.failures:
        on_note(f"{failure.message} {failure.hint}")
    report("reading headers", 0.0, "")
    here = await read_library(engine, scan_models(settings).models)
    find = partial(
        find_candidates,
        engine,
        target.as_target(),
        curated=curated.pairs,
        local=here,
        on_progress=step,
        on_note=on_note,
        on_extent=on_extent,
    )
    if is_local:
        return await find()
    async with services.open_hub() as hub:
        return await find(hub=hub)


def _show_verdict(console: Console, answer: PairAnswer) -> None:
    verdict, ratio = answer.verdict, answer.cost_ratio
    say(console, f"target  {one_line(answer.target.label)}")
    say(console, f"draft   {one_line(answer.draft.label)}")
    say(console, f"verdict {SENTENCES[verdict.status]}", style="bold")
    if verdict.reason:
        say(console, one_line(verdict.reason), indent=2)
    for note in verdict.notes:
        say(console, one_line(f"note: {note}"), indent=2)
    if verdict.status in ("PAIR", "PAIR_WITH_NOTE") and ratio is not None:
        too_dear = too_dear_words(ratio) if verdict.method == "draft" else ""
        # The verdict's own notes say so already, in the same words.
        is_said = bool(too_dear) and any(note.startswith(too_dear) for note in verdict.notes)
        words = f"{too_dear[0].upper()}{too_dear[1:]}" if too_dear else f"A draft step {cost_words(ratio)}"
        if not is_said:
            say(console, f"{words}.", indent=2)


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
        "notes": candidate.notes or None,
        "other_names": list(candidate.other_names),
        "path": None if candidate.path is None else str(candidate.path),
        "facts": None if candidate.facts is None else dataclasses.asdict(candidate.facts),
    }
