from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.engine.events import LoadProgress
from localspec.engine.requests import Configure, Generate
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.errors import LocalspecError, UsageError
from localspec.hardware.throttling import ClockReading
from localspec.metrics.statistics import Estimate
from localspec.session.loading import load_models
from localspec.session.measurement import MeasurementPlan, MeasurementProgress, load_for, open_measurement
from localspec.session.pacing_memory import COLD
from localspec.session.profiles import make_profile, read_profile
from localspec.session.records import document_of
from localspec.session.rerun import make_rerun
from localspec.session.run_export import exported
from localspec.session.run_keeping import RunKeeper
from localspec.session.suite import WORKLOADS, SuitePlan, ended_suite, run_suite
from localspec.session.suite_result import (
    Goal,
    SuiteResult,
    SuiteRow,
    best_single,
    goal_line,
    suite_record,
    suite_sentences,
)
from localspec.store.database import Database
from localspec.store.runs import Runs
from localspec.store.values import StoredRun
from tests.scripted_engine import ArmScript, ScriptedEngine


def plan_of(names: tuple[str, ...] = ("quote", "chat"), lengths: tuple[int, ...] = (1, 4), pairs: int = 2) -> SuitePlan:
    known = load_workloads()
    plan = MeasurementPlan(
        target=Path(__file__),
        draft=None,
        context=ContextSettings(),
        arms=(),
        workloads=tuple(find_workload(name, known) for name in names),
        sampling=SamplingSettings(),
        is_temperature_fixed=False,
        max_tokens=24,
        num_pairs=pairs,
        warmup_tokens=2,
    )
    return SuitePlan(plan, SpeculationSettings(), has_draft=False, lengths=lengths)


async def measured(engine: ScriptedEngine, suite: SuitePlan, clock: object = None) -> SuiteResult:
    def ignore(event: LoadProgress | MeasurementProgress) -> None:
        pass

    await load_models(engine, Path(__file__), None, ContextSettings(), SpeculationSettings(), ignore)
    return await run_suite(engine, suite, ignore, engine.clock)


def scripts(auto: int, ngram: int, suffix: int) -> dict[str, ArmScript]:
    return {"auto": ArmScript((auto,)), "ngram": ArmScript((ngram,)), "suffix": ArmScript((suffix,))}


def test_all_fixed_settings_are_there_once() -> None:
    suite = replace(plan_of(WORKLOADS), has_draft=True, lengths=(1, 2, 3, 4, 6, 8))
    names = [arm.name for arm in suite.arms]
    assert len(suite.fixed) == 18 and len(set(names)) == 20
    assert names[:2] == ["off", "auto"] and {"draft n_max 8", "ngram n_max 1", "suffix n_max 6"} <= set(names)
    assert {(arm.speculation.pacing, arm.speculation.n_min) for arm in suite.arms[2:]} == {("fixed", 0)}


async def test_the_best_fixed_setting_is_found_and_auto_is_held_against_it() -> None:
    engine = ScriptedEngine(scripts=scripts(auto=2, ngram=0, suffix=4))  # type: ignore[arg-type]
    result = await measured(engine, plan_of())
    assert [row.workload for row in result.rows] == ["quote", "chat"]
    for row in result.rows:
        assert set(row.grid) == {"ngram n_max 1", "ngram n_max 4", "suffix n_max 1", "suffix n_max 4"}
        assert row.best == "suffix n_max 4" == max(row.grid, key=lambda name: row.grid[name])
        assert row.auto is not None and row.best_speedup is not None and row.auto_of_best is not None
        ratio = row.auto.median / row.best_speedup.median
        assert row.auto_of_best.median == pytest.approx(ratio, rel=0.02) and ratio < 1.0
    assert result.single == "suffix n_max 4"
    assert result.auto_mean is not None and result.single_mean is not None and result.auto_mean < result.single_mean
    of_off, of_best, of_single, of_segments = result.goals
    assert of_off.is_met and not of_best.is_met and not of_single.is_met and not of_segments.is_met
    assert result.switch is not None and result.switch.best == ("suffix n_max 4",) * 3
    assert suite_record(result)["goals"][0]["is_met"] is True


async def test_where_nothing_pays_off_is_the_best() -> None:
    slow = ArmScript((0,), draft_step_s=0.01)
    engine = ScriptedEngine(scripts={"ngram": slow, "suffix": slow, "auto": ArmScript(drafts_every=0)})
    result = await measured(engine, plan_of())
    for row in result.rows:
        assert row.best == "off" and row.best_speedup is None
        assert row.auto_of_best is not None and row.auto_of_best.median == pytest.approx(1.0)
    assert all(goal.is_met for goal in result.goals)
    assert result.switch is not None and result.switch.auto_of_best is not None
    assert result.switch.auto_of_best.median == pytest.approx(1.0)


async def test_auto_is_cold_in_every_answer_but_within_the_text_that_changes() -> None:
    engine = ScriptedEngine(scripts=scripts(2, 1, 3))  # type: ignore[arg-type]
    await measured(engine, plan_of())
    asked = [request for request in engine.requests if isinstance(request, Configure | Generate)]
    since_cold = [0]
    for request in asked:
        if isinstance(request, Configure):
            if request.speculation.method == "auto":
                assert request.pacing_state == COLD
            since_cold.append(0)
            is_auto = request.speculation.method == "auto"
        elif is_auto:
            since_cold[-1] += 1
    counts = [count for count in since_cold if count]
    # Two workloads with a warm-up and two pairs; then twice the three segments in a row.
    assert counts == [1] * 6 + [3, 3]
    assert all(request.ignore_eog for request in asked if isinstance(request, Generate))


async def test_when_the_time_is_over_what_is_known_is_told() -> None:
    engine = ScriptedEngine(scripts=scripts(2, 1, 3))  # type: ignore[arg-type]
    result = await measured(engine, replace(plan_of(), budget_s=0.5))
    assert result.rows and result.switch is None
    assert any("The time was over before" in note for note in result.notes)
    assert result.goals[-1].is_met is None


async def test_an_interruption_keeps_what_is_known() -> None:
    engine = ScriptedEngine(scripts=scripts(2, 1, 3))  # type: ignore[arg-type]
    # Of each workload: five warm-ups, five runs and the closing one.
    num_grid = 2 * (5 + 5 + 1)

    def interrupt(engine: ScriptedEngine, round_: object) -> None:
        if len(engine.generated) == num_grid + 4:
            raise asyncio.CancelledError

    engine.on_round = interrupt
    result = await measured(engine, plan_of())
    assert result.is_interrupted and [row.workload for row in result.rows] == ["quote", "chat"]
    assert all(row.auto is None for row in result.rows)


def test_the_best_single_setting_is_best_over_all() -> None:
    assert best_single([{"a": 2.0, "b": 1.4}, {"a": 0.5, "b": 1.2}]) == "b"
    assert best_single([{"a": 2.0}, {"b": 1.2}]) == best_single([]) == ""


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert Goal("x", 1.0, None).is_met is None
    row = SuiteRow("chat", 10.0, {}, auto=Estimate(0.98, 0.97, 1.0, 3))
    goals = SuiteResult(rows=(row,)).goals
    assert (goals[0].is_met, goals[0].where) == (True, "chat")
    assert goal_line(goals[0]).startswith("met: ")
    assert [goal.is_met for goal in goals[1:]] == [None, None, None]


def test_a_part_of_the_workloads_stands_for_no_whole() -> None:
    fast, slow = Estimate(1.2, 1.1, 1.3, 3), Estimate(0.9, 0.8, 0.95, 3)
    rows = (SuiteRow("edit", 10.0, {}, fast, auto_of_best=slow), SuiteRow("chat", 10.0, {}))
    of_off, of_best, of_single, _ = SuiteResult(rows=rows, num_workloads=6).goals
    assert (of_off.is_met, of_best.is_met, of_single.is_met) == (None, False, None)
    assert goal_line(of_off).startswith("not known of all: ") and "(edit), of 1 of 6 workloads" in goal_line(of_off)
    assert goal_line(of_best).startswith("missed: ")


async def test_no_setting_is_called_best_over_all_before_all_have_their_grid() -> None:
    engine = ScriptedEngine(scripts=scripts(2, 1, 3))  # type: ignore[arg-type]
    result = await measured(engine, replace(plan_of(), budget_s=0.1))
    assert len(result.rows) == 1 and result.single == "" and result.num_workloads == 2


async def kept_suite(
    folder: Path, engine: ScriptedEngine, suite: SuitePlan, finishes: bool = True
) -> tuple[StoredRun, SuiteResult | None]:
    """Measure a suite as the command does, and return what the store has of it; `finishes`: it came to its end."""
    plan = replace(suite.plan, arms=suite.arms, with_hashes=True)
    suite = replace(suite, plan=plan)

    def database() -> Database:
        return Database(folder / "kept.sqlite3")

    said: list[str] = []
    keeper = RunKeeper("suite", database, said.append)
    watch = keeper.watching(lambda progress: None)
    ready = await load_for(engine, plan, watch)
    opening = await open_measurement(plan, ready.examination, ready.loaded, ready.memory, watch)
    result = None
    try:
        result = await run_suite(engine, suite, watch, engine.clock, opening)
    except LocalspecError as error:
        keeper.fail(error.message)
    if result is not None and finishes:
        keeper.finish(ended_suite(opening, result, ClockReading(None, None, None)), {"suite": suite_record(result)})
    assert said == []
    with database() as opened:
        (summary,) = Runs(opened).summaries()
        return Runs(opened).get(summary.id), result


async def test_a_suite_is_kept_as_one_run(tmp_path: Path) -> None:
    engine = ScriptedEngine(scripts=scripts(auto=2, ngram=0, suffix=4))  # type: ignore[arg-type]
    stored, result = await kept_suite(tmp_path, engine, plan_of(pairs=3))
    assert result is not None
    summary, document = stored.summary, document_of(stored)
    assert (summary.kind, summary.state, summary.workloads) == ("suite", "done", ("quote", "chat"))
    # A suite asks for `auto`, whatever single setting did better.
    assert summary.best_arm == "auto" and summary.speedup is not None and summary.speedup > 1.0
    assert [entry["name"] for entry in document["workloads"]] == ["quote", "chat"]
    for entry in document["workloads"]:
        names = [arm["name"] for arm in entry["arms"]]
        assert names[:2] == ["off", "auto"] and "suffix n_max 4" in names and entry["pairs"] == 3
    # Every fixed setting, of those that were no finalists too, is in the suite's own part.
    assert set(document["suite"]["rows"][0]["grid"]) == set(result.rows[0].grid)
    assert suite_sentences(document) == tuple(goal_line(goal) for goal in result.goals)
    assert document["target"]["sha256"] and document["settings"]["pacing_start"] == "cold"
    chosen = read_profile(make_profile("from a suite", stored, datetime(2026, 1, 2, tzinfo=UTC)))
    assert chosen.document.speculation.method == "suffix" and chosen.document.speculation.n_max == 4
    assert exported(stored)["suite"]["goals"]


async def test_what_a_suite_had_measured_survives_its_process(tmp_path: Path) -> None:
    engine = ScriptedEngine(scripts=scripts(auto=2, ngram=0, suffix=4))  # type: ignore[arg-type]
    # Of each workload five warm-ups, five runs and the closing one; then the finalists of the first one, in part.
    num_grid = 2 * (5 + 5 + 1)

    def interrupt(engine: ScriptedEngine, round_: object) -> None:
        if len(engine.generated) == num_grid + 8:
            raise asyncio.CancelledError

    engine.on_round = interrupt
    stored, _ = await kept_suite(tmp_path, engine, plan_of(pairs=3), finishes=False)
    assert stored.document is None
    quote, chat = document_of(stored)["workloads"]
    assert {record["part"] for record in stored.trials} == {"fixed", "finalists"}
    assert quote["arms"][1]["name"] == "auto" and quote["arms"][1]["num_trials"] == 1
    # No finalists yet: every fixed setting, each once.
    assert [arm["name"] for arm in chat["arms"]] == ["off", *(arm.name for arm in plan_of().arms[2:])]
    assert chat["arms"][-1]["speedup"]["median"] > 1.0


async def test_an_interrupted_suite_is_kept_with_what_it_has(tmp_path: Path) -> None:
    engine = ScriptedEngine(scripts=scripts(auto=2, ngram=0, suffix=4))  # type: ignore[arg-type]

    def interrupt(engine: ScriptedEngine, round_: object) -> None:
        # Among the fixed settings of the second workload.
        if len(engine.generated) == 11 + 8:
            raise asyncio.CancelledError

    engine.on_round = interrupt
    stored, result = await kept_suite(tmp_path, engine, plan_of())
    assert result is not None and result.is_interrupted
    document = document_of(stored)
    assert stored.summary.state == "interrupted" and document["interrupted"]
    assert [len(entry["trials"]) for entry in document["workloads"]] == [6, 2]
    with pytest.raises(UsageError, match="is a suite"):
        make_rerun(stored, ())


async def test_a_suite_that_fails_keeps_its_reason(tmp_path: Path) -> None:
    for after, state in ((3, "failed"), (11 + 8, "failed")):
        engine = ScriptedEngine(scripts=scripts(auto=2, ngram=0, suffix=4))  # type: ignore[arg-type]

        def fail(engine: ScriptedEngine, round_: object, after: int = after) -> None:
            if len(engine.generated) == after:
                raise LocalspecError("the disk is on fire", "")

        engine.on_round = fail
        folder = tmp_path / str(after)
        folder.mkdir()
        stored, _ = await kept_suite(folder, engine, plan_of())
        assert stored.summary.state == state
        assert document_of(stored)["failure"] == "the disk is on fire"
