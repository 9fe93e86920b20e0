"""Orders, sizes and choices of the search for candidates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.families import parse_family
from localspec.catalog.hub.values import RepoFile, RepoListing
from localspec.catalog.pairing import PairStatus, PairVerdict
from localspec.errors import UsageError
from localspec.session.candidates import CandidateTarget
from localspec.session.hub_hits import best_hits
from localspec.session.nominations import pick_offer, target_families
from localspec.session.ranking import order_key
from tests.candidate_kit import facts, hit


def test_a_target_with_few_active_parameters_wants_a_smaller_draft() -> None:
    sparse = replace(
        facts("A title", params=30_000_000_000), num_active_params=3_000_000_000, num_experts=128, num_experts_used=8
    )
    families = target_families(CandidateTarget(Path("x"), "Qwen3-30B"), sparse)
    hits = [hit("o/Qwen3-1.7B-GGUF"), hit("o/Qwen3-0.6B-GGUF"), hit("o/Tuned-GGUF", bases=("Qwen/Qwen3-0.5B",))]
    assert [each.repo for each in best_hits(families, hits)] == ["o/Qwen3-0.6B-GGUF", "o/Tuned-GGUF"]


def test_hits_without_a_size_in_their_names_are_sized_by_the_hub() -> None:
    families = (parse_family("phi-4-14B"),)
    assert best_hits(families, [hit("o/phi-4-mini-GGUF", params=3_800_000_000)]) == ()
    [found] = best_hits(families, [hit("o/phi-4-mini-GGUF", params=3_000_000_000)])
    assert found.repo == "o/phi-4-mini-GGUF"


def test_a_pattern_picks_the_file() -> None:
    files = tuple(RepoFile(name, 1, "") for name in ("big-Q4_K_M.gguf", "small-Q8_0.gguf", "sub/eagle3-x.gguf"))
    listing = RepoListing("o/r", "main", "c" * 40, files, (), "", False, 0)
    assert pick_offer(listing, "draft", "small*").files[0].path == "small-Q8_0.gguf"
    assert pick_offer(listing, "eagle3").files[0].path == "sub/eagle3-x.gguf"
    with pytest.raises(UsageError, match=r"o/r has no file nothing\*"):
        pick_offer(listing, "draft", "nothing*")


STATUSES: list[PairStatus] = ["PAIR", "PAIR_WITH_NOTE", "UNKNOWN"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(STATUSES), st.integers(0, 3), st.booleans(), st.none() | st.floats(0.001, 0.25), st.text()
        ),
        min_size=2,
    )
)
def test_the_order_never_puts_doubt_before_certainty(
    items: list[tuple[PairStatus, int, bool, float | None, str]],
) -> None:
    ordered = sorted(items, key=lambda item: order_key(PairVerdict(item[0], ""), item[1], item[2], item[3], item[4]))
    places = [STATUSES.index(item[0]) for item in ordered]
    assert places == sorted(places)
