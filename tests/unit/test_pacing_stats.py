from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.metrics.latency import LatencyFold
from localspec.metrics.pacing import PacingStats
from localspec.metrics.speculation import NOBODY, fold_rounds
from localspec.session.drafting_lines import chosen_lengths, drafting_lines
from localspec.session.kept_trials import trial_of
from localspec.session.trial import Trial
from localspec.session.trial_record import drafters_record, pacing_record, trial_record
from tests.made_up_rounds import a_round, beliefs

ROUNDS = (
    a_round(0),
    a_round(1, 4, 2, "suffix", beliefs(expected_tokens=2.0)),
    a_round(2, 1, 1, "draft X", beliefs("draft X", 1, is_exploring=True)),
    a_round(3, 0, 0, "suffix + draft X", beliefs("draft X", 0, is_resting=True, acceptance=0.31, needed=0.58)),
    a_round(4, 0, 0, "suffix + draft X", beliefs("draft X", 0, is_resting=True, acceptance=0.31, needed=0.58)),
)


def test_what_was_chosen_and_expected_is_counted() -> None:
    pacing = fold_rounds(ROUNDS).pacing
    assert (pacing.num_rounds, pacing.num_resting, pacing.num_exploring) == (4, 2, 1)
    assert pacing.lengths == (2, 1, 0, 0, 1)
    assert pacing.resting_share == 0.5
    assert pacing.token_ratio == pytest.approx((3 + 2 + 1 + 1) / (2.0 + 3 * 1.5))
    assert pacing.time_ratio == pytest.approx(1.0)
    assert pacing.is_resting and pacing.last is not None and pacing.last.needed == 0.58


def test_sums_over_answers_are_those_of_all_rounds() -> None:
    parts = fold_rounds(ROUNDS[:2]) + fold_rounds(ROUNDS[2:])
    whole = fold_rounds(ROUNDS)
    assert parts.pacing == whole.pacing
    plain = fold_rounds([a_round(0), a_round(1, 4, 2)])
    assert plain.pacing == PacingStats() and (plain + whole).pacing == whole.pacing
    assert plain.pacing.resting_share is None and plain.pacing.token_ratio is None


def test_the_document_tells_who_drafted_what() -> None:
    stats = fold_rounds(ROUNDS)
    arm = {
        "name": "auto",
        "method": "auto",
        "has_run": True,
        "by_drafter": drafters_record(stats),
        "pacing_stats": pacing_record(stats),
    }
    workload = json.loads(json.dumps({"arms": [{"name": "off", "method": "off", "has_run": True}, arm]}))
    who, what = drafting_lines(workload)
    assert (
        who
        == "auto: suffix, 2 of 4 tokens accepted in 1 round (50 %); draft X, 1 of 1 tokens accepted in 1 round (100 %)."
    )
    assert "drafts of 1 to 4 tokens in 50 % of the rounds" in what and "rested in 50 %" in what
    assert "resting at the end (acceptance 0.31, needs 0.58 here)" in what
    assert chosen_lengths(workload["arms"][1]) == [2, 1, 0, 0, 1]
    assert pacing_record(fold_rounds([a_round(0), a_round(1, 4, 2)])) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"by_drafter": [1], "pacing_stats": "no"},
        {"by_drafter": {"x": 3, "y": {"num_rounds": "many"}}, "pacing_stats": {"num_rounds": -1}},
        {
            "by_drafter": None,
            "pacing_stats": {"num_rounds": 3, "lengths": "abc", "expected_tokens": 0, "num_tokens": 1},
        },
        {"pacing_stats": {"num_rounds": 2, "lengths": [None, -4, 1.5], "is_resting_now": True}},
    ],
)
def test_a_damaged_document_is_no_failure(odd: dict[str, object]) -> None:
    lines = drafting_lines({"arms": [{"name": "auto", "method": "auto", "has_run": True, **odd}, "no arm"]})
    assert all(line.startswith("auto: ") for line in lines)


def test_a_kept_trial_gives_the_same_numbers_again() -> None:
    settings = SpeculationSettings("auto")
    state = SpeculationState(True, "auto", "suffix + draft X", "", settings)
    trial = Trial(
        arm="auto",
        pair=0,
        place=0,
        prompt_name="one",
        prompt_tokens=(1, 2),
        rounds=ROUNDS,
        stats=fold_rounds(ROUNDS),
        latency=LatencyFold().result(),
        text="",
        finish_reason="length",
        speculation=state,
        peak_rss_bytes=0,
        device_used_bytes=0,
    )
    record = {**trial_record(trial), "speculation": asdict(state), "device_used_bytes": 0}
    assert record["rounds"]["needed"] == [None, 0.25, 0.25, 0.58, 0.58]
    assert {len(column) for column in record["rounds"].values()} == {len(ROUNDS)}
    again = trial_of(json.loads(json.dumps(record)))
    assert again.stats.by_drafter == trial.stats.by_drafter
    assert replace(again.stats.pacing, last=None) == replace(trial.stats.pacing, last=None)
    assert again.stats.pacing.is_resting
    older = json.loads(json.dumps(record))
    for name in ("drafter", "match_length", "expected_tokens", "is_resting"):
        del older["rounds"][name]
    assert set(trial_of(older).stats.by_drafter) == {"suffix + draft X", NOBODY}
    assert trial_of(older).stats.pacing == PacingStats()
