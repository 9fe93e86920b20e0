"""What might draft for a target: from the curated pairs, from this machine, from the Hub. Nothing is judged here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from localspec.catalog.curated import CuratedPair, pairs_for
from localspec.catalog.facts import ModelFacts
from localspec.catalog.families import Family, is_same_line, parse_family
from localspec.catalog.hub.values import Offer, OfferKind, RepoHit, RepoListing
from localspec.catalog.pairing import PairMethod
from localspec.errors import HubError, LocalspecError, OfflineError, UsageError
from localspec.session.hub_access import PATIENCE_S, HubAccess
from localspec.session.hub_hits import best_hits, families_of_hit, model_key, searches

if TYPE_CHECKING:
    from localspec.session.library import ModelEntry

CandidateSource = Literal["curated", "local", "hub", "built in"]

LeftOut = Literal["itself", "unread", "head", "vocabulary", "size"]
"""The target; unreadable and of another name; a head for another target; by the fingerprint; as dear as the target."""

NUM_AT_ONCE = 4
"""Repositories whose headers are fetched side by side."""


@dataclass(frozen=True, slots=True)
class CandidateTarget:
    """The model for which a draft is sought."""

    path: Path
    """Its file, or the sparse file that holds its header."""
    name: str
    """For people, and to tell the family by."""
    repo: str = ""
    """`owner/name` on the Hub, where it comes from there."""
    base_models: tuple[str, ...] = ()
    """As the Hub says; what the file says is added."""
    facts: ModelFacts | None = None
    """Read from its header if they are not given."""


@dataclass(frozen=True, slots=True)
class Nomination:
    """Something that might draft. At most one of path, failure and gap is given."""

    source: CandidateSource
    label: str
    names: tuple[str, ...]
    """All that tells its family: repository, base models, file name."""
    path: Path | None = None
    """Its file, or the sparse file that holds its header."""
    facts: ModelFacts | None = None
    """None: still to be read."""
    download: tuple[RepoListing, Offer] | None = None
    curated: CuratedPair | None = None
    failure: str = ""
    """Why it is none."""
    gap: str = ""
    """Why nothing can be said of it."""


def target_families(target: CandidateTarget, facts: ModelFacts) -> tuple[Family, ...]:
    """Return the families that a target's names tell, the original models' first.

    Sizes that the names do not tell are the header's.
    """
    names = (*target.base_models, *facts.base_models, target.repo, target.name, facts.title)
    families = [family for name in names if (family := parse_family(name)).line]
    # Names are compared with names, as far as they tell sizes: they count parameters in one way.
    active = facts.num_active_params if facts.num_experts else 0
    sized = [
        replace(
            family,
            size_params=family.size_params or facts.num_params,
            active_params=family.active_params or active,
        )
        for family in families
    ]
    return tuple({(family.line, family.version): family for family in reversed(sized)}.values())[::-1]


async def nominate_curated(
    target: CandidateTarget,
    facts: ModelFacts,
    pairs: Sequence[CuratedPair],
    local: Sequence[ModelEntry],
    access: HubAccess | None,
) -> tuple[Nomination, ...]:
    """Return the drafts that the curated list names for a target: local copies where there are any, else the Hub's."""
    nominated: list[Nomination] = []
    for pair in pairs_for(target.repo, (*target.base_models, *facts.base_models), pairs):
        if pair.method == "ngram" or pair.is_inside_target:
            continue
        copies = [entry for entry in local if _is_copy(entry, pair)]
        if copies:
            nominated += [replace(_local(entry), source="curated", curated=pair) for entry in copies]
        else:
            nominated.append(await _curated_remote(pair, pair.method, access))
    return tuple(nominated)


def nominate_local(
    target: CandidateTarget, facts: ModelFacts, families: Sequence[Family], local: Sequence[ModelEntry]
) -> tuple[Nomination, ...]:
    """Return the models on this machine that have the target's vocabulary or family, and heads that may be made for it.

    Models that read as much per token as the target, itself included, are left out: nobody would take them for drafts.
    """
    return tuple(_local(entry) for entry in local if not why_left_out(target, facts, families, entry))


def why_left_out(
    target: CandidateTarget, facts: ModelFacts, families: Sequence[Family], entry: ModelEntry
) -> LeftOut | Literal[""]:
    """Return why a model on this machine is not even looked at as a draft; empty if it is."""
    if entry.found.path == target.path:
        return "itself"
    is_kin = any(is_same_line(one, other) for one in families for other in map(parse_family, _local(entry).names))
    draft = entry.facts
    if draft is None:
        return "" if is_kin else "unread"
    if draft.draft_only is not None:
        return "" if is_kin or draft.target_hidden_size == facts.n_embd > 0 else "head"
    if not is_kin and not draft.vocabulary_fingerprint == facts.vocabulary_fingerprint != "":
        return "vocabulary"
    return "size" if facts.active_bytes and draft.active_bytes >= facts.active_bytes else ""


async def nominate_hub(
    target: CandidateTarget,
    families: Sequence[Family],
    access: HubAccess,
    max_repos: int,
    known: Sequence[Nomination],
    on_done: Callable[[str, float], None],
) -> tuple[Nomination, ...]:
    """Return one offer of each of the most promising repositories with smaller siblings, headers fetched.

    Args:
        known: what is nominated already: the same repositories, and other conversions of the same models, are left out.
        on_done: hears after each repository of it and of the fraction that is done.

    Raises:
        HubError: the search failed.
    """
    hits: dict[str, RepoHit] = {}
    for words in searches(families):
        hits.update({hit.repo: hit for hit in await access.search(words)})
    taken = {target.repo, *(one.curated.draft_repo for one in known if one.curated)}
    models = {model_key(parse_family(name)) for one in known if one.path for name in one.names}
    best = best_hits(families, [hit for repo, hit in hits.items() if repo not in taken])
    repos = [hit.repo for hit in best if models.isdisjoint(map(model_key, families_of_hit(hit)))][:max_repos]
    limit = asyncio.Semaphore(NUM_AT_ONCE)
    num_done = 0

    async def nominate(repo: str) -> Nomination:
        nonlocal num_done
        async with limit:
            nomination = await _remote(repo, access)
        num_done += 1
        on_done(repo, num_done / len(repos))
        return nomination

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(nominate(repo)) for repo in repos]
    return tuple(task.result() for task in tasks)


async def nominate_own_heads(target: CandidateTarget, access: HubAccess) -> tuple[Nomination, ...]:
    """Return the draft-only files that lie beside the target in its repository, headers fetched."""
    from localspec.catalog.hub.offers import offers

    if not target.repo:
        return ()
    listing = await access.listing(target.repo)
    kinds: dict[PairMethod, None] = {}
    for offer in offers(listing):
        if offer.kind != "model":
            kinds[offer.kind] = None
    return tuple([await _remote(target.repo, access, method=kind) for kind in kinds])


def pick_offer(listing: RepoListing, method: PairMethod, pattern: str = "") -> Offer:
    """Return what a repository offers for a method: a usual quantisation of a model, or a head of that kind.

    Raises:
        UsageError: it offers nothing of the kind.
    """
    from localspec.catalog.hub.offers import choose_offer, offers

    if pattern:
        files = tuple(file for file in listing.files if fnmatchcase(file.path, pattern))
        if not files:
            raise UsageError(f"{listing.repo} has no file {pattern}.", "Look at what it has with `localspec show`.")
        listing = replace(listing, files=files)
    kind: OfferKind = "model" if method == "draft" else method
    # A repository of nothing but a head may call its file by the model's name alone.
    is_named = any(offer.kind == kind for offer in offers(listing))
    return choose_offer(listing, "", kind if is_named else None)


def _local(entry: ModelEntry) -> Nomination:
    found = entry.found
    bases = entry.facts.base_models if entry.facts else ()
    title = entry.facts.title if entry.facts else ""
    missing = f"{found.missing[0]} is missing" if found.missing else ""
    return Nomination(
        source="local",
        label=found.name,
        names=(*bases, *filter(None, (found.repo, found.name, title))),
        path=found.path if entry.facts and not missing else None,
        facts=entry.facts,
        failure=missing or ("" if entry.facts else entry.failure or "its header cannot be read"),
    )


def _is_copy(entry: ModelEntry, pair: CuratedPair) -> bool:
    kind = entry.facts.draft_only if entry.facts else None
    if (kind or "draft") != pair.method:
        return False
    repo = entry.found.repo.casefold()
    if repo and repo == pair.draft_repo.casefold():
        return not pair.draft_file or fnmatchcase(entry.found.path.name, pair.draft_file.rpartition("/")[2])
    bases = {name.casefold() for name in (entry.facts.base_models if entry.facts else ())}
    return bool(pair.draft_base) and pair.draft_base.casefold() in bases


async def _curated_remote(pair: CuratedPair, method: PairMethod, access: HubAccess | None) -> Nomination:
    label = pair.draft_repo or pair.draft_base
    names = tuple(filter(None, (pair.draft_base, pair.draft_repo)))
    unread = Nomination("curated", label, names, curated=pair)
    if access is None:
        return replace(unread, gap="it is not on this machine, and the Hub was not asked")
    repo = pair.draft_repo
    try:
        repo = repo or await _conversion_of(pair.draft_base, access)
    except LocalspecError as error:
        return _without_answer(unread, error, access)
    if not repo:
        return replace(unread, failure=f"no GGUF of {pair.draft_base} was found: it has to be converted first")
    nomination = await _remote(repo, access, method=method, pattern=pair.draft_file)
    return replace(nomination, source="curated", names=(*names, *nomination.names), curated=pair)


async def _conversion_of(base: str, access: HubAccess) -> str:
    """Return the repository that is fetched most among the GGUFs made from a model, or nothing."""
    hits = await access.search(base.rpartition("/")[2])
    made = [hit for hit in hits if base.casefold() in (name.casefold() for name in hit.base_models)]
    return max(made, key=lambda hit: hit.downloads).repo if made else ""


async def _remote(repo: str, access: HubAccess, method: PairMethod = "draft", pattern: str = "") -> Nomination:
    nomination = Nomination("hub", repo, (repo,))
    try:
        async with asyncio.timeout(PATIENCE_S):
            listing = await access.listing(repo)
            offer = pick_offer(listing, method, pattern)
            nomination = replace(
                nomination,
                label=f"{repo}:{offer.quantisation}" + ("" if offer.kind == "model" else f" ({offer.kind})"),
                names=(*listing.base_models, repo),
                download=(listing, offer),
            )
            return replace(nomination, path=await access.header(listing, offer))
    except LocalspecError as error:
        return _without_answer(nomination, error, access)
    except TimeoutError:
        slow = HubError(f"its header did not come within {PATIENCE_S:.0f} seconds")
        return _without_answer(nomination, slow, access)


def _without_answer(nomination: Nomination, error: LocalspecError, access: HubAccess) -> Nomination:
    if isinstance(error, OfflineError) and not access.has_answered:
        return replace(nomination, gap="it is not on this machine, and the Hub is out of reach")
    reason = error.message.rstrip(".")
    return replace(nomination, failure=reason)
