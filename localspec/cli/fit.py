"""`localspec fit`: does a model fit into memory, with its draft and their contexts, here or on a machine described?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localspec.cli.errand import run_errand
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.fit_options import FitChoice
from localspec.cli.fit_report import show_plan
from localspec.cli.screen import Report, results_console
from localspec.cli.services import Services
from localspec.cli.workplace import AUTO, Workplace, open_workplace
from localspec.engine.interface import Engine
from localspec.planning.plan import MemoryPlan, TradeOffer, Wishes
from localspec.session.fit import Changes, FitRequest, changes, fit, plan_record
from localspec.session.library import local_models
from localspec.session.located import LocatedModel
from localspec.session.plain_text import one_line
from localspec.session.quantisations import quantisation_labels, smaller_quantisations
from localspec.session.records import encode_record

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """A plan, and what it is for."""

    target: LocatedModel
    draft: LocatedModel | None
    wishes: Wishes
    plan: MemoryPlan
    commands: tuple[str, ...]
    """For each offer the command that takes it."""


def run_fit(services: Services, choice: FitChoice, is_json: bool) -> int:
    """Print the plan, and return the exit code: 0 if it fits, if need be with less, and 1 if it does not."""
    place = open_workplace(services, choice)

    async def work(engine: Engine, report: Report) -> FitAnswer:
        return await _answer(place, engine, report)

    answer = run_errand(services, "looking at the models", work)
    for note in place.notes:
        say_notice(f"note: {one_line(note)}")
    labels = (answer.target.label, None if answer.draft is None else answer.draft.label)
    show_plan(results_console(is_json), answer.plan, labels, answer.wishes, answer.commands)
    if is_json:
        print(encode_record(fit_record(answer, place.notes)))
    return EXIT_DONE if answer.plan.fits else EXIT_FAILED


async def _answer(place: Workplace, engine: Engine, report: Report) -> FitAnswer:
    target = await place.target(report)
    draft = await place.draft(engine, target, report)
    report("measuring", 0.8, "")
    wishes = place.wishes(draft is not None)
    labels: Mapping[str, tuple[str, int]] = {}
    if draft is not None:
        labels = quantisation_labels(draft, local_models(place.settings))
    smaller = () if draft is None else smaller_quantisations(labels, draft)
    devices = await place.devices(engine)
    async with place.probe(engine) as probe:
        plan = await fit(probe, FitRequest(target, draft, wishes, devices, smaller))
    typed = place.choice.draft
    if typed == AUTO:
        typed = None if draft is None else draft.label
    commands = tuple(
        place.choice.command(typed, changes(wishes, offer.wishes) | _other_draft(offer, labels))
        for offer in plan.offers
    )
    return FitAnswer(target, draft, wishes, plan, commands)


def _other_draft(offer: TradeOffer, labels: Mapping[str, tuple[str, int]]) -> Changes:
    """Return the option that names another file of the draft, where that is what is offered."""
    if offer.code != "smaller_draft":
        return {}
    meant = (label for name, (label, _) in labels.items() if offer.text.startswith(f"The draft as {name}:"))
    label = next(meant, None)
    return {} if label is None else {"--draft": label}


def fit_record(answer: FitAnswer, notes: Sequence[str]) -> dict[str, Any]:
    """Return the document of `fit --json`."""
    record = plan_record(answer.plan, answer.commands)
    return {
        "schema": SCHEMA,
        "target": answer.target.label,
        "draft": None if answer.draft is None else answer.draft.label,
        **record,
        "notes": [*notes, *record["notes"]],
    }
