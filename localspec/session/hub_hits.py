"""Which answers of a search on the Hub may be smaller siblings of a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from localspec.catalog.facts import DraftKind
from localspec.catalog.families import Family, is_sibling, no_draft_reason, parse_family, search_words
from localspec.catalog.hub.values import RepoHit
from localspec.session.ranking import relation

NUM_SEARCHES = 3
HEAD_KINDS = frozenset(get_args(DraftKind))


def searches(families: Sequence[Family]) -> tuple[str, ...]:
    """Return the words to search for, those of each family first and wider ones after them."""
    words = [search_words(family) for family in families]
    narrow = [found[0] for found in words if found]
    wide = [word for found in words for word in found[1:]]
    return tuple(dict.fromkeys((*narrow, *wide)))[:NUM_SEARCHES]


def best_hits(families: Sequence[Family], hits: Sequence[RepoHit]) -> tuple[RepoHit, ...]:
    """Return the hits that may be smaller siblings, the nearest kin first, one repository for each model.

    Of several conversions of one model the one that is fetched most is taken.
    """
    best: dict[tuple[object, ...], tuple[tuple[int, ...], RepoHit]] = {}
    for hit in hits:
        own = parse_family(hit.repo)
        # Embedding models and heads name a text model as their base.
        if no_draft_reason(own) or HEAD_KINDS.intersection(own.variant):
            continue
        family = next(
            (one for one in families_of_hit(hit) if any(is_sibling(target, one) for target in families)), None
        )
        if family is None:
            continue
        nearness = min(relation(target, family) for target in families)
        rank = (nearness, int(not family.size_params), -hit.downloads)
        key = model_key(family)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, hit)
    ordered = sorted(best.values(), key=lambda item: (item[0], item[1].repo))
    return tuple(dict.fromkeys(hit for _, hit in ordered))


def families_of_hit(hit: RepoHit) -> tuple[Family, ...]:
    """Return what the names of a hit tell, its own first, sized by the Hub if it tells no size."""
    own = parse_family(hit.repo)
    return replace(own, size_params=own.size_params or hit.num_params), *map(parse_family, hit.base_models)


def model_key(family: Family) -> tuple[object, ...]:
    """Return what conversions of one model have in common."""
    return family.line, family.version, family.size_params, family.variant
