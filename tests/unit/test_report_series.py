"""What a report reads from documents: numbers worked out by hand, and documents that are old, cut short or odd."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.session.reporting import findings
from localspec.session.reporting.rate_traces import rate_traces
from localspec.session.reporting.reading import clean, finite, numbers, part, text
from localspec.session.reporting.series import (
    MIN_ROUNDS,
    AcceptedLengths,
    ArmSpeed,
    Interval,
    TimeSplit,
    accepted_lengths,
    arm_speeds,
    position_acceptance,
    time_splits,
    trials_of,
    verify_costs,
)

Record = dict[str, Any]


def arm(name: str, **given: Any) -> Record:
    return {"name": name, "method": name, "has_run": True, **given}


def trial(name: str, drafted: list[int], verify_s: list[float], **given: Any) -> Record:
    return {"arm": name, "rounds": {"drafted": drafted, "verify_s": verify_s}, **given}


def workload(*trials: Record, arms: tuple[Record, ...] = (arm("off"), arm("draft"))) -> Record:
    return {"name": "edit", "arms": list(arms), "trials": list(trials)}


def test_a_pass_costs_what_it_takes_over_the_median_plain_step() -> None:
    plain = trial("off", [0] * 11, [9.0, *[0.1] * 5, *[0.3] * 4, 0.2])
    # The first pass is the prefill's, in both arms.
    drafting = trial("draft", [4, *[2] * 8], [9.0, *[0.4] * 4, *[0.6] * 4])
    step, checked = verify_costs([workload(plain, drafting)])
    assert (step.num_checked, step.num_rounds) == (0, 10)
    assert step.cost == pytest.approx(1.0)
    assert (checked.num_checked, checked.num_rounds) == (2, 8)
    # Plain steps have the median 0.15 s.
    assert checked.cost == pytest.approx(0.5 / 0.15)
    assert [checked.low, checked.high] == pytest.approx([0.4 / 0.15, 0.6 / 0.15])


def test_passes_are_divided_by_the_steps_of_their_own_workload() -> None:
    works = [
        workload(trial("off", [0] * 9, [0.0, *[step_s] * 8]), trial("draft", [0, *[1] * 8], [0.0, *[step_s * 1.5] * 8]))
        for step_s in (0.01, 0.04)
    ]
    _, checked = verify_costs(works)
    assert [checked.low, checked.cost, checked.high] == pytest.approx([1.5] * 3)
    assert checked.num_rounds == 16


def test_too_few_passes_say_nothing() -> None:
    plain = trial("off", [0] * (MIN_ROUNDS + 1), [0.1] * (MIN_ROUNDS + 1))
    few = trial("draft", [3] * MIN_ROUNDS, [0.2] * MIN_ROUNDS)
    assert [point.num_checked for point in verify_costs([workload(plain, few)])] == [0]
    short = trial("off", [0] * MIN_ROUNDS, [0.1] * MIN_ROUNDS)
    assert verify_costs([workload(short, few, few)]) == ()


def test_a_document_without_verify_times_has_no_cost_curve() -> None:
    old = {"arm": "off", "rounds": {"drafted": [0] * 20, "total_s": [0.1] * 20}}
    assert verify_costs([workload(old)]) == ()
    assert verify_costs([workload({"arm": "off", "rounds": {"drafted": [0] * 20, "verify_s": [0.1] * 19}})]) == ()


def test_plain_steps_of_an_arm_with_drafts_are_no_baseline() -> None:
    plain = trial("off", [0] * 9, [0.1] * 9)
    mixed = trial("draft", [0] * 30, [5.0] * 30)
    (step,) = verify_costs([workload(plain, mixed)])
    assert step.cost == pytest.approx(1.0)
    assert step.num_rounds == 8


def test_acceptance_counts_how_many_rounds_came_so_far() -> None:
    drafting = arm(
        "draft",
        num_rounds=4,
        acceptance_by_position=[0.75, 0.25],
        conditional_acceptance_by_position=[0.75, 0.5, None],
    )
    rounds = {"drafted": [0, 2, 3, 1, 3], "accepted": [0, 2, 1, 1, 0]}
    (found,) = position_acceptance(workload({"arm": "draft", "rounds": rounds}, arms=(arm("off"), drafting)))
    assert found.of_all_rounds == (0.75, 0.25)
    assert found.given_earlier == (0.75, 0.5, None)
    assert found.num_reached == (4, 2)
    assert not found.is_sure(0)
    assert found.is_sure(2)


def test_time_is_split_per_token() -> None:
    works = workload(
        arms=(
            arm("off", num_tokens=10, draft_s=0.0, verify_s=1.0, sample_s=0.1, own_s=0.0),
            arm("draft", num_tokens=20, draft_s=0.4, verify_s=0.8, sample_s=0.2, own_s=None),
            arm("ngram", num_tokens=20, draft_s=0.2, verify_s=1.0, sample_s=0.2, own_s=0.6),
        )
    )
    plain, ngram = time_splits(works)
    assert plain.total_s == pytest.approx(0.11)
    assert ngram.arm == "ngram"
    assert [ngram.draft_s, ngram.own_s] == pytest.approx([0.01, 0.03])
    assert findings.time_finding("edit", (plain, ngram)) == "edit: 110 ms per token without drafts, 100 with ngram"


def test_accepted_lengths_are_summed_over_trials_and_the_closing_run_is_in_none() -> None:
    works = workload(
        {"arm": "draft", "accepted_lengths": [1, 2]},
        {"arm": "draft", "accepted_lengths": [0, 0, 3]},
        {"arm": "draft", "accepted_lengths": [9], "is_closing": True},
        {"arm": "off", "accepted_lengths": []},
    )
    (found,) = accepted_lengths(works)
    assert found == AcceptedLengths("draft", (1, 2, 3))
    # Tau: 1 + (2 + 6) / 6.
    assert found.tokens_per_round == pytest.approx(1 + 8 / 6)
    assert len(trials_of(works, "draft")) == 2


def test_an_arm_that_has_not_run_is_in_no_picture() -> None:
    refused = arm("draft", acceptance_by_position=[1.0], num_rounds=3) | {"has_run": False}
    works = workload(arms=(arm("off", decode_tps={"median": 5.0, "low": None, "high": None, "pairs": 1}), refused))
    assert [speed.arm for speed in arm_speeds(works)] == ["off"]
    assert position_acceptance(works) == ()


def rate_trial(name: str, times: list[float], emitted: list[int], column: str = "at_s") -> Record:
    return {"arm": name, "rounds": {column: times, "emitted": emitted}}


def test_the_rate_of_an_even_course_is_the_same_everywhere() -> None:
    times = [0.5 + 0.1 * index for index in range(41)]
    found = rate_traces(workload(rate_trial("off", times, [1] * 41), rate_trial("draft", times, [3] * 41)))
    assert found is not None
    assert found.window_s == pytest.approx(0.6)
    plain, drafting = found.traces
    assert set(map(lambda rate: round(rate, 6), plain.tps)) == {10.0}
    assert set(map(lambda rate: round(rate, 6), drafting.tps)) == {30.0}
    # Whole windows only.
    assert plain.at_s[0] == pytest.approx(0.3)
    assert plain.at_s[-1] <= 4.0 - 0.3 + 1e-9


def test_rounds_without_arrival_times_are_placed_by_their_lengths() -> None:
    found = rate_traces(workload(rate_trial("off", [0.7, *[0.25] * 40], [1] * 41, column="total_s")))
    assert found is not None
    assert found.traces[0].tps[0] == pytest.approx(4.0)


def test_the_trace_is_the_median_of_the_answers_and_ends_when_most_have_ended() -> None:
    slow = rate_trial("off", [0.2 * index for index in range(41)], [1] * 41)
    fast = rate_trial("off", [0.1 * index for index in range(41)], [1] * 41)
    found = rate_traces(workload(slow, fast, fast))
    assert found is not None
    (trace,) = found.traces
    assert trace.num_trials == 3
    assert trace.tps[0] == pytest.approx(10.0)
    assert trace.at_s[-1] < 4.0


def test_short_answers_and_times_that_run_backwards_have_no_course() -> None:
    assert rate_traces(workload(rate_trial("off", [0.0, 0.1, 0.2], [1, 1, 1]))) is None
    assert rate_traces(workload(rate_trial("off", [float(-index) for index in range(20)], [1] * 20))) is None


def speed(arm_name: str, work: str, median: float, verdict: str) -> ArmSpeed:
    return ArmSpeed(work, arm_name, None, Interval(median, None, None), verdict)


@pytest.mark.parametrize(
    ("speeds", "expected"),
    [
        ([speed("draft", "chat", 1.4, "faster")], "Drafts are faster: 1.40x with draft on chat"),
        (
            [speed("draft", "chat", 1.0, "no_clear_difference"), speed("ngram", "edit", 2.5, "faster")],
            "Drafts are faster on 1 of 2 workloads: 2.50x with ngram on edit",
        ),
        (
            [speed("draft", "chat", 1.9, "no_clear_difference"), speed("ngram", "chat", 1.2, "no_clear_difference")],
            "No clear difference between drafts and none",
        ),
        (
            [speed("draft", "chat", 0.7, "slower"), speed("ngram", "edit", 0.9, "slower")],
            "Drafts make it slower here: down to 0.70x with draft on chat",
        ),
        (
            [speed("draft", "chat", 0.7, "slower"), speed("ngram", "edit", 1.3, "no_clear_difference")],
            "Drafts are nowhere clearly faster here, and slower on some workloads",
        ),
    ],
)
def test_the_title_claims_no_gain_that_the_verdicts_do_not(speeds: list[ArmSpeed], expected: str) -> None:
    assert findings.speedup_finding(speeds) == expected


def test_time_without_drafts_alone_has_a_title() -> None:
    assert findings.time_finding("chat", [TimeSplit("off", 0.0, 0.05, 0.0, 0.0)]) == (
        "chat: 50.0 ms per token without drafts"
    )


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8), st.lists))
def test_readers_take_anything(found: object) -> None:
    assert finite(found) is None or math.isfinite(float(str(finite(found))))
    assert part({"a": found}, "a", "b") == {}
    assert isinstance(text({"a": found}, "a"), str)
    assert numbers({"a": found}, "a") is None or isinstance(found, list)


@pytest.mark.parametrize("extract", [accepted_lengths, position_acceptance, rate_traces, time_splits])
@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"arms": None, "trials": None},
        {"arms": [1, None, {"name": 3}], "trials": ["x", {"arm": []}]},
        {"arms": [arm("draft", num_rounds="many", acceptance_by_position="x", num_tokens=-1)], "trials": [{"arm": 1}]},
        {"arms": [arm("draft")], "trials": [{"arm": "draft", "accepted_lengths": [None], "rounds": []}]},
    ],
)
def test_odd_documents_give_nothing(extract: Any, odd: Record) -> None:
    assert not extract(odd)


def test_a_number_too_large_for_a_float_is_none() -> None:
    assert finite(10**400) is None
    assert finite(True) is None


def test_texts_lose_what_would_break_a_page() -> None:
    assert clean("a\x00b\x1b[31m\n c\u202ed\ufffe\ud800") == "ab[31m cd"
