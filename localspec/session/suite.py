"""Is `auto` as good as the best fixed setting for each text? Measured over all of them.

First every fixed setting runs on every workload; then, in further pairs, only the fastest ones of each workload beside
`auto` and none at all. The setting that came out best of many was lucky in part: so what it is worth is taken from the
second pass, and there `auto` is held in each pair against the setting that was best in the other pairs. Answers are
all equally long, and `auto` begins each of them cold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from localspec.catalog.workloads import Workload
from localspec.engine.interface import Engine
from localspec.engine.values import SpeculationSettings
from localspec.errors import LocalspecError
from localspec.hardware.throttling import ClockReading
from localspec.methods import Method
from localspec.session.arms import Arm, arms_from_settings, prompt_cases
from localspec.session.comparison import ComparisonProgress, run_comparison
from localspec.session.head_to_head import against_the_best
from localspec.session.measurement import Measurement, MeasurementPlan, MeasurementProgress, OnProgress
from localspec.session.outcome import ArmResult, ComparisonFailed, ComparisonInterrupted, ComparisonResult
from localspec.session.suite_result import SuiteResult, SuiteRow, SwitchRow, best_single
from localspec.session.suite_switch import Segment, run_switch

WORKLOADS = ("edit", "extract", "quote", "summary", "code", "chat")
LENGTHS = (1, 2, 3, 4, 6, 8)
SWITCH = ("quote", "chat", "quote")
"""Copy-heavy, open, copy-heavy."""

NUM_FINALISTS = 3
MIN_TOKENS = 128

FIXED, FINALISTS = "fixed", "finalists"
"""Names of the parts that compare: every fixed setting, then auto beside the fastest."""


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """What to measure. The plan's workloads are those of the suite; which arms run, the suite says."""

    plan: MeasurementPlan
    settings: SpeculationSettings
    """Of all arms but for method and length."""
    has_draft: bool
    lengths: tuple[int, ...] = LENGTHS
    grid_pairs: int = 1
    budget_s: float | None = None
    """No further part is begun after this time; None for no end."""

    @property
    def fixed(self) -> tuple[SpeculationSettings, ...]:
        """Every fixed setting."""
        methods: tuple[Method, ...] = ("ngram", "suffix", "draft") if self.has_draft else ("ngram", "suffix")
        return tuple(
            replace(self.settings, method=method, n_max=n_max, n_min=0, pacing="fixed")
            for method in methods
            for n_max in self.lengths
        )

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The baseline, auto, and every fixed setting."""
        auto = replace(self.settings, method="auto", n_min=0)
        return arms_from_settings([auto, *self.fixed])


async def run_suite(
    engine: Engine,
    suite: SuitePlan,
    on_progress: OnProgress,
    clock: Callable[[], float] = monotonic,
    opening: Measurement | None = None,
) -> SuiteResult:
    """Measure with loaded models. Cancelling the task returns what is known by then.

    Args:
        engine: has the models loaded.
        suite: what to measure.
        on_progress: hears how far it is.
        clock: seconds; the suite's budget runs on it.
        opening: the whole as it begins, for those who hear the progress.

    Raises:
        LocalspecError: nothing could be measured.
    """
    run = _Suite(engine, suite, on_progress, clock, opening)
    try:
        await run.carry_out()
    except ComparisonInterrupted as interruption:
        run.is_interrupted = True
        run.keep_part(interruption.result)
    except asyncio.CancelledError:
        run.is_interrupted = True
    except LocalspecError as error:
        if isinstance(error, ComparisonFailed):
            run.keep_part(error.result)
        if not run.has_begun:
            raise
        run.failure = error
        run.notes.append(error.message)
    return run.result()


def ended_suite(opening: Measurement, result: SuiteResult, clock: ClockReading) -> Measurement:
    """Return a suite as one measurement: of each workload the comparison that came furthest.

    Args:
        opening: as it began.
        result: what was found.
        clock: the processor's in the end.
    """
    return replace(
        opening,
        results=result.comparisons,
        clocks=(opening.clocks[0], clock),
        is_interrupted=result.is_interrupted,
        failure=result.failure,
    )


class _Suite:
    """A suite that is under way."""

    def __init__(
        self,
        engine: Engine,
        suite: SuitePlan,
        on_progress: OnProgress,
        clock: Callable[[], float],
        opening: Measurement | None,
    ) -> None:
        self._engine = engine
        self._suite = suite
        self._plan = suite.plan
        self._on_progress = on_progress
        self._clock = clock
        self._opening = opening
        self._started_s = clock()
        self._baseline, self._auto, *self._fixed = suite.arms
        self._grids: dict[str, ComparisonResult] = {}
        self._finals: dict[str, ComparisonResult] = {}
        self._parts: dict[str, ComparisonResult] = {}
        self._switch: SwitchRow | None = None
        self._num_parts = 2 * len(self._plan.workloads) + 1
        self.is_interrupted = False
        self.failure: LocalspecError | None = None
        self.notes: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether anything is known."""
        return bool(self._grids)

    async def carry_out(self) -> None:
        """Run all parts, as long as there is time."""
        for workload in self._plan.workloads:
            if self._is_late(f"fixed settings on {workload.name}"):
                return
            arms = (self._baseline, *self._fixed)
            self._grids[workload.name] = await self._compare(workload, arms, self._suite.grid_pairs)
        for workload in self._plan.workloads:
            if self._is_late(f"auto on {workload.name}"):
                return
            names = self._finalists(workload.name)
            arms = (self._baseline, self._auto, *(arm for arm in self._fixed if arm.name in names))
            self._finals[workload.name] = await self._compare(workload, arms, self._plan.num_pairs)
        await self._run_switch()

    def keep_part(self, result: ComparisonResult) -> None:
        """Take the comparison that was cut short."""
        self._parts[result.workload_name] = result

    def result(self) -> SuiteResult:
        """Return what is known by now."""
        rows = tuple(self._row(name) for name in self._grids)
        num_workloads = len(self._plan.workloads)
        # Of some workloads alone it would be no setting for all.
        single = self._single() if len(rows) == num_workloads else ""
        return SuiteResult(
            rows,
            single,
            self._switch,
            self.is_interrupted,
            tuple(self.notes),
            num_workloads,
            failure=self.failure,
            comparisons=self._comparisons(),
        )

    def _comparisons(self) -> tuple[ComparisonResult, ...]:
        """Return of each workload what came furthest; a part of one only where there is nothing whole."""
        found = {**self._parts, **self._grids, **self._finals}
        return tuple(found[workload.name] for workload in self._plan.workloads if workload.name in found)

    async def _compare(self, workload: Workload, arms: Sequence[Arm], num_pairs: int) -> ComparisonResult:
        plan, done = self._plan, len(self._grids) + len(self._finals)
        part = FINALISTS if workload.name in self._grids else FIXED

        def report(progress: ComparisonProgress) -> None:
            share = progress.num_done / progress.num_total if progress.num_total else 0.0
            fraction = (done + share) / self._num_parts
            self._on_progress(
                MeasurementProgress("compare", fraction, comparison=progress, opening=self._opening, part=part)
            )

        return await run_comparison(
            self._engine,
            workload.name,
            prompt_cases(workload),
            arms,
            plan.sampling_for(workload),
            plan.max_tokens,
            report,
            num_pairs=num_pairs,
            ignore_eog=True,
            warmup_tokens=plan.warmup_tokens,
            explains=False,
        )

    async def _run_switch(self) -> None:
        by_name = {workload.name: workload for workload in self._plan.workloads}
        if any(name not in by_name for name in SWITCH) or self._is_late("the text that changes"):
            return
        wanted = dict.fromkeys(self._best(self._finals[name]).arm.name for name in SWITCH)
        arms = [arm for arm in self._fixed if arm.name in wanted]
        segments = [Segment(name, prompt_cases(by_name[name])[place]) for place, name in enumerate(SWITCH)]
        self._switch = await run_switch(
            self._engine,
            segments,
            (self._baseline, self._auto, *arms),
            self._plan.sampling,
            self._plan.max_tokens,
            self._plan.num_pairs,
            lambda name, share: self._on_progress(
                MeasurementProgress("switch", (self._num_parts - 1 + share) / self._num_parts)
            ),
        )

    def _finalists(self, workload: str) -> set[str]:
        """Return the fastest settings of a workload, and the one that is best over all of them."""
        speedups = _speedups(self._grids[workload])
        fastest = sorted(speedups, key=lambda name: -speedups[name])[:NUM_FINALISTS]
        return {*fastest, self._single()}

    def _single(self) -> str:
        return best_single([_speedups(grid) for grid in self._grids.values()])

    def _row(self, workload: str) -> SuiteRow:
        grid, final = self._grids[workload], self._finals.get(workload)
        off = grid.baseline.decode_tps
        row = SuiteRow(workload, None if off is None else off.median, _speedups(grid))
        if final is None:
            return row
        auto = next(arm for arm in final.arms if arm.arm.name == self._auto.name)
        single = next((arm for arm in final.arms if arm.arm.name == self._single()), None)
        best = self._best(final)
        return replace(
            row,
            auto=auto.speedup,
            best=best.arm.name,
            best_speedup=best.speedup,
            auto_of_best=against_the_best(final.baseline, self._fixed_of(final), auto),
            single_speedup=None if single is None or single.speedup is None else single.speedup.median,
        )

    def _best(self, final: ComparisonResult) -> ArmResult:
        """Return the fastest of the fixed settings, the baseline if none is faster."""
        best = max(self._fixed_of(final), key=_median_speedup, default=final.baseline)
        return best if _median_speedup(best) > 1.0 else final.baseline

    def _fixed_of(self, final: ComparisonResult) -> list[ArmResult]:
        return [arm for arm in final.speculative if arm.arm.name != self._auto.name and arm.speedup is not None]

    def _is_late(self, what: str) -> bool:
        budget_s = self._suite.budget_s
        if budget_s is None or self._clock() - self._started_s < budget_s:
            return False
        self.notes.append(f"The time was over before {what}.")
        return True


def _speedups(result: ComparisonResult) -> dict[str, float]:
    return {arm.arm.name: arm.speedup.median for arm in result.speculative if arm.speedup is not None}


def _median_speedup(arm: ArmResult) -> float:
    return arm.speedup.median if arm.speedup is not None else 1.0
