"""What is to be compared, and the plan that it makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localspec.catalog.workloads import load_workloads
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import LocalspecError, SettingsError
from localspec.settings import Settings
from localspec.tui.compare_choice import (
    CompareChoice,
    arm_words,
    arms_of,
    extent_words,
    make_plan,
    obstacle,
    text_words,
)
from localspec.tui.state import ChosenModel, Workbench

TARGET, DRAFT = ChosenModel("big", Path("/m/big.gguf")), ChosenModel("small", Path("/m/small.gguf"))
BENCH = Workbench(TARGET, DRAFT, SpeculationSettings("draft", n_max=6))


def test_by_default_off_races_what_is_on_the_bench() -> None:
    plan, lanes = make_plan(CompareChoice(), BENCH, Settings(), load_workloads())
    assert [arm.speculation.method for arm in lanes] == ["off", "draft"]
    assert lanes[1].speculation.n_max == 6
    assert [workload.name for workload in plan.workloads] == ["edit", "chat"]
    assert (plan.target, plan.draft) == (TARGET.path, DRAFT.path)
    assert (plan.num_pairs, plan.half_width, plan.max_tokens) == (12, 0.05, 128)


@pytest.mark.parametrize(("draft", "method"), [(DRAFT, "draft"), (None, "ngram")])
def test_a_bench_that_is_off_still_has_a_rival(draft: ChosenModel | None, method: str) -> None:
    bench = Workbench(TARGET, draft)
    assert [arm.method for arm in arms_of(CompareChoice(), bench)] == ["off", method]


def test_two_ways_of_drafting_take_the_baseline_along() -> None:
    choice = CompareChoice(left=SpeculationSettings("draft", n_max=2), right=SpeculationSettings("draft", n_max=8))
    plan, lanes = make_plan(choice, BENCH, Settings(), load_workloads())
    assert [arm.name for arm in plan.arms] == ["off", "draft n_max 2", "draft n_max 8"]
    assert lanes == plan.arms[1:]


def test_off_may_be_on_either_side() -> None:
    choice = CompareChoice(left=BENCH.speculation, right=SpeculationSettings())
    plan, lanes = make_plan(choice, BENCH, Settings(), load_workloads())
    assert [arm.is_baseline for arm in plan.arms] == [True, False]
    assert [arm.is_baseline for arm in lanes] == [False, True]


def test_a_typed_prompt_counts_alone() -> None:
    plan, _ = make_plan(CompareChoice(prompt=" [/] \n hello "), BENCH, Settings(), load_workloads())
    (workload,) = plan.workloads
    assert [prompt.user for prompt in workload.prompts] == ["[/] \n hello"]
    assert text_words(CompareChoice(prompt=" a \n b ")) == "a b"


@pytest.mark.parametrize(("temperature", "is_fixed"), [(0.0, False), (0.7, True)])
def test_a_temperature_of_the_bench_holds_for_all_texts(temperature: float, is_fixed: bool) -> None:
    bench = replace(BENCH, sampling=SamplingSettings(temperature=temperature))
    plan, _ = make_plan(CompareChoice(), bench, Settings(), load_workloads())
    assert plan.is_temperature_fixed is is_fixed


@pytest.mark.parametrize(
    ("choice", "bench", "words"),
    [
        (CompareChoice(), Workbench(), "No target model"),
        (CompareChoice(workloads=()), BENCH, "no text"),
        (CompareChoice(right=SpeculationSettings()), BENCH, "the same"),
        (CompareChoice(right=SpeculationSettings("draft")), Workbench(TARGET), "no draft model"),
        # What its method does not have makes an arm no other one.
        (
            CompareChoice(left=SpeculationSettings("draft"), right=SpeculationSettings("draft", ngram_max=9)),
            BENCH,
            "the same",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(choice: CompareChoice, bench: Workbench, words: str) -> None:
    refusal = obstacle(choice, bench)
    assert refusal is not None and words in refusal.message
    with pytest.raises(LocalspecError, match=words):
        make_plan(choice, bench, Settings(), load_workloads())


def test_settings_that_do_not_go_together_are_refused() -> None:
    choice = CompareChoice(right=SpeculationSettings("draft", n_max=2, n_min=3))
    with pytest.raises(SettingsError, match="n_min 3"):
        make_plan(choice, BENCH, Settings(), load_workloads())
    bench = replace(BENCH, context=ContextSettings(n_ctx=4))
    with pytest.raises(SettingsError, match="n_ctx 4"):
        make_plan(CompareChoice(), bench, Settings(), load_workloads())


def test_words() -> None:
    assert arm_words(SpeculationSettings()) == "off"
    assert arm_words(SpeculationSettings("draft", n_max=4, p_min=0.5)) == "draft n_max 4, p_min 0.5"
    assert arm_words(SpeculationSettings("ngram", n_max=8)) == "ngram n_max 8, 4 to 6 tokens"
    assert extent_words(CompareChoice()) == "128 tokens, ±5 % or 12 pairs"
    assert extent_words(CompareChoice(percent=0.0, num_pairs=1)) == "128 tokens, 1 pair"
