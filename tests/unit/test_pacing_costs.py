"""Costs of steps and drafts, learnt from noisy rounds."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.cost_model import MAX_WIDTH, DraftCosts, StepCosts, monotone
from localspec.engine.loss_budget import CAP, SHARE, START, LossBudget
from tests.simulation.machines import MACHINES, Machine

VALUES = st.lists(st.tuples(st.floats(0.1, 10.0), st.integers(1, 7)), min_size=1, max_size=12)


def learnt(machine: Machine, widths: list[int], rounds: int = 7, noise: float = 0.0, seed: int = 0) -> StepCosts:
    rng = random.Random(seed)
    costs = StepCosts()
    for _ in range(rounds):
        for width in widths:
            costs.learn(width, 0.02 * machine.cost(width) * rng.lognormvariate(0.0, noise))
    return costs


@given(VALUES)
def test_the_monotone_fit_rises_and_keeps_the_weighted_mean(points: list[tuple[float, int]]) -> None:
    values, weights = [value for value, _ in points], [weight for _, weight in points]
    fitted = monotone(values, weights)
    assert all(left <= right for left, right in itertools.pairwise(fitted))
    total = sum(value * weight for value, weight in points)
    assert sum(value * weight for value, weight in zip(fitted, weights, strict=True)) == pytest.approx(total)
    assert monotone(fitted, weights) == pytest.approx(fitted)
    if values == sorted(values):
        assert fitted == values


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_measured_widths_are_known_and_those_between_lie_between(machine: Machine) -> None:
    costs = learnt(machine, [1, 2, 4, 8], noise=0.03)
    plain = costs.expected[1]
    for width in (2, 4, 8):
        assert costs.expected[width] / plain == pytest.approx(machine.cost(width), rel=0.08)
        assert costs.measured[width]
    assert not costs.measured[3]
    assert costs.expected[2] <= costs.expected[3] <= costs.expected[4]


@given(st.lists(st.tuples(st.integers(1, MAX_WIDTH), st.floats(1e-3, 1.0)), max_size=30))
def test_the_curve_rises_and_hope_and_fear_enclose_it(steps: list[tuple[int, float]]) -> None:
    costs = StepCosts()
    for width, seconds in steps:
        costs.learn(width, seconds)
    assert len(costs.expected) == len(costs.lowest) == len(costs.highest) == MAX_WIDTH + 1
    for width in range(1, MAX_WIDTH + 1):
        assert costs.lowest[width] <= costs.expected[width] * 1.0001
        assert costs.expected[width] <= costs.highest[width] * 1.0001
        assert width == 1 or costs.expected[width - 1] <= costs.expected[width] * 1.0001


def test_an_outlier_changes_nothing() -> None:
    costs = learnt(MACHINES[0], [1, 4])
    before = list(costs.expected)
    costs.learn(1, 1.0)
    costs.learn(4, 1.0)
    assert costs.expected == pytest.approx(before)


@pytest.mark.parametrize("order", [(5.0, 1.0, 5.0), (5.0, 5.0, 1.0), (1.0, 5.0, 5.0)])
def test_two_outliers_among_three_steps_do_not_pass_for_a_slower_machine(order: tuple[float, ...]) -> None:
    costs = learnt(MACHINES[0], [1, 2])
    for factor in order:
        costs.learn(1, factor * 0.02)
    assert costs.expected[1] * costs.unit_s == pytest.approx(0.02, rel=0.1)
    for _ in range(3):
        costs.learn(2, 0.02 * MACHINES[0].cost(2))
    assert costs.expected[2] / costs.expected[1] == pytest.approx(MACHINES[0].cost(2), rel=0.1)


def test_a_first_step_that_is_an_outlier_does_not_condemn_its_width() -> None:
    costs = learnt(MACHINES[0], [1, 2])
    feared = costs.highest[5] / costs.expected[1]
    costs.learn(5, 20.0)
    assert costs.expected[5] / costs.expected[1] == pytest.approx(1.25 * feared)


def test_a_first_step_that_is_an_outlier_does_not_set_the_unit() -> None:
    costs = StepCosts()
    costs.learn(1, 0.1)
    costs.learn(1, 0.02)
    assert costs.expected[1] == 1.0
    assert costs.unit_s == pytest.approx(0.02)


def test_a_machine_that_grows_slow_at_once_moves_all_widths_within_three_rounds() -> None:
    costs = learnt(MACHINES[0], [1, 2, 4])
    before = costs.expected[1] * costs.unit_s
    for _ in range(3):
        costs.learn(4, 1.5 * 0.02 * MACHINES[0].cost(4))
    assert costs.expected[1] * costs.unit_s == pytest.approx(1.5 * before, rel=0.05)


def test_slow_drift_is_followed_without_plain_rounds() -> None:
    costs = learnt(MACHINES[0], [1, 4])
    slowness = 1.0
    for _ in range(200):
        slowness *= 1.002
        costs.learn(4, slowness * 0.02 * MACHINES[0].cost(4))
    assert costs.expected[1] * costs.unit_s == pytest.approx(slowness * 0.02, rel=0.1)


def test_a_width_that_was_not_seen_for_long_may_be_hoped_for_again() -> None:
    costs = learnt(MACHINES[0], [1])
    for _ in range(3):
        costs.learn(2, 0.1)
    assert costs.measured[2] and costs.lowest[2] / costs.expected[1] == pytest.approx(5.0)
    for _ in range(330):
        costs.learn(1, 0.02)
    assert not costs.measured[2]
    assert costs.lowest[2] == costs.expected[1] < costs.expected[2]
    costs.learn(2, 0.03)
    assert costs.expected[2] / costs.expected[1] == pytest.approx(1.5)


def test_plain_rounds_are_counted() -> None:
    costs = StepCosts()
    for width in (1, 3, 3, 1, 2):
        costs.learn(width, 0.01 * width)
    assert costs.num_plain == 2
    assert costs.rounds_since_plain == 1


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_that_is_none_teaches_nothing(seconds: float) -> None:
    costs = StepCosts()
    costs.learn(1, seconds)
    assert costs.unit_s == 0.0 and costs.num_plain == 0


def test_what_is_known_survives() -> None:
    costs = learnt(MACHINES[1], [1, 2, 4, 8])
    again = StepCosts(costs.known_s)
    ratios = [cost / costs.expected[1] for cost in costs.expected]
    assert [cost / again.expected[1] for cost in again.expected] == pytest.approx(ratios)
    assert again.expected[1] * again.unit_s == pytest.approx(costs.expected[1] * costs.unit_s)


def test_a_draft_costs_its_steps_and_what_it_has_not_read() -> None:
    costs = DraftCosts(0.5)
    for _ in range(9):
        costs.learn(4 * 0.1, 4, 1)
    costs.learn(100.0, 4, 1)
    assert costs.step == pytest.approx(0.1)
    costs.guess_catch_up(0.4)
    assert costs.catch_up == pytest.approx(0.1 * costs.step)
    costs.learn(5.0, 2, 31)
    assert costs.catch_up == pytest.approx(0.2 * costs.step)
    for _ in range(5):
        costs.learn(2 * 0.1 + 30 * 0.004, 2, 31)
    costs.guess_catch_up(0.4)
    assert costs.catch_up == pytest.approx(0.004)
    assert costs.of(3, 11) == pytest.approx(0.3 + 10 * 0.004)


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(1.0, 20.0)), max_size=80))
def test_what_was_lost_never_exceeds_what_was_granted(rounds: list[tuple[int, float]]) -> None:
    budget = LossBudget()
    lost, tokens = 0.0, 0
    for num_tokens, cost in rounds:
        # The worst that the round could cost is known beforehand; where it is not covered, a plain step is made.
        if not budget.covers(cost - 1.0):
            num_tokens, cost = 1, 1.0
        budget.settle(num_tokens, cost)
        lost += cost - num_tokens
        tokens += num_tokens
        assert lost <= START + SHARE * tokens + 1e-9
        assert budget.credit <= CAP
