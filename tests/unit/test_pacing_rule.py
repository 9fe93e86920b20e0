"""The best stopping rule, against enumeration."""

from __future__ import annotations

import random

import pytest

from localspec.engine.stopping_rule import StoppingRule, best_rule, needed_acceptance
from localspec.metrics.prediction import break_even_acceptance, expected_tokens_per_round
from tests.simulation.machines import MACHINES, Machine


def curve(machine: Machine, longest: int) -> list[float]:
    return [0.0, *(machine.cost(width) for width in range(1, longest + 2))]


def reached(horizon: int, verify: list[float], step: float, cells: list[tuple[float, float]]) -> StoppingRule:
    """The rule at the rate that it reaches itself."""
    rule = best_rule(horizon, 1.0, verify, step, cells, cells)
    for _ in range(8):
        rule = best_rule(horizon, max(rule.tokens / rule.cost, 1.0), verify, step, cells, cells)
    return rule


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("step", [0.0, 0.05, 0.15])
@pytest.mark.parametrize("acceptance", [0.72, 0.5184, 0.9])
def test_with_one_certain_acceptance_it_is_the_best_fixed_length(
    machine: Machine, step: float, acceptance: float
) -> None:
    verify = curve(machine, 12)
    best = max(
        expected_tokens_per_round(acceptance, length) / (verify[length + 1] + length * step) for length in range(1, 13)
    )
    if best <= 1.0:
        return
    rule = reached(12, verify, step, [(1.0, acceptance)])
    assert rule.tokens / rule.cost == pytest.approx(best, rel=0.04)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_its_expectation_is_what_following_it_gives(machine: Machine) -> None:
    verify, step = curve(machine, 10), 0.05
    cells = [(0.25, 0.3), (0.35, 0.8), (0.4, 0.97)]
    rule = reached(10, verify, step, cells)
    rng = random.Random(3)
    tokens = cost = 0.0
    rate = rule.tokens / rule.cost
    for _ in range(20_000):
        joints: list[float] = []
        joint = 1.0
        while True:
            cost += step
            _, acceptance = rng.choices(cells, [share for share, _ in cells])[0]
            joint *= acceptance
            joints.append(joint)
            if not rule.goes_on(len(joints), joint) or len(joints) == 10:
                break
        last = joints[-1] - rate * (verify[len(joints) + 1] - verify[len(joints)])
        kept = joints if last > 0.0 else joints[:-1]
        tokens += 1.0 + sum(kept)
        cost += verify[len(kept) + 1]
    assert tokens / cost == pytest.approx(rate, rel=0.04)


def test_it_looks_past_a_step_of_the_stairs() -> None:
    # Width 4 costs no more than width 3: once two tokens are drafted, the third is worth its step.
    verify = [0.0, 1.0, 1.3, 2.2, 2.2, 5.0, 6.0, 7.0]
    rule = best_rule(6, 1.0, verify, 0.01, [(1.0, 0.8)], [(1.0, 0.8)])
    assert rule.goes_on(2, 0.64)
    assert not rule.goes_on(3, 0.512)
    assert rule.longest == 3


def test_a_token_of_little_confidence_ends_the_draft() -> None:
    rule = reached(8, curve(MACHINES[0], 8), 0.05, [(0.5, 0.2), (0.5, 0.95)])
    assert rule.goes_on(1, 0.95)
    assert not rule.goes_on(1, 0.2)


def test_confidence_that_tells_is_worth_more_than_the_same_acceptance_without() -> None:
    verify = curve(MACHINES[3], 8)
    blind = reached(8, verify, 0.02, [(1.0, 0.575)])
    seeing = reached(8, verify, 0.02, [(0.5, 0.2), (0.5, 0.95)])
    assert seeing.tokens / seeing.cost > blind.tokens / blind.cost + 0.02


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("step", [0.0, 0.15])
def test_the_needed_acceptance_is_the_least_of_the_break_evens(machine: Machine, step: float) -> None:
    verify = curve(machine, 7)
    candidates = [
        found
        for length in (1, 2, 3, 5, 7)
        if (found := break_even_acceptance(length, step, verify[length + 1])) is not None
    ]
    assert needed_acceptance(7, verify, step) == pytest.approx(min(candidates, default=1.0), abs=0.01)
