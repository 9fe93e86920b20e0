"""One probe of a target: what its steps cost here, and what of that is shown meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.engine.events import Event, LoadProgress, StepsMeasured, StepsProgress
from localspec.session.draft_refusal import draft_refusal
from localspec.session.examination import examine
from localspec.session.figures import DASH, percent_text, speed_text
from localspec.session.load_plan import LoadPlan
from localspec.session.probe_words import acceptance_text, condition_sentences, verdict_sentence
from localspec.session.probing import (
    DEEP,
    ProbePlan,
    ProbeReport,
    needed_rows,
    probe_loaded,
    reached_depth,
    workload_text,
)
from localspec.session.step_curve import NeededAcceptance, StepCurve
from localspec.tui.braille import Point
from localspec.tui.engine_room import EngineRoom
from localspec.tui.probe_state import ProbeLine, ProbeSnapshot
from localspec.tui.runs.details import Figures
from localspec.tui.services import AppServices
from localspec.tui.state import Workbench

WORKLOAD = "summary"
"""What the steps read."""
DEPTH, SECONDS = 256, 15.0
"""Positions in the cache before each step, and the time for each depth."""
LENGTHS = (1, 2, 4, 8)
"""Drafted tokens in a round that have a column of their own."""
USUAL_COST = 0.1


class ProbeRun:
    """Carried out once. What is to be shown of it meanwhile is in `shown`."""

    def __init__(self, room: EngineRoom, services: AppServices, is_deep: bool = False) -> None:
        """Prepare; nothing happens yet.

        Args:
            room: has the engine.
            services: of the app.
            is_deep: measure behind more positions, too.
        """
        self._room = room
        self._services = services
        self._is_deep = is_deep
        self._depths: tuple[int, ...] = ()
        self._curves: tuple[StepCurve, ...] = ()
        self.shown = ProbeSnapshot(doing="starting")

    async def carry_out(self, bench: Workbench) -> ProbeSnapshot:
        """Load a bench's models and time them. Cancelling it ends it early with what was measured, if anything was.

        Raises:
            LocalspecError: nothing could be measured.
        """
        text = find_workload(WORKLOAD, await asyncio.to_thread(load_workloads))
        async with self._room.occupied("probing") as engine:
            loaded = await self._room.load(bench, self._hear)
            if bench.draft is not None and loaded.draft is None:
                name = "" if bench.target is None else bench.target.name
                raise draft_refusal(name, loaded.draft_failure, "Without a draft, the target alone is probed.")
            examination = await examine(engine)
            if examination.failure is not None:
                raise examination.failure
            assert bench.target is not None
            plan = ProbePlan(
                target=bench.target.path,
                draft=None if bench.draft is None else bench.draft.path,
                context=bench.context,
                draft_context=bench.draft_context,
                text=workload_text(text),
                text_name=text.name,
                depths=(DEPTH, DEEP) if self._is_deep else (DEPTH,),
                seconds=SECONDS,
            )
            self._depths = tuple(reached_depth(depth, loaded, plan) for depth in plan.depths)
            memory = self._room.load_plan or LoadPlan(bench.context, bench.draft_context, None)
            report = await probe_loaded(engine, plan, examination, loaded, memory, self._hear)
        self.shown = snapshot_of(report)
        return self.shown

    def _hear(self, event: Event) -> None:
        if isinstance(event, LoadProgress):
            self.shown = ProbeSnapshot(f"loading the {event.model}", event.fraction)
        elif isinstance(event, StepsProgress):
            depth = self._depths[min(len(self._curves), len(self._depths) - 1)]
            doing = f"timing steps of the {event.model} behind {depth} positions"
            self.shown = replace(self.shown, doing=doing, fraction=self._fraction(event.fraction))
            if event.model == "target" and len(event.costs) > 1 and event.costs[0].median_s > 0.0:
                self._draw((*self._curves, StepCurve(depth, event.costs, is_complete=False)))
        elif isinstance(event, StepsMeasured) and event.costs and event.costs[0].median_s > 0.0:
            curve = StepCurve(event.depth, event.costs, event.prefill_tps, event.draft, event.draft_prefill_tps)
            self._curves = (*self._curves, curve)
            self.shown = replace(self.shown, fraction=self._fraction(0.0))
            self._draw(self._curves)

    def _fraction(self, of_this: float) -> float:
        return min(1.0, (len(self._curves) + of_this) / len(self._depths))

    def _draw(self, curves: tuple[StepCurve, ...]) -> None:
        self.shown = replace(self.shown, cost=_cost(curves), needed=_needed(curves))


def snapshot_of(report: ProbeReport) -> ProbeSnapshot:
    """Return what is shown of a probe that has ended."""
    curves = report.curves
    failure = () if report.failure is None else (f"It broke off: {report.failure.message}",)
    return ProbeSnapshot(
        cost=_cost(curves),
        needed=_needed(curves),
        verdict="\n".join(f"{_behind(curve, curves)}{verdict_sentence(curve)}" for curve in curves),
        facts="\n".join(_facts(curve, is_alone=len(curves) == 1) for curve in curves),
        table=_table(curves),
        notes=(*failure, *condition_sentences(report), *report.memory_notes),
        is_done=True,
    )


def _behind(curve: StepCurve, curves: Sequence[StepCurve]) -> str:
    return f"Behind {curve.depth} positions: " if len(curves) > 1 else ""


def _facts(curve: StepCurve, is_alone: bool) -> str:
    step, depth = f"{1000.0 * curve.single_s:.1f} ms", curve.depth
    facts = [
        f"Behind {depth} positions a step of one token takes {step}" if is_alone else f"Behind {depth}: {step} a step"
    ]
    if curve.prefill_tps is not None:
        facts.append(f"the prompt is read with {speed_text(curve.prefill_tps)}")
    if curve.draft_cost is not None:
        facts.append(f"a step of the draft costs {percent_text(curve.draft_cost)} of one of the target")
    return f"{', '.join(facts)}."


def _cost(curves: Sequence[StepCurve]) -> tuple[ProbeLine, ...]:
    return tuple(
        ProbeLine(
            f"behind {curve.depth}" if len(curves) > 1 else "this target",
            tuple((float(width), cost) for width, cost in sorted(curve.costs.items())),
        )
        for curve in curves
    )


def _needed(curves: Sequence[StepCurve]) -> tuple[ProbeLine, ...]:
    return tuple(line for curve in curves for line in _needed_of(curve, is_alone=len(curves) == 1))


def _needed_of(curve: StepCurve, is_alone: bool) -> tuple[ProbeLine, ProbeLine]:
    own = curve.needed_by_draft()
    usual = curve.needed(USUAL_COST) if own is None else own
    name = f"a draft of {percent_text(usual.draft_cost)} of its cost" if own is None else "this draft"
    names = ("copied (n-gram, suffix)", name) if is_alone else (f"copied {curve.depth}", f"draft {curve.depth}")
    return ProbeLine(names[0], _points(curve.needed(0.0))), ProbeLine(names[1], _points(usual))


def _points(row: NeededAcceptance) -> tuple[Point, ...]:
    return tuple((float(need.n), need.acceptance) for need in row.lengths)


def _table(curves: Sequence[StepCurve]) -> Figures:
    columns = ("best k", "at least", *(f"k = {n}" for n in LENGTHS))
    rows: list[tuple[str, ...]] = []
    for curve in curves:
        if len(curves) > 1:
            rows.append((f"behind {curve.depth}:", *("" for _ in columns)))
        rows += _rows(curve)
    return Figures(columns, tuple(rows))


def _rows(curve: StepCurve) -> Iterator[tuple[str, ...]]:
    for row in needed_rows(curve):
        best = row.best
        label = f"{row.draft_cost:.2f}, this draft" if row.is_measured else f"{row.draft_cost:g}"
        cells = (DASH, "never") if best is None else (str(best.n), acceptance_text(best.acceptance))
        needs = (row.at(n) for n in LENGTHS)
        yield (label, *cells, *(DASH if need is None else acceptance_text(need.acceptance) for need in needs))
