"""What a page says in words and small tables: verdicts as they were stored, and what makes them uncertain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from localspec.session.records import Record
from localspec.session.reporting.figures import (
    DASH,
    count,
    milliseconds,
    rate_with_interval,
    share,
    times_with_interval,
)
from localspec.session.reporting.pictures import VERDICT_WORDS, NumberTable
from localspec.session.reporting.reading import clean, items, name, number, objects, part, text
from localspec.session.reporting.series import interval, is_baseline, verdict_of
from localspec.store.run_facts import is_unusable_workload


@dataclass(frozen=True, slots=True)
class Sentence:
    """What was found of one arm."""

    arm: str
    words: str
    tone: str
    """A verdict, or empty."""


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """A workload in the table of several runs."""

    workload: str
    arm: str
    speedup: str
    verdict: str
    tone: str


UNUSABLE_NOTE: Final = (
    "These figures are unusable: the baseline changed by more than a factor of two while they were measured."
)


def without_doubtful_claims(document: Record) -> Record:
    """Return a document in which workloads claim nothing whose baseline changed too much to rely on their figures."""
    workloads = [
        _without_claims(workload) if is_unusable_workload(workload) else workload
        for workload in objects(document, "workloads")
    ]
    return {**document, "workloads": workloads}


def _without_claims(workload: Record) -> Record:
    arms = [
        {**arm, "verdict": "no_clear_difference" if text(arm, "verdict") else None} for arm in objects(workload, "arms")
    ]
    notes = [note for note in items(workload, "notes") if isinstance(note, str)]
    if not any("unusable" in note for note in notes):
        notes.append(UNUSABLE_NOTE)
    return {**workload, "arms": arms, "notes": notes, "is_unusable": True}


def sentences(workload: Record) -> tuple[Sentence, ...]:
    """Return the stored sentences of the arms with drafts, the best first; the summary if the arms have none."""
    arms = sorted((arm for arm in objects(workload, "arms") if not is_baseline(arm)), key=_rank)
    found = tuple(
        Sentence(name(arm, "name"), text(arm, "sentence"), _tone(arm)) for arm in arms if text(arm, "sentence")
    )
    summary = text(workload, "summary")
    return found or ((Sentence("", summary, ""),) if summary else ())


def workload_notes(workload: Record) -> tuple[str, ...]:
    """Return what makes a workload's figures uncertain."""
    notes = [clean(note) for note in items(workload, "notes") if isinstance(note, str)]
    if workload.get("interrupted") is True:
        notes.append("This workload ended early: only the runs that were complete are counted.")
    return tuple(notes)


def run_warnings(document: Record, state: str) -> tuple[str, ...]:
    """Return what a reader must know of a whole run before its figures."""
    found = []
    if state == "lost":
        found.append("The program ended without a word while it measured; this is what it had until then.")
    elif state == "running":
        found.append("This run is still under way, or was when this page was made.")
    elif document.get("interrupted") is True or state == "interrupted":
        found.append("This run was interrupted; this is what it had until then.")
    if failure := text(document, "failure"):
        found.append(f"This run ended early: {failure}")
    if failure := text(document, "draft_failure"):
        found.append(f"The draft model could not be loaded: {failure}")
    throttling = text(document, "device", "throttling")
    if throttling and throttling != "none":
        found.append(f"Heat or power: {throttling}.")
    if text(document, "device", "power_source") == "battery":
        found.append("The machine ran on battery.")
    found += [f"{text(note, 'text')} {text(note, 'advice')}".strip() for note in objects(document, "notes")]
    return tuple(item for item in found if item)


def overview(document: Record) -> tuple[OverviewLine, ...]:
    """Return a line for each workload, with its fastest arm; at least one."""
    lines = []
    for workload in objects(document, "workloads"):
        arms = sorted((arm for arm in objects(workload, "arms") if interval(arm, "speedup")), key=_rank)
        label = name(workload, "name")
        if not arms:
            lines.append(OverviewLine(label, DASH, DASH, "not measured", ""))
            continue
        best = arms[0]
        speedup = times_with_interval(interval(best, "speedup"))
        speedup += ", unusable" if workload.get("is_unusable") is True else ""
        lines.append(OverviewLine(label, name(best, "name"), speedup, _verdict(best), _tone(best)))
    return tuple(lines) or (OverviewLine(DASH, DASH, DASH, "not measured", ""),)


def arm_grid(workload: Record) -> NumberTable:
    """Return the arms of a workload with their main figures, the baseline first."""
    headers = ("arm", "decode tokens per second", "speedup", "acceptance", "tau", "first token", "same text")
    rows = tuple(
        (
            name(arm, "name"),
            rate_with_interval(interval(arm, "decode_tps")),
            times_with_interval(interval(arm, "speedup")),
            share(number(arm, "acceptance_rate")),
            _decimals(number(arm, "mean_accepted_length")),
            milliseconds(number(arm, "ttft_s")),
            _same_text(part(arm, "same_text")),
        )
        for arm in objects(workload, "arms")
    )
    return NumberTable(headers, rows)


def _same_text(answer: Record) -> str:
    if answer.get("identical") is True:
        return "identical"
    place = number(answer, "first_difference")
    if place is None:
        return DASH
    kind = text(answer, "kind")
    return f"differs from token {count(place + 1.0)} on ({kind or 'not examined'})"


def _decimals(found: float | None) -> str:
    return DASH if found is None else f"{found:.2f}"


def _tone(arm: Record) -> str:
    verdict = verdict_of(arm)
    if verdict == "too_little_to_judge":
        return "no_clear_difference"
    return verdict if verdict in VERDICT_WORDS else ""


def _verdict(arm: Record) -> str:
    return VERDICT_WORDS.get(verdict_of(arm), DASH)


def _rank(arm: Record) -> tuple[int, float]:
    order = ("faster", "no_clear_difference", "too_little_to_judge", "slower")
    verdict, found = verdict_of(arm), interval(arm, "speedup")
    return order.index(verdict) if verdict in order else len(order), -(found.median if found is not None else 0.0)
