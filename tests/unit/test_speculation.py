"""Counts and ratios against rounds counted by hand, and what must hold for any rounds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.events import EmittedToken, RoundFinished
from localspec.engine.values import DraftStop
from localspec.metrics.speculation import NOBODY, SpeculationStats, fold_rounds, sum_stats


def make_round(
    index: int,
    num_drafted: int = 0,
    num_accepted: int = 0,
    num_cut: int = 0,
    num_discarded: int = 0,
    drafter: str = "draft",
    stop: DraftStop = "n_max",
    total_s: float = 0.1,
) -> RoundFinished:
    emitted = tuple(EmittedToken(token, "x", "bonus") for token in range(num_accepted + 1 - num_cut))
    return RoundFinished(
        id=1,
        index=index,
        drafter=drafter,
        drafted=tuple(range(num_drafted)),
        num_accepted=num_accepted,
        num_discarded=num_discarded,
        emitted=emitted,
        num_cut=num_cut,
        draft_stop=stop,
        draft_s=0.02,
        verify_s=0.05,
        sample_s=0.01,
        total_s=total_s,
        at_s=0.0,
        n_past=0,
    )


HAND_COUNTED = (
    make_round(0, stop="off"),
    make_round(1, 5, 2),
    make_round(2, 3, 3),
    make_round(3, 0, 0, num_discarded=1, stop="n_min"),
    make_round(4, 4, 0, stop="p_min"),
    make_round(5, 4, 2, num_cut=1),
)


def test_hand_counted_rounds() -> None:
    stats = fold_rounds(HAND_COUNTED)
    assert stats.num_target_passes == 6
    assert stats.num_rounds == 4
    assert stats.num_draft_tokens == 16
    assert stats.num_accepted_tokens == 7
    assert (stats.num_cut, stats.num_discarded) == (1, 1)
    assert stats.num_tokens == 1 + 3 + 4 + 1 + 1 + 2 == 6 + 7 - 1
    assert stats.is_consistent
    assert stats.acceptance_rate == 7 / 16
    assert stats.mean_accepted_length == 1 + 7 / 4
    assert stats.mean_drafted_length == 4.0
    assert stats.target_passes_saved == 6
    assert stats.accepted_lengths == (1, 0, 2, 1)
    assert stats.draft_stops == {"off": 1, "n_max": 3, "n_min": 1, "p_min": 1}


def test_five_drafted_mismatch_at_the_third() -> None:
    stats = fold_rounds([make_round(1, 5, 2)])
    assert (stats.num_draft_tokens, stats.num_accepted_tokens, stats.num_tokens) == (5, 2, 3)


def test_positions_unconditional_and_conditional() -> None:
    stats = fold_rounds(HAND_COUNTED)
    assert stats.acceptance_by_position == (3 / 4, 3 / 4, 1 / 4)
    assert stats.drafted_at == (4, 4, 4, 3, 1)
    # Position 0 was tried in all four rounds, 1 in the three that kept 0; the round that was cut after its second
    # token says nothing of its third; nobody got as far as position 3, since the draft of three ended there.
    assert stats.conditional_acceptance_by_position == (3 / 4, 1.0, 1 / 2)
    assert stats.mean_accepted_length == pytest.approx(1 + sum(stats.acceptance_by_position))


def test_ratios_without_drafts_are_none_and_not_zero() -> None:
    stats = fold_rounds([make_round(0, drafter="", stop="off"), make_round(1, drafter="", stop="off")])
    assert stats.acceptance_rate is None
    assert stats.mean_accepted_length is None
    assert stats.acceptance_by_position == ()
    assert stats.conditional_acceptance_by_position == ()
    assert stats.by_drafter == {}
    assert SpeculationStats().tokens_per_target_pass is None


def test_own_time_is_what_models_and_sampler_did_not_use() -> None:
    stats = fold_rounds([make_round(0), make_round(1, 4, 4)])
    assert stats.own_s == pytest.approx(2 * (0.1 - 0.02 - 0.05 - 0.01))
    assert stats.drafting_s == pytest.approx(0.1)
    assert fold_rounds([make_round(1, total_s=0.0)]).own_s == 0.0


def test_split_by_drafter() -> None:
    stats = fold_rounds([make_round(1, 4, 1, drafter="ngram"), make_round(2, 2, 2), make_round(3, 4, 0)])
    assert stats.by_drafter["ngram"].acceptance_rate == 1 / 4
    assert (stats.by_drafter["draft"].num_rounds, stats.by_drafter["draft"].num_accepted_tokens) == (2, 2)


def test_rounds_in_which_nobody_spoke_are_nobodys() -> None:
    stats = fold_rounds([make_round(1, 4, 1, drafter="suffix"), make_round(2, 0, 0, drafter="suffix + draft")])
    assert set(stats.by_drafter) == {"suffix", NOBODY}
    assert stats.by_drafter[NOBODY].num_rounds == 0 and stats.by_drafter[NOBODY].draft_s > 0.0


@st.composite
def any_rounds(draw: st.DrawFn) -> list[RoundFinished]:
    rounds = []
    for index in range(draw(st.integers(0, 12))):
        num_drafted = draw(st.integers(0, 8)) if index else 0
        num_accepted = draw(st.integers(0, num_drafted))
        num_cut = draw(st.integers(0, 1)) if num_accepted else 0
        drafter = draw(st.sampled_from(["draft", "ngram"]))
        rounds.append(make_round(index, num_drafted, num_accepted, num_cut, drafter=drafter))
    return rounds


@given(any_rounds())
def test_identity_and_bounds(rounds: list[RoundFinished]) -> None:
    stats = fold_rounds(rounds)
    assert stats.is_consistent
    assert stats.num_tokens == sum(len(round_.emitted) for round_ in rounds)
    tau = stats.mean_accepted_length
    if tau is not None:
        assert 1.0 <= tau <= 1.0 + max(len(round_.drafted) for round_ in rounds)
        assert tau == pytest.approx(1 + sum(stats.acceptance_by_position))
    assert sum(stats.accepted_lengths) == stats.num_rounds
    assert sum(length * count for length, count in enumerate(stats.accepted_lengths)) == stats.num_accepted_tokens
    assert sum(stats.drafted_at) == stats.num_draft_tokens
    assert all(rate is None or 0.0 <= rate <= 1.0 for rate in stats.conditional_acceptance_by_position)
    by_position = stats.acceptance_by_position
    assert all(later <= earlier for earlier, later in pairwise(by_position))


@given(any_rounds(), any_rounds())
def test_sum_of_parts_is_the_fold_of_all(left: list[RoundFinished], right: list[RoundFinished]) -> None:
    total, whole = sum_stats([fold_rounds(left), fold_rounds(right)]), fold_rounds([*left, *right])
    assert total.total_s == pytest.approx(whole.total_s)
    counts = (
        "num_tokens",
        "num_rounds",
        "num_accepted_tokens",
        "accepted_at",
        "reached_at",
        "accepted_lengths",
        "draft_stops",
    )
    assert [getattr(total, name) for name in counts] == [getattr(whole, name) for name in counts]
    assert {name: share.num_rounds for name, share in total.by_drafter.items()} == {
        name: share.num_rounds for name, share in whole.by_drafter.items()
    }
