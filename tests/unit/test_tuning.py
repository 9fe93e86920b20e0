"""Searches whose truth is known: a whole run of the tuner against made-up speeds, on a clock of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.requests import Configure, Generate, LoadModels, MeasureSteps
from localspec.engine.values import ContextSettings, ModelInfo, SamplingSettings, SpeculationSettings
from localspec.errors import UsageError
from localspec.hardware.host import PowerSource
from localspec.hardware.throttling import ClockReading
from localspec.session.measurement import measurement_record
from localspec.session.tuning.budget import CONFIRM_PAIRS, parse_budget
from localspec.session.tuning.confirmation import UNFINISHED, UNRELIABLE, confirmation_marks
from localspec.session.tuning.record import tuning_record
from localspec.session.tuning.values import Stage, TuningPlan, TuningProgress, TuningResult
from localspec.session.tuning.words import result_sentences
from tests.made_up_machine import model_info
from tests.scripted_engine import ArmScript
from tests.tuning_kit import SpeedyEngine, Truth, plan_of, tuned, workload


def peaked(settings: SpeculationSettings, prompt: str) -> float:
    """Drafting with a model is best at n_max 4 and p_min 0.3."""
    if settings.method == "draft" and settings.pacing == "fixed":
        return 1.45 - 0.08 * abs(settings.n_max - 4) - 0.2 * abs(settings.p_min - 0.3)
    return {"auto": 1.2, "ngram": 0.9, "suffix": 1.0, "cascade": 1.1}.get(settings.method, 1.05)


def equal(settings: SpeculationSettings, prompt: str) -> float:
    return 1.0


def losing(settings: SpeculationSettings, prompt: str) -> float:
    return 0.8


def engine_of(truth: Truth, seed: int = 1, noise: float = 0.04, **more: object) -> SpeedyEngine:
    return SpeedyEngine(truth=truth, noise=noise, rng=random.Random(seed), **more)  # type: ignore[arg-type]


async def test_finds_the_best_way_of_drafting(tmp_path: Path) -> None:
    for seed in range(6):
        result = await tuned(engine_of(peaked, seed), plan_of(tmp_path, seed=seed))
        assert result.winner is not None and result.winner.speedup is not None
        given = result.winner.setting.speculation
        assert given.method == "draft" and peaked(given, "") >= 1.45 * 0.94
        assert result.winner.speedup.low is not None and result.winner.speedup.low > 1.0
        assert result.winner.speedup.pairs >= CONFIRM_PAIRS


async def test_seldom_finds_what_is_not_there(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, budget_s=90.0)
    winners = [(await tuned(engine_of(equal, seed, 0.05), plan)).winner for seed in range(50)]
    # Two finalists at 2.5 % each would give 5 % at most; 50 searches then have 6 or more with a chance under 4 %.
    assert sum(winner is not None for winner in winners) <= 5


async def test_off_is_best_where_all_drafting_loses(tmp_path: Path) -> None:
    result = await tuned(engine_of(losing), plan_of(tmp_path))
    assert result.winner is None and result.is_conclusive
    # Nothing is worth a confirmation, and the time for it is not spent.
    assert result.measurements == () and result.elapsed_s < 0.75 * result.plan.budget_s
    assert result_sentences(result)[0].startswith("Leave drafts off")


@pytest.mark.parametrize("drift", [1.01, 0.99])
async def test_a_machine_that_changes_looks_like_no_gain(tmp_path: Path, drift: float) -> None:
    result = await tuned(engine_of(equal, noise=0.005, drift=drift), plan_of(tmp_path))
    assert result.winner is None
    assert all(abs((trial.ratio or 1.0) - 1.0) < 0.03 for trial in result.trials)
    assert any("baseline" in note for note in result.notes)


async def test_confirms_on_prompts_that_the_search_has_not_seen(tmp_path: Path) -> None:
    engine = engine_of(peaked)
    result = await tuned(engine, plan_of(tmp_path))
    confirmed = {case for trial in result.measurements[0].results[0].baseline.trials for case in [trial.prompt_name]}
    texts = [
        request.messages[-1].content
        for request in engine.requests
        if isinstance(request, Generate) and not request.is_fresh
    ]
    assert confirmed and not confirmed & {text.replace(" ", "") for text in texts}


async def test_a_lucky_prompt_of_the_search_wins_nothing(tmp_path: Path) -> None:
    def lucky(settings: SpeculationSettings, prompt: str) -> float:
        return 1.5 if prompt in ("open 0", "open 2", "open 4") else 0.9

    result = await tuned(engine_of(lucky), plan_of(tmp_path))
    assert result.trials[0].ratio is not None and result.trials[0].ratio > 1.4
    assert result.confirmed and result.winner is None


async def test_ties_go_to_the_simpler_setting(tmp_path: Path) -> None:
    def tied(settings: SpeculationSettings, prompt: str) -> float:
        return 1.4 if settings.method in ("suffix", "cascade") and settings.n_max >= 4 else 0.9

    result = await tuned(engine_of(tied, noise=0.01), plan_of(tmp_path))
    assert {one.setting.speculation.method for one in result.confirmed} <= {"suffix", "cascade"}
    assert result.winner is not None and result.winner.setting.speculation.method == "suffix"


async def test_every_search_tries_auto(tmp_path: Path) -> None:
    for methods in ((), ("ngram",)):
        result = await tuned(engine_of(peaked), plan_of(tmp_path, methods=methods))
        assert any(trial.setting.speculation.method == "auto" and trial.num_pairs >= 2 for trial in result.trials)


async def test_searches_several_drafts(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, num_drafts=2, budget_s=240.0)
    engine = engine_of(equal, noise=0.02)

    def second_is_better(settings: SpeculationSettings, prompt: str) -> float:
        loaded = engine._draft.path if engine._draft is not None else ""
        return 1.4 if settings.method == "draft" and loaded == str(plan.drafts[1]) else 0.9

    engine.truth = second_is_better
    result = await tuned(engine, plan)
    assert result.winner is not None and result.winner.setting.draft == plan.drafts[1]
    assert result.measurements[0].plan.draft == plan.drafts[1]
    # A draft is loaded when it changes, and not before each run.
    num_loads = sum(bool(request.draft_path) for request in engine.requests if isinstance(request, Configure))
    assert num_loads < engine.num_runs / 4


async def test_verification_is_searched_at_a_temperature_only(tmp_path: Path) -> None:
    for temperature, expected in ((0.0, {"exact"}), (0.8, {"exact", "rejection", "block"})):
        plan = plan_of(tmp_path, budget_s=300.0, sampling=SamplingSettings(temperature=temperature))
        result = await tuned(engine_of(peaked), plan)
        assert {trial.setting.speculation.verification for trial in result.trials} <= expected
        assert (temperature == 0.0) == all(t.setting.speculation.verification == "exact" for t in result.trials)


@pytest.mark.parametrize("budget_s", [40.0, 75.0, 200.0])
@pytest.mark.parametrize("truth", [peaked, equal, losing])
async def test_keeps_the_budget(tmp_path: Path, budget_s: float, truth: Truth) -> None:
    result = await tuned(engine_of(truth), plan_of(tmp_path, budget_s=budget_s))
    assert result.elapsed_s <= 1.02 * budget_s
    assert result.is_conclusive


async def test_a_slow_draft_does_not_break_the_budget(tmp_path: Path) -> None:
    def slow(settings: SpeculationSettings, prompt: str) -> float:
        return 0.25

    result = await tuned(engine_of(slow), plan_of(tmp_path, budget_s=100.0))
    assert result.elapsed_s <= 1.1 * 100.0 and result.winner is None


async def test_a_small_budget_names_the_least_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        await tuned(engine_of(peaked, step_s=0.1), plan_of(tmp_path, budget_s=30.0))
    word = caught.value.hint.split("--budget ")[1].split(";")[0]
    result = await tuned(engine_of(peaked, step_s=0.1), plan_of(tmp_path, budget_s=parse_budget(word)))
    assert result.confirmed and result.elapsed_s <= 1.02 * parse_budget(word)


async def test_shorter_answers_where_time_is_short(tmp_path: Path) -> None:
    lengths = []
    for budget_s in (40.0, 300.0):
        engine = engine_of(peaked)
        await tuned(engine, plan_of(tmp_path, budget_s=budget_s))
        lengths.append(max(r.max_tokens for r in engine.requests if isinstance(r, Generate)))
    assert 32 <= lengths[0] < lengths[1] == 128


async def test_threads_that_help_off_are_found_and_said(tmp_path: Path) -> None:
    engine = engine_of(losing, plain=lambda context: 1.2 if context.n_threads == 3 else 1.0)
    result = await tuned(engine, plan_of(tmp_path))
    assert result.cold.changes == ("threads 3",) and result.cold.context.n_threads == 3
    assert result.cold.off_gain == pytest.approx(1.2, rel=0.02)
    assert engine.context.n_threads == 3
    assert any("off itself gains 1.20x by threads 3" in sentence for sentence in result_sentences(result))


async def test_the_confirmation_runs_with_the_threads_that_were_found(tmp_path: Path) -> None:
    engine = engine_of(peaked, plain=lambda context: 1.2 if context.n_threads == 3 else 1.0)
    result = await tuned(engine, plan_of(tmp_path))
    assert result.measurements[0].plan.context.n_threads == 3


async def test_what_was_stated_is_not_searched(tmp_path: Path) -> None:
    engine = engine_of(peaked)
    plan = plan_of(tmp_path, fixed_knobs=frozenset({"threads", "flash_attn"}))
    result = await tuned(engine, plan)
    loads = [request for request in engine.requests if isinstance(request, LoadModels)]
    assert len(loads) == 1 and len(result.cold.trials) == 1


async def test_cache_types_are_tried_when_allowed_and_said(tmp_path: Path) -> None:
    def typed(context: ContextSettings) -> float:
        return 1.3 if context.type_k == "q8_0" else 1.0

    for kv_types, found in (((), False), (("q8_0",), True)):
        result = await tuned(engine_of(losing, plain=typed), plan_of(tmp_path, kv_types=kv_types))
        assert ("KV q8_0" in result.cold.changes) is found
        assert any("changes the text a little" in note for note in result.notes) is found


@pytest.mark.parametrize("stage", ["screen", "search", "confirm"])
async def test_cancelling_keeps_what_is_known(tmp_path: Path, stage: Stage) -> None:
    result = await cancelled(engine_of(peaked), plan_of(tmp_path), lambda told: told.stage == stage)
    assert result.is_interrupted and not result.is_conclusive
    assert result.winner is None and result.confirmed == ()
    assert bool(result.trials) is (stage == "confirm")
    first = result_sentences(result)[0]
    # What threads gain without drafts may be known, and then follows.
    assert first.startswith("Ended early" if stage == "confirm" else "Ended before anything was known of drafting")
    assert tuning_record(result)["interrupted"] is True


async def test_cancelling_late_in_the_search_names_the_best_so_far(tmp_path: Path) -> None:
    result = await cancelled(
        engine_of(peaked), plan_of(tmp_path), lambda told: told.stage == "search" and len(told.cells) >= 2
    )
    assert result.is_interrupted and result.trials and result.cells
    assert "nothing is confirmed" in result_sentences(result)[0]


async def test_cancelling_before_the_models_are_loaded_is_cancelling(tmp_path: Path) -> None:
    with pytest.raises(asyncio.CancelledError):
        await cancelled(engine_of(peaked), plan_of(tmp_path), lambda told: told.stage == "load")


async def test_progress_tells_stages_in_order_and_a_map_that_fills(tmp_path: Path) -> None:
    told: list[TuningProgress] = []
    result = await tuned(engine_of(peaked), plan_of(tmp_path), told.append)
    assert list(dict.fromkeys(progress.stage for progress in told)) == ["load", "screen", "search", "confirm"]
    sizes = [len(progress.cells) for progress in told]
    assert sizes == sorted(sizes) and sizes[-1] == len(result.cells) > 2
    assert [progress.elapsed_s for progress in told] == sorted(progress.elapsed_s for progress in told)
    assert all(progress.best is None or (progress.best.ratio or 0.0) > 1.0 for progress in told)
    ends = dict(told[-1].stage_ends_s)
    assert ends["load"] <= ends["screen"] <= ends["search"] <= ends["confirm"] == result.plan.budget_s


async def test_several_workloads_weigh_the_same(tmp_path: Path) -> None:
    def split(settings: SpeculationSettings, prompt: str) -> float:
        if settings.method == "suffix":
            return 2.0 if prompt.startswith("copy") else 0.6
        return 1.25 if settings.method == "draft" else 0.9

    plan = plan_of(tmp_path, workloads=(workload("copy"), workload("open")), budget_s=300.0)
    result = await tuned(engine_of(split, noise=0.02), plan)
    assert result.winner is not None and result.winner.setting.speculation.method == "draft"
    assert [name for name, _ in result.winner.by_workload] == ["copy", "open"]
    suffix = next(trial for trial in result.trials if trial.setting.speculation.method == "suffix")
    assert suffix.ratio == pytest.approx(1.1, abs=0.06)


async def test_a_way_that_cannot_run_is_told_and_passed_over(tmp_path: Path) -> None:
    engine = engine_of(peaked)
    engine.scripts = {"draft": ArmScript(off_reason="the draft is too old"), "cascade": ArmScript(failure="no")}
    result = await tuned(engine, plan_of(tmp_path))
    reasons = {trial.setting.speculation.method: trial.reason for trial in result.trials if trial.reason}
    assert reasons["draft"] == "the draft is too old" and reasons["cascade"] == "no"
    assert result.winner is not None and result.winner.setting.speculation.method == "auto"


async def test_auto_without_its_draft_is_not_taken_for_auto_with_it(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, num_drafts=2)
    result = await tuned(engine_of(peaked, draft_failure="no pair"), plan)
    theirs = [trial for trial in result.trials if trial.setting.draft == plan.drafts[1]]
    assert "auto" in {trial.setting.speculation.method for trial in theirs}
    assert all(trial.ratio is None and trial.reason == "no pair" for trial in theirs)


async def test_a_target_that_nothing_can_draft_for_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recurrent(path: str) -> ModelInfo:
        return replace(model_info(path), can_roll_back=False)

    monkeypatch.setattr("tests.tuning_kit.model_info", recurrent)
    engine = engine_of(peaked)
    with pytest.raises(UsageError, match="nothing can draft for it"):
        await tuned(engine, plan_of(tmp_path))
    assert not engine.num_runs


async def test_runs_begin_without_what_earlier_ones_taught(tmp_path: Path) -> None:
    engine = engine_of(peaked)
    await tuned(engine, plan_of(tmp_path))
    adaptive = [r for r in engine.requests if isinstance(r, Configure) and r.speculation.method == "auto"]
    assert adaptive and all(request.pacing_state == "{}" for request in adaptive)
    assert not any(request.speculation.remembers for request in engine.requests if isinstance(request, Configure))


async def test_steps_are_measured_once_for_each_way_of_loading(tmp_path: Path) -> None:
    engine = engine_of(peaked)
    result = await tuned(engine, plan_of(tmp_path))
    measured = [request for request in engine.requests if isinstance(request, MeasureSteps)]
    assert len(measured) == len(result.cold.trials) > 3


async def cancelled(engine: SpeedyEngine, plan: TuningPlan, when: Callable[[TuningProgress], bool]) -> TuningResult:
    """Search, and cancel the task at the first progress of that kind."""
    task: asyncio.Task[TuningResult] | None = None

    def watch(told: TuningProgress) -> None:
        if task is not None and when(told):
            task.cancel()

    task = asyncio.create_task(tuned(engine, plan, watch))
    return await task


async def test_a_winner_that_was_confirmed_on_battery_is_marked(tmp_path: Path) -> None:
    cases: tuple[tuple[tuple[PowerSource, ...], bool, bool], ...] = (
        # At the start, at the confirmation, after it.
        (("battery", "battery", "battery"), True, True),
        (("mains", "mains", "battery"), True, True),
        (("battery", "mains", "mains"), False, True),
        (("mains", "mains", "mains"), False, False),
    )
    for readings, is_marked, was_on_battery in cases:
        left: list[PowerSource] = list(readings)

        def read_power(left: list[PowerSource] = left) -> tuple[PowerSource, float | None]:
            return left.pop(0), 50.0

        result = await tuned(engine_of(peaked), plan_of(tmp_path), read_power=read_power)
        assert result.winner is not None and left == []
        assert ("Measured on battery: it may be otherwise on mains." in result_sentences(result)) is is_marked
        assert confirmation_marks(result) == (("on battery",) if is_marked else ())
        document = measurement_record(result.measurements[0])
        assert document["device"]["power_source"] == ("battery" if is_marked else "mains")
        record = tuning_record(result)
        assert record["confirmation_marks"] == list(confirmation_marks(result))
        assert record["on_battery"] is was_on_battery is any("runs on battery" in note for note in result.notes)


async def test_throttling_and_drift_mark_a_winner(tmp_path: Path) -> None:
    counts = iter(range(100))
    result = await tuned(
        engine_of(peaked, noise=0.005, drift=1.02),
        plan_of(tmp_path),
        read_clock=lambda: ClockReading(None, None, next(counts)),
    )
    assert result.winner is not None
    throttled, drifted = confirmation_marks(result)
    assert throttled == "while the hardware slowed itself down"
    assert drifted.startswith("while speed without drafts became") and drifted.endswith("slower")
    assert any("cool and quiet" in sentence for sentence in result_sentences(result))


async def test_what_is_confirmed_by_a_machine_in_order_has_no_mark(tmp_path: Path) -> None:
    result = await tuned(engine_of(peaked), plan_of(tmp_path), read_clock=lambda: ClockReading(None, None, 3))
    assert result.winner is not None and confirmation_marks(result) == ()
    assert not any(sentence.startswith("Measured ") for sentence in result_sentences(result))


async def test_threads_of_the_draft_help_drafting_and_are_no_gain_of_off(tmp_path: Path) -> None:
    for truth, is_said in ((peaked, True), (losing, False)):
        engine = engine_of(truth, draft_step=lambda context: 0.2 if context.n_threads == 2 else 0.6)
        result = await tuned(engine, plan_of(tmp_path))
        assert result.cold.of_draft == result.cold.changes == ("draft threads 2",) and result.cold.off_gain is None
        assert engine.draft_context.n_threads == 2 and engine.context.n_threads == 0
        said = [sentence for sentence in result_sentences(result) if "draft threads 2" in sentence]
        assert bool(said) is is_said and not any("off itself gains" in sentence for sentence in said)
        if is_said:
            assert result.measurements[0].plan.draft_context is not None
            assert result.measurements[0].plan.draft_context.n_threads == 2


def slowing(engine: SpeedyEngine, factor: float) -> Callable[[TuningProgress], None]:
    """Return a watcher that makes the machine slower once something is confirmed."""

    def watch(told: TuningProgress) -> None:
        if told.stage == "confirm" and engine.step_s < 0.01 * factor:
            engine.step_s = 0.01 * factor

    return watch


async def test_a_confirmation_on_a_machine_that_became_slow_ends_all_the_same(tmp_path: Path) -> None:
    engine = engine_of(peaked, noise=0.01)
    plan = plan_of(tmp_path, workloads=(workload("copy"), workload("open")), budget_s=100.0)
    result = await tuned(engine, plan, slowing(engine, 5.0))
    assert result.elapsed_s < 1.4 * plan.budget_s and not result.is_interrupted
    assert any("slower than in the search" in note for note in result.notes)
    # A pair on the second text decides nothing.
    assert result.winner is None and result.is_unsettled and not result.is_conclusive
    first, *others = result_sentences(result)
    assert first.startswith("Nothing is settled: too few pairs were run.")
    assert any("which settles nothing" in sentence for sentence in others)
    assert not any("Leave drafts off" in sentence for sentence in (first, *others))
    assert tuning_record(result)["conclusive"] is False


async def test_one_text_alone_settles_nothing_for_two(tmp_path: Path) -> None:
    engine = engine_of(peaked, noise=0.01)
    plan = plan_of(tmp_path, workloads=(workload("copy"), workload("open")), budget_s=100.0)
    result = await tuned(engine, plan, slowing(engine, 8.0))
    assert {one.reason for one in result.confirmed} == {UNFINISHED} and result.winner is None
    first = result_sentences(result)[0]
    assert first.startswith("Nothing is settled: the time was over before it had run on all texts.")


async def test_fewer_pairs_settle_it_where_the_gain_is_clear(tmp_path: Path) -> None:
    engine = engine_of(peaked, noise=0.01)
    result = await tuned(engine, plan_of(tmp_path, budget_s=60.0), slowing(engine, 5.0))
    assert result.elapsed_s < 1.4 * 60.0
    assert result.winner is not None and result.winner.speedup is not None
    assert result.winner.speedup.pairs >= 3 and any("slower than in the search" in note for note in result.notes)


async def test_figures_that_cannot_be_relied_on_settle_nothing(tmp_path: Path) -> None:
    engine = engine_of(peaked, noise=0.01)
    begun = len(engine.requests)

    def watch(told: TuningProgress) -> None:
        nonlocal begun
        if told.stage == "confirm":
            begun += 1
            engine.step_s = 0.01 * (1.0 + begun / 30)

    result = await tuned(engine, plan_of(tmp_path, budget_s=200.0), watch)
    assert result.confirmed and all(one.reason == UNRELIABLE for one in result.confirmed)
    assert result_sentences(result)[0].startswith("Nothing is settled: the baseline changed too much")
    assert result.is_unsettled and not result.is_conclusive


async def test_a_gain_that_few_pairs_do_not_show_is_unsettled_and_not_denied(tmp_path: Path) -> None:
    engine = engine_of(equal, noise=0.25)
    result = await tuned(engine, plan_of(tmp_path, budget_s=60.0), slowing(engine, 5.0))
    assert result.measurements[0].results[0].is_interrupted
    assert {one.verdict for one in result.confirmed} == {"no_clear_difference"} and result.is_unsettled
    assert result_sentences(result)[0].startswith("Nothing is settled: too few pairs were run.")
