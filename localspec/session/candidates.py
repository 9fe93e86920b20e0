"""Which models may draft for a target, ranked, each with the reason of its rank or its refusal.

Nothing but headers is read or fetched.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localspec.catalog.curated import CuratedPair, pairs_for
from localspec.catalog.facts import ModelFacts
from localspec.catalog.families import Family, no_draft_reason, parse_family
from localspec.catalog.hub.values import Offer, RepoListing
from localspec.catalog.pairing import PairMethod, PairVerdict
from localspec.engine.interface import Engine
from localspec.errors import LocalspecError, OfflineError
from localspec.session.header_questions import ask_verdicts, read_facts
from localspec.session.hub_access import FetchHeader, HubAccess
from localspec.session.hub_hits import searches
from localspec.session.nominations import (
    CandidateSource,
    CandidateTarget,
    Nomination,
    nominate_curated,
    nominate_hub,
    nominate_local,
    nominate_own_heads,
    target_families,
)
from localspec.session.ranking import (
    RUNNABLE,
    break_even,
    cost_ratio,
    nearest_relation,
    order_key,
    reason_of,
    refusal_of,
)
from localspec.session.search_extent import SearchExtent, extent_of, without_demo

if TYPE_CHECKING:
    from localspec.catalog.hub.client import Hub
    from localspec.session.library import ModelEntry

__all__ = ["Candidate", "CandidateTarget", "SearchExtent", "find_candidates"]

MAX_REPOS = 8
"""Repositories of the Hub whose headers are fetched for one target."""

OnText = Callable[[str], None]
OnFraction = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may draft for a target, or the reason why it does not. Texts are foreign: no markup."""

    source: CandidateSource
    label: str
    """A local model's name, `OWNER/NAME:QUANT`, or what is built in."""
    method: PairMethod | Literal["ngram"]
    size_bytes: int
    """Of its files; 0 for what is built in or unknown."""
    facts: ModelFacts | None
    verdict: PairVerdict | None
    """None where there is no second file, or where it could not be read."""
    cost_ratio: float | None
    """Bytes that a draft step reads / those of a target step; None if unknown."""
    break_even: float | None
    """Acceptance from which 4 drafted tokens a round pay if checking 5 costs as much as one; None if unknown."""
    reason: str
    """Why it has this rank; empty if it is refused."""
    refusal: str
    """Why it is no candidate; empty if it is one."""
    path: Path | None = None
    """Its first file, if it is on this machine."""
    download: tuple[RepoListing, Offer] | None = None
    """What to fetch, if it is not."""
    notes: str = ""
    """What the curated list says of it, with its source."""
    other_names: tuple[str, ...] = ()
    """Of models on this machine with the same content."""

    @property
    def is_runnable(self) -> bool:
        """Whether it is accepted and the engine can draft by its method."""
        return not self.refusal and self.method in RUNNABLE


async def find_candidates(
    engine: Engine,
    target: CandidateTarget,
    *,
    curated: Sequence[CuratedPair] = (),
    local: Sequence[ModelEntry] = (),
    hub: Hub | None = None,
    max_repos: int = MAX_REPOS,
    fetch: FetchHeader | None = None,
    on_progress: OnFraction = lambda text, fraction: None,
    on_note: OnText = lambda text: None,
    on_extent: Callable[[SearchExtent], None] = lambda extent: None,
) -> tuple[Candidate, ...]:
    """Return the accepted candidates, the most useful first, then what needs no download, then the refused ones.

    Args:
        curated: all pairs that are known, or those of the target.
        local: the models on this machine.
        hub: where to look further; None to stay on this machine.
        max_repos: repositories of the Hub that are looked into at most.
        fetch: gets the header of an offer; None for the Hub's (catalog/hub/remote_header.py).
        on_progress: what is going on, and the fraction that is done.
        on_note: hears what kept part of the search from being done, such as being offline.
        on_extent: hears what was looked at.

    Raises:
        LocalspecError: the target's own header cannot be read.
    """
    on_progress("reading the target's header", 0.0)
    facts = target.facts or await read_facts(engine, target.path)
    families = target_families(target, facts)
    access = None if hub is None else HubAccess(hub, fetch)
    everything, local = local, without_demo(target, local)
    nominations = await _nominate(target, facts, families, curated, local, access, max_repos, on_progress, on_note)
    words = searches(families) if access is not None and access.has_answered else ()
    on_extent(extent_of(target, facts, families, everything, {one.label for one in nominations}, words))
    nominations = await _with_facts(engine, nominations, on_progress)
    on_progress("comparing vocabularies", 0.85)
    paths = list(dict.fromkeys(one.path for one in nominations if one.path is not None and not one.failure))
    verdicts = await ask_verdicts(engine, target.path, paths)
    accepted: list[tuple[tuple[object, ...], Candidate]] = []
    refused: list[Candidate] = []
    for nomination in nominations:
        answer = verdicts.get(nomination.path) if nomination.path else None
        if isinstance(answer, LocalspecError):
            nomination, answer = replace(nomination, failure=answer.message.rstrip(".")), None
        candidate, key = _judge(facts, families, nomination, answer)
        if candidate.refusal:
            refused.append(candidate)
        else:
            accepted.append((key, candidate))
    accepted.sort(key=lambda item: item[0])
    on_progress("ranking", 1.0)
    ranked = _each_content_once([candidate for _, candidate in accepted])
    return (*ranked, *_built_in(target, facts, curated), *_each_content_once(refused))


def _each_content_once(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with those of the same content on this machine as one, under the first one's name."""
    firsts: dict[tuple[object, ...], int] = {}
    kept: list[Candidate] = []
    for one in candidates:
        if one.path is None or one.facts is None:
            kept.append(one)
            continue
        facts = one.facts
        content: object = os.path.realpath(one.path)
        if facts.vocabulary_fingerprint:
            content = (facts.vocabulary_fingerprint, facts.file_bytes, facts.quantisation, facts.num_params)
        status = None if one.verdict is None else one.verdict.status
        first = firsts.setdefault((content, one.method, status, one.refusal), len(kept))
        if first == len(kept):
            kept.append(one)
        else:
            kept[first] = replace(kept[first], other_names=(*kept[first].other_names, one.label))
    return kept


async def _nominate(
    target: CandidateTarget,
    facts: ModelFacts,
    families: Sequence[Family],
    curated: Sequence[CuratedPair],
    local: Sequence[ModelEntry],
    access: HubAccess | None,
    max_repos: int,
    on_progress: OnFraction,
    on_note: OnText,
) -> list[Nomination]:
    """Return what all sources name, each thing once, by the first source that names it."""
    on_progress("looking at the known pairs", 0.05)
    found = [*await nominate_curated(target, facts, curated, local, access)]
    found += nominate_local(target, facts, families, local)
    if access is not None:
        try:
            found += await _nominate_remote(target, families, found, access, max_repos, on_progress, on_note)
        except OfflineError as error:
            extent = "The Hub was not searched to the end" if access.has_answered else "Only this machine was searched"
            on_note(f"{extent}: {error.message}")
        except LocalspecError as error:
            on_note(f"The Hub was not searched to the end: {error.message}")
    return list({(one.path, one.label): one for one in reversed(found)}.values())[::-1]


async def _nominate_remote(
    target: CandidateTarget,
    families: Sequence[Family],
    found: Sequence[Nomination],
    access: HubAccess,
    max_repos: int,
    on_progress: OnFraction,
    on_note: OnText,
) -> list[Nomination]:
    """Return what the Hub has beyond what is found already.

    Raises:
        HubError: the search failed.
    """
    on_progress("searching the Hub", 0.15)
    nominated: list[Nomination] = []
    if target.repo:
        try:
            nominated += await nominate_own_heads(target, access)
        except OfflineError:
            raise
        except LocalspecError as error:
            on_note(f"Whether {target.repo} holds heads for its model could not be seen: {error.message}")
    if not families:
        on_note("The target's names tell no family, so the Hub was not searched for smaller models of it.")
        return nominated
    known = (*found, *nominated)
    num_asked = sum(one.download is not None for one in known)
    nominated += await nominate_hub(
        target,
        families,
        access,
        max(0, max_repos - num_asked),
        known,
        lambda repo, fraction: on_progress(f"reading the header of {repo}", 0.2 + 0.5 * fraction),
    )
    return nominated


async def _with_facts(engine: Engine, nominations: list[Nomination], on_progress: OnFraction) -> list[Nomination]:
    """Read the headers of those whose facts are not known; what cannot be read becomes a failure."""
    complete = []
    for index, one in enumerate(nominations):
        if one.path is not None and one.facts is None:
            on_progress(f"reading the header of {one.label}", 0.7 + 0.15 * index / len(nominations))
            try:
                one = replace(one, facts=await read_facts(engine, one.path))
            except LocalspecError as error:
                one = replace(one, failure=error.message.rstrip("."))
        complete.append(one)
    return complete


def _judge(
    target: ModelFacts, families: Sequence[Family], nomination: Nomination, answer: PairVerdict | None
) -> tuple[Candidate, tuple[object, ...]]:
    """Return a nomination as a candidate, and its place among the accepted ones."""
    curated, draft = nomination.curated, nomination.facts
    kinds = [parse_family(name) for name in nomination.names]
    method = _method(nomination, answer)
    ratio = None if draft is None else cost_ratio(target, draft)
    verdict = answer or PairVerdict("UNKNOWN", nomination.gap, (), method)
    refusal = (
        nomination.failure
        or next((reason for kind in kinds if (reason := no_draft_reason(kind))), "")
        or refusal_of(verdict, ratio, curated is not None)
    )
    kinship = nearest_relation(families, kinds)
    reason = "" if refusal else reason_of(verdict, kinship, ratio, curated, target, draft)
    candidate = Candidate(
        source=nomination.source,
        label=nomination.label,
        method=method,
        size_bytes=nomination.download[1].size_bytes if nomination.download else draft.file_bytes if draft else 0,
        facts=draft,
        verdict=None if nomination.failure else verdict,
        cost_ratio=ratio,
        break_even=break_even(ratio),
        reason=reason,
        refusal=refusal,
        path=None if nomination.download else nomination.path,
        download=nomination.download,
        notes="" if curated is None else f"{curated.notes} ({curated.source})".strip(),
    )
    return candidate, order_key(verdict, kinship, curated is not None, ratio, nomination.label)


def _method(nomination: Nomination, answer: PairVerdict | None) -> PairMethod:
    """Return how it drafts: as its header says, else as the list says."""
    if answer is not None:
        return answer.method
    if nomination.facts is not None:
        return nomination.facts.draft_only or "draft"
    if nomination.curated is not None and nomination.curated.method != "ngram":
        return nomination.curated.method
    return "draft"


def _built_in(target: CandidateTarget, facts: ModelFacts, curated: Sequence[CuratedPair]) -> tuple[Candidate, ...]:
    """Return what drafts without a second file."""
    known = pairs_for(target.repo, (*target.base_models, *facts.base_models), curated)
    found = []
    if facts.num_mtp_layers > 0:
        layers = "one layer" if facts.num_mtp_layers == 1 else f"{facts.num_mtp_layers} layers"
        notes = " ".join(pair.notes for pair in known if pair.is_inside_target)
        support = "" if "mtp" in RUNNABLE else " localspec cannot draft with them yet."
        reason = f"The target's own file holds {layers} for multi-token prediction: nothing to download.{support}"
        label = "the target's own MTP heads"
        found.append(Candidate("built in", label, "mtp", 0, None, None, None, None, reason, "", notes=notes))
    notes = " ".join(pair.notes for pair in known if pair.method == "ngram")
    reason = "Needs no second model and costs next to nothing; it pays where answers repeat their prompt, as in edits."
    label = "n-grams of the text"
    found.append(Candidate("built in", label, "ngram", 0, None, None, 0.0, 0.0, reason, "", notes=notes))
    return tuple(found)
