"""One probe of a target: what its steps cost here, and what of that is shown meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.engine.events import Event, LoadProgress, StepsMeasured, StepsProgress
from localspec.session.draft_refusal import draft_refusal
from localspec.session.examination import examine
from localspec.session.figures import DASH, percent_text, speed_text
from localspec.session.load_plan import LoadPlan
from localspec.session.probe_words import acceptance_text, condition_sentences, verdict_sentence
from localspec.session.probing import ProbePlan, ProbeReport, needed_rows, probe_loaded, workload_text
from localspec.session.step_curve import NeededAcceptance, StepCurve
from localspec.tui.braille import Point
from localspec.tui.engine_room import EngineRoom
from localspec.tui.probe_state import NeedLine, ProbeSnapshot
from localspec.tui.runs.details import Figures
from localspec.tui.services import AppServices
from localspec.tui.state import Workbench

WORKLOAD = "summary"
"""What the steps read."""
SECONDS = 15.0
LENGTHS = (1, 2, 4, 8)
"""Drafted tokens in a round that have a column of their own."""
USUAL_COST = 0.1


class ProbeRun:
    """Carried out once. What is to be shown of it meanwhile is in `shown`."""

    def __init__(self, room: EngineRoom, services: AppServices) -> None:
        """Prepare; nothing happens yet.

        Args:
            room: has the engine.
            services: of the app.
        """
        self._room = room
        self._services = services
        self._depth = 0
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
                seconds=SECONDS,
            )
            self._depth = plan.depths[0]
            memory = self._room.load_plan or LoadPlan(bench.context, bench.draft_context, None)
            report = await probe_loaded(engine, plan, examination, loaded, memory, self._hear)
        self.shown = snapshot_of(report)
        return self.shown

    def _hear(self, event: Event) -> None:
        if isinstance(event, LoadProgress):
            self.shown = ProbeSnapshot(f"loading the {event.model}", event.fraction)
        elif isinstance(event, StepsProgress):
            doing = f"timing steps of the {event.model} behind {self._depth} positions"
            before = self.shown
            self.shown = replace(before, doing=doing, fraction=event.fraction)
            if event.model == "target" and len(event.costs) > 1 and event.costs[0].median_s > 0.0:
                curve = StepCurve(self._depth, event.costs, is_complete=False)
                self.shown = replace(self.shown, cost=_cost(curve), needed=_needed(curve))
        elif isinstance(event, StepsMeasured):
            self.shown = replace(self.shown, fraction=1.0)


def snapshot_of(report: ProbeReport) -> ProbeSnapshot:
    """Return what is shown of a probe that has ended."""
    curve = report.curves[0]
    facts = [f"Behind {curve.depth} positions a step of one token takes {1000.0 * curve.single_s:.1f} ms"]
    if curve.prefill_tps is not None:
        facts.append(f"the prompt is read with {speed_text(curve.prefill_tps)}")
    if curve.draft_cost is not None:
        facts.append(f"a step of the draft costs {percent_text(curve.draft_cost)} of one of the target")
    failure = () if report.failure is None else (f"It broke off: {report.failure.message}",)
    return ProbeSnapshot(
        cost=_cost(curve),
        needed=_needed(curve),
        verdict=verdict_sentence(curve),
        facts=f"{', '.join(facts)}.",
        table=_table(curve),
        notes=(*failure, *condition_sentences(report), *report.memory_notes),
        is_done=True,
    )


def _cost(curve: StepCurve) -> tuple[Point, ...]:
    return tuple((float(width), cost) for width, cost in sorted(curve.costs.items()))


def _needed(curve: StepCurve) -> tuple[NeedLine, ...]:
    own = curve.needed_by_draft()
    usual = curve.needed(USUAL_COST) if own is None else own
    name = f"a draft of {percent_text(usual.draft_cost)} of its cost" if own is None else "this draft"
    return NeedLine("copied (n-gram, suffix)", _points(curve.needed(0.0))), NeedLine(name, _points(usual))


def _points(row: NeededAcceptance) -> tuple[Point, ...]:
    return tuple((float(need.n), need.acceptance) for need in row.lengths)


def _table(curve: StepCurve) -> Figures:
    rows = []
    for row in needed_rows(curve):
        best = row.best
        label = f"{row.draft_cost:.2f}, this draft" if row.is_measured else f"{row.draft_cost:g}"
        cells = (DASH, "never") if best is None else (str(best.n), acceptance_text(best.acceptance))
        needs = (row.at(n) for n in LENGTHS)
        rows.append((label, *cells, *(DASH if need is None else acceptance_text(need.acceptance) for need in needs)))
    return Figures(("best k", "at least", *(f"k = {n}" for n in LENGTHS)), tuple(rows))
