"""Choosing target and draft: what is allowed, what is checked first, and what to say of it."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from localspec.engine.values import Method
from localspec.errors import LocalspecError, UsageError
from localspec.methods import needs_draft
from localspec.tui.keyed import keyed
from localspec.tui.model_library import Library
from localspec.tui.state import ChosenModel, Workbench

if TYPE_CHECKING:
    from localspec.catalog.pairing import PairVerdict
    from localspec.engine.interface import Engine
    from localspec.session.candidates import Candidate
    from localspec.session.library import ModelEntry


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a choice makes of the workbench."""

    target: ChosenModel | None
    draft: ChosenModel | None
    method: Method
    words: str
    """What was chosen, and what is to be known of it."""
    is_doubtful: bool = False

    @property
    def is_dear(self) -> bool:
        """Whether the draft was called too dear."""
        return "too dear" in self.words

    def applied_to(self, bench: Workbench) -> Workbench:
        """Return the workbench with the choice made."""
        speculation = replace(bench.speculation, method=self.method)
        return replace(bench, target=self.target, draft=self.draft, speculation=speculation)


Choice = Coroutine[Any, Any, Chosen]
"""Asks the engine, and raises LocalspecError where something cannot be chosen."""


async def choose_target(probe: Engine, bench: Workbench, entry: ModelEntry) -> Chosen:
    """Return the choice of a model as target. A draft that is no pair with it is let go.

    Raises:
        UsageError: it cannot be a target.
        LocalspecError: whether the draft goes with it could not be found out.
    """
    _require_readable(entry)
    facts = entry.facts
    if facts is not None and facts.draft_only is not None:
        raise UsageError(
            f"{entry.found.name} is a {facts.draft_only} head: it cannot run alone.", "Choose a whole model as target."
        )
    target, draft = _chosen(entry), bench.draft
    words = f"Target: {target.name}."
    if draft is None:
        return Chosen(target, None, bench.speculation.method, words)
    if draft.path == target.path:
        return Chosen(target, None, _without_draft(bench), f"{words} It was the draft; there is none now.")
    verdict = await _verdict(probe, target, draft)
    if verdict.status == "NO_PAIR":
        text = f"{words} The draft {draft.name} is let go: {_reason(verdict)}."
        return Chosen(target, None, _without_draft(bench), text, is_doubtful=True)
    return Chosen(target, draft, bench.speculation.method, _with_notes(words, verdict), verdict.status == "UNKNOWN")


async def choose_draft(probe: Engine, bench: Workbench, entry: ModelEntry, is_forced: bool) -> Chosen:
    """Return the choice of a model as draft; the one that is the draft already is let go.

    Raises:
        UsageError: there is no target, or it is no pair with it and nobody insists.
        LocalspecError: whether it is one could not be found out.
    """
    _require_readable(entry)
    target, draft = bench.target, _chosen(entry)
    if bench.draft is not None and bench.draft.path == draft.path:
        return Chosen(target, None, _without_draft(bench), f"{draft.name} is no longer the draft.")
    if target is None:
        raise UsageError(
            "There is no target yet.", keyed("Choose one with {models.target}; a draft is checked against it.")
        )
    words = f"Draft: {draft.name}."
    if is_forced:
        return Chosen(target, draft, "draft", f"{words} Whether it is a pair was not asked.", is_doubtful=True)
    if target.path == draft.path:
        raise UsageError(
            f"{draft.name} is the target.", "A model that drafts for itself gains nothing; choose another."
        )
    verdict = await _verdict(probe, target, draft)
    if verdict.status == "NO_PAIR":
        raise UsageError(
            f"{draft.name} cannot draft for {target.name}: {_reason(verdict)}.",
            keyed("{models.force} chooses it anyway; {models.target} another target."),
        )
    return Chosen(target, draft, "draft", _with_notes(words, verdict), verdict.status == "UNKNOWN")


def choose_candidate(bench: Workbench, entry: ModelEntry, candidate: Candidate, library: Library) -> Chosen:
    """Return the choice of a model as target with one of its candidates, which was checked already.

    Raises:
        UsageError: the candidate was refused, is not here, or cannot be drafted with yet.
    """
    target = _chosen(entry)
    if candidate.refusal:
        is_pair = candidate.verdict is not None and candidate.verdict.status in ("PAIR", "PAIR_WITH_NOTE")
        way = keyed("{models.draft} takes it all the same" if is_pair else "{models.force} forces")
        raise UsageError(f"{candidate.label}: {candidate.refusal.rstrip('.')}.", f"Highlight it in the table; {way}.")
    if candidate.method == "ngram":
        return Chosen(target, None, "ngram", f"Target: {target.name}, with n-gram drafting.")
    if not candidate.is_runnable:
        raise UsageError(f"localspec cannot draft with {candidate.method} heads yet.", "Take another candidate.")
    found = None if candidate.path is None else library.find(candidate.path)
    if found is None:
        raise UsageError(
            f"{candidate.label} is not on this machine.",
            keyed("{models.pairs} searches the Hub, from where it can be fetched."),
        )
    draft = _chosen(found)
    words = f"Target: {target.name}. Draft: {draft.name}."
    verdict = candidate.verdict
    if verdict is None:
        return Chosen(target, draft, "draft", words)
    return Chosen(target, draft, "draft", _with_notes(words, verdict), verdict.status == "UNKNOWN")


def _require_readable(entry: ModelEntry) -> None:
    if entry.failure:
        raise UsageError(f"{entry.found.name} cannot be used: {entry.failure}", entry.hint)
    if entry.facts is None:
        raise UsageError(
            f"The header of {entry.found.name} is not read yet.", keyed("Wait a moment, or press {models.refresh}.")
        )


def _chosen(entry: ModelEntry) -> ChosenModel:
    return ChosenModel(entry.found.name, entry.found.path)


def _without_draft(bench: Workbench) -> Method:
    method = bench.speculation.method
    return "off" if needs_draft((method,)) else method


async def _verdict(probe: Engine, target: ChosenModel, draft: ChosenModel) -> PairVerdict:
    from localspec.session.header_questions import ask_verdicts

    answer = (await ask_verdicts(probe, target.path, [draft.path]))[draft.path]
    if isinstance(answer, LocalspecError):
        raise answer
    return answer


def _reason(verdict: PairVerdict) -> str:
    return verdict.reason.rstrip(".") or "no reason given"


def _with_notes(words: str, verdict: PairVerdict) -> str:
    if verdict.status == "UNKNOWN":
        words += f" Whether it is a pair cannot be said: {_reason(verdict)}."
    # Notes begin with a small letter.
    return "; ".join((words.rstrip("."), *(note.rstrip(".") for note in verdict.notes))) + "."
