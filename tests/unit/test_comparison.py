"""Order, pairing and honesty of comparisons, on an engine whose time is made up."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import numpy as np
import pytest

from localspec.engine.events import DifferenceExplained, EngineFailed, Event, RoundFinished
from localspec.engine.requests import Configure, ExplainDifference, Generate, LoadModels, Request
from localspec.engine.values import Method, SamplingSettings, SpeculationSettings
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.metrics.comparison import (
    PairedRate,
    compare_rates,
    interpolate_rate,
    judge,
)
from localspec.metrics.drift import drift_note
from localspec.metrics.statistics import Estimate
from localspec.session.arms import Arm, PromptCase, arms_from_settings, build_arms
from localspec.session.comparison import ComparisonProgress, run_comparison, run_order
from localspec.session.outcome import ComparisonFailed, ComparisonInterrupted, ComparisonResult
from localspec.session.pacing_memory import COLD
from localspec.session.same_text import first_difference, worst
from tests.scripted_engine import ArmScript, ScriptedEngine

PROMPTS = (PromptCase("one", text="One."), PromptCase("two", text="Two."))
GREEDY = SamplingSettings(temperature=0.0)
EVEN = ArmScript(accepted=(0,), draft_step_s=0.0)
"""Drafts for nothing: as fast as the baseline."""


async def compare(
    engine: ScriptedEngine,
    *methods: Method,
    num_pairs: int = 3,
    sampling: SamplingSettings = GREEDY,
    max_tokens: int = 40,
    seen: list[ComparisonProgress] | None = None,
    ignore_eog: bool = False,
) -> ComparisonResult:
    return await run_comparison(
        engine,
        "chat",
        PROMPTS,
        build_arms(methods or ("off", "draft"), SpeculationSettings(n_max=4)),
        sampling,
        max_tokens,
        (lambda progress: None) if seen is None else seen.append,
        num_pairs=num_pairs,
        ignore_eog=ignore_eog,
    )


def test_order_is_mirrored_and_closed_after_an_odd_number() -> None:
    assert run_order(2, 4) == ((0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1), (3, 1), (3, 0))
    assert run_order(3, 2) == ((0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0))
    assert run_order(2, 1) == ((0, 0), (0, 1), (0, 0))
    assert run_order(1, 3) == ((0, 0), (1, 0), (2, 0))


def test_arms_have_names_of_their_own() -> None:
    arms = build_arms(("ngram", "off", "draft", "ngram"), SpeculationSettings(n_max=3))
    assert [arm.name for arm in arms] == ["off", "ngram", "draft"]
    assert [arm.is_baseline for arm in arms] == [True, False, False]
    assert arms[2].speculation == SpeculationSettings("draft", n_max=3)
    settings = [SpeculationSettings("draft", n_max=n, p_min=p) for n, p in ((2, 0.0), (4, 0.0), (4, 0.5))]
    names = [arm.name for arm in arms_from_settings(settings)]
    assert names == ["off", "draft n_max 2", "draft n_max 4 p_min 0", "draft n_max 4 p_min 0.5"]
    twins = arms_from_settings([SpeculationSettings("ngram", ngram_max=n) for n in (3, 4)])
    assert len({arm.name for arm in twins}) == 3


async def test_runs_are_alike_fresh_and_alternate() -> None:
    engine = ScriptedEngine()
    result = await compare(engine)
    warm_up, measured = engine.generated[:2], engine.generated[2:]
    assert [method for method, _ in warm_up] == ["off", "draft"]
    assert {request.max_tokens for _, request in warm_up} == {16}
    assert [method for method, _ in measured] == ["off", "draft", "draft", "off", "off", "draft", "off"]
    assert [request.text for _, request in measured] == ["One.", "One.", "Two.", "Two.", "One.", "One.", "One."]
    assert all(request.is_fresh and request.max_tokens == 40 for _, request in measured)
    assert len({request.sampling for _, request in measured}) == 1
    assert not any(isinstance(request, LoadModels) for request in engine.requests)
    # Two arms that stand side by side in the order need no switching.
    assert sum(isinstance(request, Configure) for request in engine.requests) == 7
    assert [len(arm.trials) for arm in result.arms] == [3, 3]
    assert result.closing is not None


async def test_adaptive_arms_begin_every_run_cold_and_remember_nothing() -> None:
    engine = ScriptedEngine()
    settings = SpeculationSettings(remembers=True)
    adaptive = Arm("adaptive", replace(settings, method="ngram", pacing="adaptive"))
    arms = (*build_arms(("off", "auto"), settings), adaptive)
    await run_comparison(engine, "chat", PROMPTS, arms, GREEDY, 20, lambda progress: None, num_pairs=4)
    told = [request for request in engine.requests if isinstance(request, Configure)]
    assert not any(request.speculation.remembers for request in told)
    states: dict[str, list[str]] = {arm.name: [] for arm in arms}
    for request in told:
        name = "adaptive" if request.speculation.method == "ngram" else request.speculation.method
        states[name].append(request.pacing_state)
    # A warm-up and four pairs.
    assert states["auto"] == states["adaptive"] == [COLD] * 5
    assert set(states["off"]) == {""}
    tuned = ScriptedEngine()
    state = "what was learnt"
    await run_comparison(
        tuned, "chat", PROMPTS, arms, GREEDY, 20, lambda progress: None, num_pairs=1, pacing_state=state
    )
    assert {one.pacing_state for one in tuned.requests if isinstance(one, Configure)} == {"", state}


async def test_a_good_draft_is_faster_by_what_its_rounds_say() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(accepted=(2,), draft_step_s=0.001, verify_cost=1.2)})
    result = await compare(engine)
    arm = result.speculative[0]
    assert arm.speedup is not None
    # 3 tokens in a round of 4 draft steps and a verification: 3 / (0.4 + 1.2), a little less at the end.
    assert arm.speedup.median == pytest.approx(3 / 1.6, rel=0.03)
    assert arm.verdict == "faster"
    assert arm.same_text is not None
    assert arm.same_text.kind == "identical"
    assert arm.stats.is_consistent
    assert arm.stats.num_tokens == 120
    assert result.leading is arm
    assert result.baseline.speedup is None


async def test_an_always_wrong_draft_is_slower() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(accepted=(0,), draft_step_s=0.002, verify_cost=1.5)})
    arm = (await compare(engine)).speculative[0]
    assert arm.verdict == "slower"
    assert arm.stats.acceptance_rate == 0.0
    assert arm.stats.mean_accepted_length == 1.0


@pytest.mark.parametrize("num_pairs", [1, 3, 4, 5])
@pytest.mark.parametrize("methods", [("off", "draft"), ("off", "draft", "ngram")])
async def test_slowing_by_five_percent_with_every_run_is_no_difference(
    num_pairs: int, methods: tuple[Method, ...]
) -> None:
    engine = ScriptedEngine(scripts={"draft": EVEN, "ngram": EVEN}, slowdown=1.05)
    result = await compare(engine, *methods, num_pairs=num_pairs)
    for arm in result.speculative:
        assert arm.speedup is not None
        assert arm.speedup.median == pytest.approx(1.0, abs=0.02)
        assert arm.verdict == ("no_clear_difference" if num_pairs >= 3 else "too_little_to_judge")
    assert num_pairs < 3 or "slower than the first" in result.notes[0]


async def test_noise_alone_is_no_difference() -> None:
    verdicts = []
    for seed in range(20):
        engine = ScriptedEngine(scripts={"draft": EVEN}, noise=0.15, rng=random.Random(seed))
        verdicts.append((await compare(engine, max_tokens=8)).speculative[0].verdict)
    assert verdicts.count("no_clear_difference") >= 18


async def test_an_arm_that_cannot_be_switched_on_is_not_run() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(off_reason="the draft file is damaged")})
    result = await compare(engine, "off", "draft", "ngram")
    draft, ngram = result.speculative
    assert not draft.has_run
    assert draft.reason == "the draft file is damaged"
    assert (draft.trials, draft.speedup, draft.verdict, draft.same_text, draft.decode_tps) == (
        (),
        None,
        None,
        None,
        None,
    )
    assert ngram.has_run
    assert result.leading is ngram
    assert all(method != "draft" for method, _ in engine.generated)


async def test_settings_that_the_engine_refuses_are_a_reason_too() -> None:
    engine = ScriptedEngine(scripts={"ngram": ArmScript(failure="ngram_min is over ngram_max")})
    arm = (await compare(engine, "off", "ngram")).speculative[0]
    assert (arm.has_run, arm.reason) == (False, "ngram_min is over ngram_max")


async def test_an_arm_that_goes_off_on_the_way_loses_its_numbers() -> None:
    engine = ScriptedEngine()

    def go_off(scripted: ScriptedEngine, round_: RoundFinished) -> None:
        if len(scripted.generated) == 5 and round_.index == 3:
            scripted._state = replace(scripted._state, is_on=False, reason="the cache could not be cut back")

    engine.on_round = go_off
    arm = (await compare(engine)).speculative[0]
    assert (arm.has_run, arm.reason, arm.speedup) == (False, "the cache could not be cut back", None)


async def test_a_baseline_that_drafts_is_no_baseline() -> None:
    engine = ScriptedEngine()
    engine._switch(SpeculationSettings("draft"))
    engine._switch = lambda settings: None  # type: ignore[method-assign]
    with pytest.raises(LocalspecError, match="no baseline"):
        await compare(engine)


async def test_progress_counts_to_the_end() -> None:
    seen: list[ComparisonProgress] = []
    await compare(ScriptedEngine(), seen=seen)
    counts = [progress.num_done for progress in seen]
    assert counts == sorted(counts)
    assert (seen[0].phase, seen[0].num_total) == ("warm_up", 9)
    assert (seen[-1].num_done, seen[-1].num_total, seen[-1].phase) == (8, 9, "trial")
    assert any(isinstance(progress.event, RoundFinished) for progress in seen)


@pytest.mark.parametrize(
    ("gap", "noise", "kind"), [(0.05, 0.03, "rounding"), (0.06, 0.03, "rounding"), (0.07, 0.03, "error")]
)
async def test_greedy_difference_is_rounding_within_twice_the_noise(gap: float, noise: float, kind: str) -> None:
    found = DifferenceExplained(0, gap, noise, 0, 0)
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, explained=found)
    answer = (await compare(engine)).speculative[0].same_text
    assert answer is not None
    assert (answer.identical, answer.first_difference, answer.kind) == (False, 7, kind)
    assert (answer.top2_gap, answer.noise) == (gap, noise)
    replay = next(request for request in engine.requests if isinstance(request, ExplainDifference))
    assert replay.prompt == tuple(range(10))
    assert replay.common == tuple(range(1000, 1007))
    # Round 0 has no step of its own; then three tokens a round, and so 2 of 4 accepted.
    assert replay.num_accepted[:2] == (2, 2)
    assert [len(drafted) for drafted in replay.drafted[:2]] == [4, 4]
    assert engine.requests.index(replay) > max(
        place for place, request in enumerate(engine.requests) if isinstance(request, Generate)
    )


@pytest.mark.parametrize("ignore_eog", [False, True])
async def test_a_replay_bans_end_tokens_as_the_runs_did(ignore_eog: bool) -> None:
    found = DifferenceExplained(0, 0.05, 0.03, 0, 0)
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, explained=found)
    await compare(engine, ignore_eog=ignore_eog)
    replays = [request for request in engine.requests if isinstance(request, ExplainDifference)]
    assert replays and {replay.ignore_eog for replay in replays} == {ignore_eog}


@pytest.mark.parametrize(("single", "batched", "kind"), [(1007, 1008, "rounding"), (1007, 1007, "error")])
async def test_at_a_temperature_the_replay_must_reproduce_both(single: int, batched: int, kind: str) -> None:
    found = DifferenceExplained(0, 5.0, 0.01, single, batched)
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, explained=found)
    answer = (await compare(engine, sampling=SamplingSettings(temperature=0.8))).speculative[0].same_text
    assert answer is not None
    assert answer.kind == kind


async def test_an_output_that_ends_early_is_an_error() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(num_tokens=12)})
    answer = (await compare(engine)).speculative[0].same_text
    assert answer is not None
    assert (answer.kind, answer.first_difference) == ("error", 12)
    assert "stop" in answer.reason


async def test_a_difference_that_cannot_be_replayed_is_an_error_with_the_reason() -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)})
    answer = (await compare(engine)).speculative[0].same_text
    assert answer is not None
    assert answer.kind == "error"
    assert "The replay failed." in answer.reason


def test_first_difference() -> None:
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2, 3), (1, 5, 3)) == 1
    assert first_difference((1, 2, 3), (1, 2)) == 2
    assert worst([]) is None


@pytest.mark.parametrize("generation", [0, 2, 5, 7])
async def test_cancelling_keeps_finished_pairs(generation: int) -> None:
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, explained=None)
    task: asyncio.Task[ComparisonResult] | None = None

    def stop(scripted: ScriptedEngine, round_: RoundFinished) -> None:
        if len(scripted.generated) == generation + 1 and round_.index == 2 and task is not None:
            task.cancel()

    engine.on_round = stop
    task = asyncio.create_task(compare(engine, num_pairs=4))
    with pytest.raises(ComparisonInterrupted) as caught:
        await task
    result = caught.value.result
    assert result.is_interrupted
    finished = max(0, generation - 2)
    assert sum(len(arm.trials) for arm in result.arms) == finished
    arm = result.speculative[0]
    num_pairs = {0: 0, 3: 1, 5: 2}[finished]
    assert (arm.speedup.pairs if arm.speedup else 0) == num_pairs
    assert (arm.same_text is None) == (num_pairs == 0)
    if arm.same_text is not None:
        assert (arm.same_text.identical, arm.same_text.kind) == (False, None)


async def test_cancelling_a_generation_from_elsewhere_interrupts_too() -> None:
    engine = ScriptedEngine()

    def stop(scripted: ScriptedEngine, round_: RoundFinished) -> None:
        if len(scripted.generated) == 4:
            scripted._cancelled.add(round_.id)

    engine.on_round = stop
    with pytest.raises(ComparisonInterrupted) as caught:
        await compare(engine)
    assert [len(arm.trials) for arm in caught.value.result.arms] == [1, 0]


async def test_an_engine_that_dies_ends_the_comparison() -> None:
    def die(request: Request) -> list[Event] | None:
        if isinstance(request, Generate):
            return [EngineFailed(request.id, "EngineDiedError", "Killed.", "Load again.", is_fatal=True)]
        return None

    with pytest.raises(EngineDiedError, match=r"Killed\."):
        await compare(ScriptedEngine(answer=die))


async def test_an_engine_that_dies_in_a_replay_makes_no_text_wrong() -> None:
    def die(request: Request) -> list[Event] | None:
        if isinstance(request, ExplainDifference):
            return [EngineFailed(request.id, "EngineDiedError", "Killed.", "Load again.", is_fatal=True)]
        return None

    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, answer=die)
    with pytest.raises(ComparisonFailed, match=r"Killed\.") as caught:
        await compare(engine)
    assert isinstance(caught.value.failure, EngineDiedError)
    arm = caught.value.result.speculative[0]
    assert arm.speedup is not None and arm.speedup.pairs == 3
    assert arm.same_text is not None
    assert (arm.same_text.first_difference, arm.same_text.kind) == (7, None)


async def test_what_cannot_be_compared_is_refused() -> None:
    engine = ScriptedEngine()
    drafting = Arm("draft", SpeculationSettings("draft"))
    off = Arm("off", SpeculationSettings("off"))
    for arms in ((), (drafting,), (drafting, off), (off, off), (off, drafting, drafting)):
        with pytest.raises(UsageError):
            await run_comparison(engine, "chat", PROMPTS, arms, GREEDY, 40, lambda progress: None)
    with pytest.raises(UsageError, match="no prompts"):
        await run_comparison(engine, "chat", (), (off,), GREEDY, 40, lambda progress: None)
    for num_pairs, max_tokens in ((0, 40), (3, 1)):
        with pytest.raises(UsageError, match="measured"):
            await compare(engine, num_pairs=num_pairs, max_tokens=max_tokens)
    assert engine.requests == []


def test_verdicts_follow_the_interval() -> None:
    assert judge(Estimate(1.3, 1.2, 1.4, 3)) == "faster"
    assert judge(Estimate(0.8, 0.7, 0.9, 3)) == "slower"
    assert judge(Estimate(1.1, 1.0, 1.2, 3)) == "no_clear_difference"
    assert judge(Estimate(0.9, 0.8, 1.0, 3)) == "no_clear_difference"
    assert judge(Estimate(2.0, None, None, 1)) == "too_little_to_judge"


def test_pairs_without_a_rate_do_not_count() -> None:
    pairs = [PairedRate(10.0, 15.0), PairedRate(None, 15.0), PairedRate(10.0, None)]
    speedup = compare_rates(pairs, np.random.default_rng(1))
    assert speedup is not None
    assert (speedup.median, speedup.pairs) == (1.5, 1)
    assert compare_rates(pairs[1:], np.random.default_rng(1)) is None


def test_interpolation_is_exact_for_a_steady_factor() -> None:
    assert interpolate_rate((4, 100.0), (7, 100.0 * 0.95**3), 5) == pytest.approx(95.0)


def test_drift_is_noted_when_it_is_large() -> None:
    assert drift_note([100.0, 80.0, 95.0]) == ""
    assert drift_note([100.0]) == ""
    assert "20 % slower" in drift_note([100.0, 80.0])
    assert "25 % faster" in drift_note([100.0, 125.0])


@pytest.mark.parametrize(("last", "said"), [(210.0, "110 % faster"), (45.0, "55 % slower")])
def test_a_drift_over_the_factor_two_makes_the_figures_unusable(last: float, said: str) -> None:
    note = drift_note([100.0, 80.0, last])
    assert said in note and "unusable" in note
    assert "cancel" not in note
