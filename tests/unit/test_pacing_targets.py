"""What adaptive pacing must reach in simulation: never much slower than off, near the best fixed length."""

from __future__ import annotations

import pytest

from tests.simulation.compare import OURS, POLICIES, Setting, best_fixed, converse, total_cost
from tests.simulation.machines import CPU_F16, CPU_Q4_0, GPU, MACHINES, METAL, MOE, Machine
from tests.simulation.texts import COPYING_TEXTS, MODEL_TEXTS

TEXTS = {**MODEL_TEXTS, **COPYING_TEXTS}
SEEDS = range(2)


def setting_of(name: str, machine: Machine, step: float) -> Setting:
    is_copying = name in COPYING_TEXTS
    return Setting(machine, step, has_copier=is_copying, has_model=not is_copying or step > 0.0)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("name", TEXTS)
def test_an_answer_of_128_tokens_from_a_cold_start_takes_at_most_3_percent_longer(name: str, machine: Machine) -> None:
    for step in (0.0, 0.05, 0.15, 0.5):
        setting = setting_of(name, machine, step)
        cost = total_cost(setting, TEXTS[name], POLICIES[OURS], 128, SEEDS)
        assert cost * 0.97 <= 128 * len(SEEDS), step


def check_conversation(name: str, machine: Machine, step: float, seeds: range) -> None:
    setting = setting_of(name, machine, step)
    answers = converse(setting, TEXTS[name], 256, 4, seeds)
    _, best = best_fixed(setting, TEXTS[name], 256, range(4 * len(seeds)))
    assert sum(answers) <= best / 0.93
    # Where the confidence says nothing at all, the best length must be learnt from outcomes alone.
    least = 0.93 if name == "steady 0.8" else 0.95
    assert sum(answers[1:]) <= best * 3 / 4 / least


@pytest.mark.parametrize("name", ["steady 0.8, telling", "switching", "copying"])
@pytest.mark.parametrize("machine", [GPU, CPU_F16], ids=lambda machine: machine.name)
def test_a_conversation_comes_near_the_best_fixed_length(name: str, machine: Machine) -> None:
    check_conversation(name, machine, 0.05, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("machine", [GPU, METAL, MOE, CPU_F16], ids=lambda machine: machine.name)
@pytest.mark.parametrize("step", [0.0, 0.05])
def test_every_conversation_comes_near_the_best_fixed_length(name: str, machine: Machine, step: float) -> None:
    check_conversation(name, machine, step, range(3))


@pytest.mark.parametrize(
    ("machine", "step"),
    [(machine, step) for machine in (GPU, METAL, CPU_Q4_0) for step in (0.0, 0.05)],
    ids=lambda value: value.name if isinstance(value, Machine) else str(value),
)
def test_a_text_that_goes_from_copying_to_open_and_back_reaches_90_percent_of_the_best_for_each_part(
    machine: Machine, step: float
) -> None:
    setting = setting_of("copy, open, copy", machine, step)
    cost = total_cost(setting, TEXTS["copy, open, copy"], POLICIES[OURS], 520, range(3))
    told = total_cost(setting, TEXTS["copy, open, copy"], POLICIES["told"], 520, range(3))
    assert cost <= told / 0.9


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("step", [0.0, 0.05, 0.15, 0.5])
def test_no_conversation_loses(machine: Machine, step: float) -> None:
    for name, make_text in TEXTS.items():
        setting = setting_of(name, machine, step)
        answers = converse(setting, make_text, 256, 4, range(6))
        assert sum(answers) * 0.975 <= 256 * 4 * 6, name


@pytest.mark.slow
def test_over_all_settings_no_published_policy_does_better() -> None:
    means = {}
    for policy in ("off", "+2 / -1", "dynamic threshold", "joint confidence", "epsilon-greedy", "UCB", OURS):
        ratios = []
        for name, make_text in MODEL_TEXTS.items():
            for machine in MACHINES:
                cost = total_cost(setting_of(name, machine, 0.05), make_text, POLICIES[policy], 512, range(2))
                ratios.append(512 * 2 / cost)
        means[policy] = sum(ratios) / len(ratios)
    assert max(means, key=lambda policy: means[policy]) == OURS
    assert means[OURS] > 1.1
