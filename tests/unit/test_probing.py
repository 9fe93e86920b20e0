"""The probe: what follows from step costs, and how it begins and ends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.events import Event, StepCost, StepsProgress
from localspec.engine.requests import LoadModels
from localspec.engine.values import ContextSettings
from localspec.errors import DecodeError, ModelLoadError, UsageError
from localspec.hardware.throttling import ClockReading
from localspec.metrics.prediction import predicted_speedup
from localspec.session.probe_record import probe_record
from localspec.session.probe_words import condition_sentences, finding, verdict_sentence
from localspec.session.probing import (
    DRAFT_COSTS,
    WIDTHS,
    ProbePlan,
    ProbeReport,
    needed_acceptance,
    needed_rows,
    probe_target,
    workload_text,
)
from localspec.session.records import encode_record
from localspec.session.step_curve import StepCurve
from tests.probe_kit import COSTS, FLAT, STEEP, ProbeEngine, curve_of, step

QUIET = ClockReading(None, None, None)


@pytest.fixture
def plan(tmp_path: Path) -> ProbePlan:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return ProbePlan(path, None, ContextSettings(n_ctx=4096), "some text", "made up")


async def probe(engine: ProbeEngine, plan: ProbePlan) -> tuple[ProbeReport, list[Event]]:
    heard: list[Event] = []
    return await probe_target(engine, plan, heard.append, lambda: QUIET), heard


def test_costs_are_relative_to_one_token() -> None:
    curve = curve_of(COSTS, draft_cost=0.25)
    assert curve.costs == pytest.approx(COSTS)
    assert curve.draft_cost == pytest.approx(0.25)
    assert curve.single_s == pytest.approx(0.01)


def test_a_worked_example() -> None:
    # Two tokens in 1.6 steps: 1 + a = 1.6. With a draft of a tenth: 1 + a = 1.7.
    curve = curve_of({1: 1.0, 2: 1.6})
    free, cheap = curve.needed(0.0).best, curve.needed(0.1).best
    assert free is not None and free.n == 1 and free.acceptance == pytest.approx(0.6)
    assert cheap is not None and cheap.acceptance == pytest.approx(0.7)
    # The step is timed within 1 % of its median in half of the cases.
    assert free.low == pytest.approx(0.584) and free.high == pytest.approx(0.616)


def test_the_best_length_jumps_over_a_stair() -> None:
    # One more token costs as much as seven more, so that one alone does not pay.
    curve = curve_of({1: 1.0, 2: 1.9, 5: 1.95, 9: 2.0})
    best = curve.needed(0.0).best
    assert best is not None and best.n == 8
    assert best.acceptance == pytest.approx(0.5, abs=0.002)
    first = curve.needed(0.0).at(1)
    assert first is not None and first.acceptance == pytest.approx(0.9)
    assert curve.needed(0.0).at(3) is None


def test_dear_drafts_never_pay_and_on_a_steep_curve_none_does() -> None:
    assert curve_of(COSTS).needed(2.0).best is None
    assert curve_of(STEEP).needed(0.0).best is None
    assert all(need.acceptance is None for need in curve_of(STEEP).needed(0.0).lengths)


@given(st.floats(0.0, 1.5), st.floats(0.0, 0.5))
def test_at_the_needed_acceptance_nothing_is_gained_and_a_dearer_draft_needs_more(cost: float, more: float) -> None:
    curve = curve_of(COSTS)
    best, dearer = curve.needed(cost).best, curve.needed(cost + more).best
    if best is not None and best.acceptance is not None:
        assert predicted_speedup(best.acceptance, best.n, cost, COSTS[best.n + 1]) == pytest.approx(1.0, abs=1e-6)
    if dearer is not None and dearer.acceptance is not None:
        assert best is not None and best.acceptance is not None
        assert best.acceptance <= dearer.acceptance + 1e-9


@given(st.lists(st.floats(0.2, 9.0), min_size=2, max_size=10), st.floats(0.0, 0.4), st.floats(0.0, 0.8))
def test_needs_lie_within_their_ranges_and_fits_never_fall(costs: list[float], spread: float, cost: float) -> None:
    curve = curve_of({1: 1.0} | {width: value for width, value in enumerate(costs, 2)}, spread=spread)
    fitted = [curve.fitted_costs[width] for width in sorted(curve.fitted_costs)]
    assert fitted == sorted(fitted) and fitted[0] == 1.0
    for need in curve.needed(cost).lengths:
        low, middle, high = (2.0 if value is None else value for value in (need.low, need.acceptance, need.high))
        assert low <= middle + 1e-9 and middle <= high + 1e-9


def test_only_clear_rises_are_claimed() -> None:
    noisy = step(3, 0.0165, spread=0.3)
    curve = StepCurve(256, (step(1, 0.01), step(2, 0.016), noisy, step(4, 0.0161), step(5, 0.0120)))
    assert set(curve.rises) == {2, 5}
    assert curve.rises[2] == pytest.approx(0.6) and curve.rises[5] == pytest.approx(-0.41)
    # Raw values stay as they are.
    assert curve.costs[5] == pytest.approx(1.2) and curve.fitted_costs[5] == curve.fitted_costs[4] > 1.4


def test_rows_have_the_measured_draft_in_its_place() -> None:
    rows = needed_rows(curve_of(COSTS, draft_cost=0.12))
    assert [row.draft_cost for row in rows] == pytest.approx(sorted((*DRAFT_COSTS, 0.12)))
    assert [row.draft_cost for row in rows if row.is_measured] == pytest.approx([0.12])
    assert not any(row.is_measured for row in needed_rows(curve_of(COSTS)))


@pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf")])
def test_costs_that_are_none_are_refused(cost: float) -> None:
    with pytest.raises(ValueError, match="draft cost"):
        curve_of(COSTS).needed(cost)


def test_verdicts() -> None:
    curve = curve_of(COSTS)
    assert verdict_sentence(curve) == (
        f"With this target here a draft of 10 % of its cost pays from an acceptance of {_best(curve, 0.1)}, one that "
        f"costs nothing (n-gram, suffix) from {_best(curve, 0.0)}; the first is below what is published for small "
        "drafts, 0.6 to 0.8."
    )
    own = verdict_sentence(curve_of(COSTS, draft_cost=0.3))
    assert "this draft, of 30 % of its cost, pays from" in own and "is within what" in own
    assert "above what" in verdict_sentence(curve_of(COSTS, draft_cost=0.5))
    never = verdict_sentence(curve_of(COSTS, draft_cost=3.0))
    assert "this draft, of 300 % of its cost, never pays, even if it is always right; one that costs nothing" in never
    assert verdict_sentence(curve_of(STEEP)).startswith("With this target here no draft pays")
    assert finding(curve_of(FLAT)).startswith("A draft of 10 % of the target's cost pays from an acceptance of 0.1")
    assert "never pays" in finding(curve_of(COSTS, draft_cost=3.0)) and "No draft" in finding(curve_of(STEEP))


def _best(curve: StepCurve, cost: float) -> str:
    best = curve.needed(cost).best
    assert best is not None
    return f"{best.acceptance:.2f} (k = {best.n})"


async def test_a_probe_of_a_target_alone(plan: ProbePlan) -> None:
    engine = ProbeEngine()
    report, heard = await probe(engine, plan)
    (request,) = engine.measured
    assert (request.text, request.depth, request.seconds, request.widths) == ("some text", 256, 15.0, WIDTHS)
    load = next(request for request in engine.requests if isinstance(request, LoadModels))
    assert (load.draft_path, load.speculation.method) == ("", "off")
    (curve,) = report.curves
    assert curve.costs == pytest.approx(COSTS) and curve.is_complete and curve.draft is None
    assert needed_acceptance(report, 0.1) == curve.needed(0.1) == needed_acceptance(report, 0.1, 256)
    with pytest.raises(ValueError, match="at 7 positions"):
        needed_acceptance(report, 0.1, 7)
    assert any(isinstance(event, StepsProgress) for event in heard)


async def test_two_depths_and_a_draft(plan: ProbePlan) -> None:
    report, _ = await probe(ProbeEngine(draft_cost=0.2), replace(plan, draft=plan.target, depths=(256, 2048)))
    assert [curve.depth for curve in report.curves] == [256, 2048]
    assert [curve.draft_cost for curve in report.curves] == pytest.approx([0.2, 0.2])


async def test_widths_that_no_batch_holds_are_left_out(plan: ProbePlan) -> None:
    engine = ProbeEngine()
    report, _ = await probe(engine, replace(plan, context=replace(plan.context, n_batch=8)))
    assert engine.measured[0].widths == WIDTHS[:8]
    assert needed_rows(report.curves[0])[0].at(8) is None


async def test_a_draft_that_cannot_be_used_is_refused(plan: ProbePlan) -> None:
    engine = ProbeEngine()
    engine.draft_failure = "it is no pair"
    with pytest.raises(ModelLoadError, match="it is no pair") as caught:
        await probe(engine, replace(plan, draft=plan.target))
    assert "target alone" in caught.value.hint and engine.measured == []


async def test_a_failure_before_any_step_is_raised_as_the_engine_names_it(plan: ProbePlan) -> None:
    with pytest.raises(UsageError, match="take back"):
        await probe(ProbeEngine(failure=("UsageError", "It cannot take back tokens."), num_reports=0), plan)


async def test_a_later_failure_keeps_what_was_measured(plan: ProbePlan) -> None:
    report, _ = await probe(ProbeEngine(failure=("DecodeError", "A step failed.")), plan)
    assert isinstance(report.failure, DecodeError) and not report.is_interrupted
    assert not report.curves[0].is_complete and report.curves[0].costs == pytest.approx(COSTS)
    # The made-up model's context has 256 positions, of which the widest step takes its share.
    assert report.curves[0].depth == 239


async def test_cancelling_keeps_what_was_measured_and_begins_no_other_depth(plan: ProbePlan) -> None:
    engine = ProbeEngine(num_reports=2)

    def cancel(event: Event) -> None:
        if isinstance(event, StepsProgress):
            task.cancel()

    task = asyncio.create_task(probe_target(engine, replace(plan, depths=(100, 200)), cancel, lambda: QUIET))
    report = await task
    assert len(engine.measured) == 1
    assert report.is_interrupted and [curve.depth for curve in report.curves] == [100]
    assert "ended early" in " ".join(condition_sentences(report))


async def test_steps_too_short_for_the_clock_are_refused(plan: ProbePlan) -> None:
    with pytest.raises(UsageError, match="too short"):
        await probe(ProbeEngine(costs={1: 0.0, 2: 0.0}, num_reports=0), plan)


async def test_what_makes_figures_doubtful_is_said(plan: ProbePlan) -> None:
    report, _ = await probe(ProbeEngine(), plan)
    quiet = replace(report, examination=replace(report.examination, notes=()))
    assert condition_sentences(quiet) == ()
    hot = replace(quiet, clocks=(ClockReading(None, None, 1), ClockReading(None, None, 2)))
    assert "slowed itself down" in condition_sentences(hot)[0]
    scattered = replace(quiet, curves=(curve_of(COSTS, spread=0.4),))
    assert "spans 40 %" in condition_sentences(scattered)[0]
    few = replace(quiet, curves=(StepCurve(256, (StepCost(1, 0.01, 0.01, 0.01, 3),)),))
    assert condition_sentences(few) == ("Only 3 steps of each width could be timed; a larger --seconds gives more.",)
    short = replace(quiet, curves=(replace(quiet.curves[0], depth=100),))
    assert "room for 100 positions before a step, not for 256" in condition_sentences(short)[0]


async def test_the_document_is_whole_and_plain(plan: ProbePlan) -> None:
    report, _ = await probe(ProbeEngine(), replace(plan, draft=plan.target))
    document = json.loads(encode_record(probe_record(report)))
    assert document["target"]["architecture"] == "llama" and document["settings"]["text"] == "made up"
    (depth,) = document["depths"]
    assert [item["width"] for item in depth["steps"]] == list(WIDTHS)
    assert depth["steps"][1]["cost"] == pytest.approx(1.6) and depth["steps"][1]["clear_rise"] == pytest.approx(0.6)
    assert depth["draft"]["cost"] == pytest.approx(0.1)
    rows = depth["needed"]
    assert [row["is_measured"] for row in rows].count(True) == 1
    assert rows[0]["best"]["acceptance"] < rows[-1]["best"]["acceptance"]
    assert depth["verdict"] == verdict_sentence(report.curves[0])


def test_a_workloads_text_has_all_its_prompts() -> None:
    prompts = (Prompt("a", "Be kind.", "Hello"), Prompt("b", "", "World"))
    assert workload_text(Workload("w", "W", "", False, None, prompts)) == "Be kind.\n\nHello\n\nWorld"
