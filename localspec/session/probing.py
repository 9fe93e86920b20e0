"""The probe: what steps cost on a target here, and how good drafts would have to be, before there is any draft.

Nothing here prints; the command line and the terminal app show the same report.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.workloads import Workload
from localspec.engine.events import EngineFailed, Event, ModelsLoaded, StepsMeasured, StepsProgress
from localspec.engine.interface import Engine, as_error
from localspec.engine.requests import MeasureSteps
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.hardware.throttling import ClockReading, read_clock, was_throttled
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.session.draft_refusal import draft_refusal
from localspec.session.examination import Examination, examine
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import load_models
from localspec.session.memory_use import check_use
from localspec.session.step_curve import NeededAcceptance, StepCurve

WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)
"""Tokens of the steps that are timed."""

DRAFT_COSTS = (0.0, 0.05, 0.1, 0.15, 0.25, 0.5)
"""Of the drafts that one might have, in steps of the target; 0 is copying from the text: n-gram and suffix."""

DEEP = 2048
"""Positions of the second measurement."""


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """What to time, and how."""

    target: Path
    draft: Path | None
    """None for the target alone."""
    context: ContextSettings
    text: str
    """What the steps read; repeated where it is too short."""
    text_name: str
    draft_context: ContextSettings | None = None
    """None: as the target's."""
    depths: tuple[int, ...] = (256,)
    """Positions in the cache before each step: one measurement for each."""
    seconds: float = 15.0
    """For each depth, both models together."""
    widths: tuple[int, ...] = WIDTHS
    reserve_bytes: int = DEFAULT_RESERVE_BYTES
    """Kept free on each device by the memory plan."""
    is_forced: bool = False
    """Load even what the memory plan says would not fit."""


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What was measured."""

    plan: ProbePlan
    examination: Examination
    loaded: ModelsLoaded
    curves: tuple[StepCurve, ...]
    """One for each depth that was begun, in the plan's order; at least one."""
    clocks: tuple[ClockReading, ClockReading]
    """Before and after."""
    is_interrupted: bool = False
    failure: LocalspecError | None = None
    """Why it ended early after something had been measured already."""
    memory_notes: tuple[str, ...] = ()
    """What is not as it was asked for, and where the models take other memory than planned."""

    @property
    def was_throttled(self) -> bool | None:
        """Whether the hardware slowed itself down meanwhile; None if it does not say."""
        return was_throttled(*self.clocks)


def workload_text(workload: Workload) -> str:
    """Return all prompts of a workload as one text."""
    return "\n\n".join(text for prompt in workload.prompts for text in (prompt.system, prompt.user) if text)


def needed_acceptance(report: ProbeReport, draft_cost: float, depth: int | None = None) -> NeededAcceptance:
    """Return the acceptance from which drafts of a cost pay.

    Args:
        report: what was measured.
        draft_cost: time of a drafted token / of a single step of the target.
        depth: one of the report's; None for the first.

    Raises:
        ValueError: the cost is negative or no number, or there is no such depth.
    """
    curve = next((curve for curve in report.curves if depth in (None, curve.depth)), None)
    if curve is None:
        raise ValueError(f"nothing was measured at {depth} positions")
    return curve.needed(draft_cost)


def needed_rows(curve: StepCurve) -> tuple[NeededAcceptance, ...]:
    """Return what drafts of the usual costs need, the measured draft model's among them, cheap ones first."""
    own = curve.needed_by_draft()
    rows = [*(curve.needed(cost) for cost in DRAFT_COSTS), *(() if own is None else (own,))]
    return tuple(sorted(rows, key=lambda row: row.draft_cost))


async def probe_target(
    engine: Engine,
    plan: ProbePlan,
    on_event: Callable[[Event], None],
    read_clock: Callable[[], ClockReading] = read_clock,
    target_word: str = "",
) -> ProbeReport:
    """Load the models and time them. Cancelling the task ends it early with what was measured, if anything was.

    Args:
        engine: loads the models and runs them.
        plan: what to time.
        on_event: hears how far it is: LoadProgress, ModelsLoaded, then StepsProgress with a request for each depth.
        read_clock: the processor's, before and after.
        target_word: what the user calls the target by; empty for its path.

    Raises:
        UsageError: the text or the context is too short, or the target's memory cannot roll back.
        ModelLoadError: the models would not fit into memory, or the draft cannot be used.
        LocalspecError: nothing could be measured.
    """
    examination = await examine(engine)
    if examination.failure is not None:
        raise examination.failure
    memory = await plan_load(
        engine,
        plan.target,
        plan.draft,
        plan.context,
        plan.draft_context or plan.context,
        reserve_bytes=plan.reserve_bytes,
        is_forced=plan.is_forced,
    )
    loaded = await load_models(
        engine, plan.target, plan.draft, memory.context, SpeculationSettings(), on_event, memory.draft_context
    )
    if plan.draft is not None and loaded.draft is None:
        way_on = "Without --draft, the target alone is probed."
        raise draft_refusal(target_word or str(plan.target), loaded.draft_failure, way_on)
    on_event(loaded)
    return await probe_loaded(engine, plan, examination, loaded, memory, on_event, read_clock)


async def probe_loaded(
    engine: Engine,
    plan: ProbePlan,
    examination: Examination,
    loaded: ModelsLoaded,
    memory: LoadPlan,
    on_event: Callable[[Event], None],
    read_clock: Callable[[], ClockReading] = read_clock,
) -> ProbeReport:
    """Time models that are loaded already. Caches are empty afterwards.

    Args:
        engine: holds the models.
        plan: what to time.
        examination: the machine's.
        loaded: what the engine has.
        memory: how it was placed.
        on_event: hears how far it is.
        read_clock: the processor's, before and after.

    Raises:
        LocalspecError: nothing could be measured.
    """
    before = read_clock()
    notes = (*memory.notes, *check_use(memory, loaded))
    curves: list[StepCurve] = []
    is_interrupted = False
    failure: LocalspecError | None = None
    for depth in plan.depths:
        seen = _Seen(on_event)
        request = MeasureSteps(engine.next_id(), plan.text, _widths(plan), depth, plan.seconds)
        try:
            await seen.watch(engine, request)
        except asyncio.CancelledError:
            if not curves and not seen.steps:
                raise
            is_interrupted = True
        except LocalspecError as error:
            if not curves and not seen.steps:
                raise
            failure = error
        if seen.answer is not None or seen.steps:
            curves.append(seen.curve(reached_depth(depth, loaded, plan)))
        if is_interrupted or failure is not None:
            break
    # A context too short for the second depth has the first one again there.
    distinct = {curve.depth: curve for curve in reversed(curves)}
    return ProbeReport(
        plan=plan,
        examination=examination,
        loaded=loaded,
        curves=tuple(reversed(distinct.values())),
        clocks=(before, read_clock()),
        is_interrupted=is_interrupted,
        failure=failure,
        memory_notes=notes,
    )


class _Seen:
    """What the engine has said of one depth."""

    def __init__(self, on_event: Callable[[Event], None]) -> None:
        self._on_event = on_event
        self.steps: StepsProgress | None = None
        """Of the target, the latest."""
        self.answer: StepsMeasured | None = None

    async def watch(self, engine: Engine, request: MeasureSteps) -> None:
        stream = engine.stream(request)
        try:
            async for event in stream:
                if isinstance(event, StepsProgress) and event.model == "target" and event.costs:
                    self.steps = event
                elif isinstance(event, StepsMeasured):
                    self.answer = event
                elif isinstance(event, EngineFailed):
                    raise as_error(event)
                self._on_event(event)
        finally:
            # A stream left early holds the engine until it is closed.
            if inspect.isasyncgen(stream):
                await stream.aclose()
        if self.answer is None:
            raise EngineDiedError("The engine gave no answer.", "Try again; the log file may say more.")
        if not self.answer.costs or self.answer.costs[0].median_s <= 0.0:
            raise UsageError("The steps were too short to be timed.", "Probe a larger model.")

    def curve(self, depth: int) -> StepCurve:
        """Return what is known; `depth` is that of a measurement that did not come to its end."""
        answer = self.answer
        if answer is not None:
            return StepCurve(
                answer.depth, answer.costs, answer.prefill_tps, answer.draft, answer.draft_prefill_tps, is_complete=True
            )
        assert self.steps is not None
        return StepCurve(depth, self.steps.costs, is_complete=False)


def _widths(plan: ProbePlan) -> tuple[int, ...]:
    """Return the widths that one batch can hold."""
    return tuple(width for width in plan.widths if width <= plan.context.n_batch)


def reached_depth(depth: int, loaded: ModelsLoaded, plan: ProbePlan) -> int:
    """Return the positions that the engine takes of a depth: no more than leave room for the widest step."""
    return min(depth, loaded.target.n_ctx - max(_widths(plan), default=1) - 1)
