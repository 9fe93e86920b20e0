"""Search the best settings for a target on this machine within a time, and confirm them against no drafts at all."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from localspec.engine.events import ModelsLoaded, RoundFinished, StepsMeasured
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import MeasureSteps
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import EngineDiedError, LocalspecError, UsageError
from localspec.hardware.cores import Cores, read_cores
from localspec.hardware.energy import EnergyReading, read_energy
from localspec.hardware.host import PowerSource, read_power
from localspec.hardware.throttling import ClockReading, read_clock, was_throttled
from localspec.session.arms import prompt_cases
from localspec.session.draft_refusal import draft_refusal
from localspec.session.examination import Examination, examine
from localspec.session.hashing import sha256_of
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import load_models, require_files
from localspec.session.measurement import Measurement, MeasurementPlan, MeasurementProgress, measure_loaded
from localspec.session.tuning import budget, cold
from localspec.session.tuning.conditions import cold_start_note, condition_notes
from localspec.session.tuning.confirmation import SEED_STEP, arms_of, choose_winner, evaluate, split_prompts
from localspec.session.tuning.kinds import with_kinds
from localspec.session.tuning.readings import Readings, is_on_battery
from localspec.session.tuning.reporter import OnProgress, Reporter
from localspec.session.tuning.search import Ledger, Pool, finalists, search
from localspec.session.tuning.space import Space, heat_cells
from localspec.session.tuning.stand import Case, Stand
from localspec.session.tuning.values import ColdChoice, Confirmed, TuningPlan, TuningResult, WarmSetting

PILOT_TOKENS: Final = 24
"""Of the run that tells how fast answers are."""

WARM_UP_TOKENS: Final = 8
_LEAST_STEPS_S: Final = 2.0
"""For timing the steps of one way of loading."""
_MOST_STEPS_S: Final = 8.0
_OVERTIME: Final = 0.25
"""Of the budget: so much longer a confirmation may take than planned before it is cut short."""


async def tune(
    engine: Engine,
    plan: TuningPlan,
    on_progress: OnProgress,
    *,
    clock: Callable[[], float] = time.monotonic,
    read_clock: Callable[[], ClockReading] = read_clock,
    read_energy: Callable[[], EnergyReading | None] = read_energy,
    read_power: Callable[[], tuple[PowerSource, float | None]] = read_power,
    cores: Cores | None = None,
) -> TuningResult:
    """Search within the budget, confirm, and return what is known. Cancelling the task ends it early with that.

    Args:
        engine: loads the models and runs them; what is in force in the end is not specified.
        plan: what to search.
        on_progress: hears how far it is.
        clock: seconds; the budget runs on it.
        read_clock: the processor's, before and after.
        read_energy: the processor's counters.
        read_power: where the power comes from, and the battery's charge in percent.
        cores: what numbers of threads may be worth a try; None asks the system.

    Raises:
        UsageError: the budget is too small, and the hint names the least one; or nothing can draft for the target.
        ModelLoadError: the models would not fit into memory, or the draft cannot be used.
        LocalspecError: nothing could be measured.
    """
    readings = Readings(read_clock, read_energy, read_power)
    run = _Tuning(engine, plan, on_progress, clock, readings, cores or read_cores())
    before = read_clock()
    is_interrupted = False
    failure: LocalspecError | None = None
    try:
        await run.load()
        await run.screen()
        await run.search()
        await run.confirm()
    except asyncio.CancelledError:
        if run.loaded is None:
            raise
        is_interrupted = True
    except LocalspecError as error:
        if not any(trial.ratio for trial in run.ledger.trials()):
            raise
        failure = error
    return run.result(is_interrupted, failure, was_throttled(before, read_clock()))


class _Tuning:
    """A search that is under way."""

    def __init__(
        self,
        engine: Engine,
        plan: TuningPlan,
        on_progress: OnProgress,
        clock: Callable[[], float],
        readings: Readings,
        cores: Cores,
    ) -> None:
        self.loaded: ModelsLoaded | None = None
        self.ledger = Ledger()
        self._engine, self._plan, self._clock = engine, plan, clock
        self._readings, self._cores = readings, cores
        self._report = Reporter(plan, self.ledger, clock, on_progress)
        self._parts = [split_prompts(workload) for workload in plan.workloads]
        self._examination: Examination | None = None
        self._on_battery = False
        self._memory: LoadPlan | None = None
        self._pace = budget.Pace(0.0, 0.0)
        self._extent: budget.Extent | None = None
        self._stand: Stand | None = None
        self._cold = ColdChoice(plan.context, plan.draft_context)
        self._confirmed: list[Confirmed] = []
        self._measurements: list[Measurement] = []
        self._notes: list[str] = []

    async def load(self) -> None:
        """Load the models as given, and see how fast answers are."""
        plan, report = self._plan, self._report
        if not plan.workloads or not all(workload.prompts for workload in plan.workloads):
            raise UsageError("There is no text to tune for.", "Choose a workload.")
        require_files(plan.target, *plan.drafts)
        report.plan_ends(confirm=plan.budget_s)
        report.begin("load")
        self._examination = self._readings.powered(await examine(self._engine))
        if self._examination.failure is not None:
            raise self._examination.failure
        self._on_battery = is_on_battery(self._examination)
        for path in (plan.target, *plan.drafts) if plan.with_hashes else ():
            # They are remembered, so that the confirmation need not read the files again.
            await sha256_of(path, lambda num_done, num_total: report.tell())
        first = plan.drafts[0] if plan.drafts else None
        self._memory = await plan_load(
            self._engine,
            plan.target,
            first,
            plan.context,
            plan.draft_context,
            reserve_bytes=plan.reserve_bytes,
            is_forced=plan.is_forced,
        )
        self._cold = ColdChoice(self._memory.context, self._memory.draft_context)
        loaded = await self._load(self._cold.context, self._cold.draft_context)
        if not loaded.target.can_roll_back:
            raise UsageError(
                f"{loaded.target.name} cannot take back rejected tokens, so nothing can draft for it.",
                "Off is all there is: use it without drafts.",
            )
        if first is not None and loaded.draft is None:
            raise draft_refusal(str(plan.target), loaded.draft_failure)
        self._stand, case = self._make_stand(plan.max_tokens), self._pool()[0][0]
        await self._stand.baseline(case, WARM_UP_TOKENS)
        run = await self._stand.baseline(case, min(PILOT_TOKENS, plan.max_tokens), is_fresh=True)
        latency, num_tokens = run.trial.latency, max(1, len(run.trial.tokens))
        # The usual gap: one hiccup of the machine must not make all of it look slow.
        usual_s = None if latency.gaps is None else latency.gaps.p50
        per_token_s = usual_s or latency.tpot_s or max(1e-4, run.wall_s / num_tokens)
        self._pace = budget.Pace(latency.prefill_s or 0.0, per_token_s)
        # What cannot come to an end is refused now.
        self._size_up()

    async def screen(self) -> None:
        """Find the best way of loading, within a quarter of the budget and what the search can spare."""
        loaded, report, plan = self._loaded(), self._report, self._plan
        spare = report.left_s - 1.5 * budget.least_s(self._pace, len(plan.workloads))
        until_s = report.elapsed_s + min(budget.SCREEN_SHARE * plan.budget_s, spare)
        report.plan_ends(load=report.elapsed_s, screen=until_s)
        report.begin("screen")
        steps_s = min(_MOST_STEPS_S, max(_LEAST_STEPS_S, (until_s - report.elapsed_s) / 8.0 - loaded.load_s))
        one_s = loaded.load_s + steps_s
        if until_s - report.elapsed_s < 3.0 * one_s + loaded.load_s:
            self._notes.append("There was no time to try threads and other ways of loading; a larger budget has it.")
            return
        knobs = cold.ColdKnobs(
            self._cores,
            has_gpu=loaded.target.n_gpu_layers > 0 and self._has_gpu(),
            has_draft=loaded.draft is not None,
            fixed=plan.fixed_knobs,
            kv_types=plan.kv_types,
        )
        given = in_force = (self._cold.context, self._cold.draft_context)

        async def measure(context: ContextSettings, draft_context: ContextSettings) -> StepsMeasured:
            nonlocal in_force
            if (context, draft_context) != in_force:
                await self._load(context, draft_context)
                in_force = context, draft_context
            return await self._steps(steps_s)

        # The return to the best way takes a load, too.
        self._cold = await cold.screen(
            measure, given, knobs, lambda: report.elapsed_s + one_s + loaded.load_s <= until_s, report.trying
        )
        if (self._cold.context, self._cold.draft_context) != in_force:
            await self._load(self._cold.context, self._cold.draft_context)

    async def search(self) -> None:
        """Search among ways of drafting."""
        plan, report = self._plan, self._report
        extent = self._extent = self._size_up()
        until_s = plan.budget_s - extent.confirm_s
        report.plan_ends(screen=report.elapsed_s, search=until_s)
        report.begin("search")
        stand, pool = self._make_stand(extent.max_tokens), self._pool()
        self._stand = stand
        await stand.baseline(pool[0][0], WARM_UP_TOKENS)
        space = Space(plan.drafts, plan.is_hot, plan.speculation, plan.methods)
        timed = next((trial for trial in self._cold.trials if trial.costs), None)
        await search(
            stand,
            space,
            pool,
            self.ledger,
            first=space.seeds(cold.best_length(timed)),
            num_candidates=extent.num_candidates,
            until_s=report.at(until_s),
            seed=plan.seed,
            on_change=report.changed,
        )

    async def confirm(self) -> None:
        """Compare the best settings with the baseline on prompts that the search has not used."""
        assert self._stand is not None and self._extent is not None
        most, trials = self._extent.num_finalists, self.ledger.trials()
        chosen = with_kinds(finalists(self.ledger, most), trials, self._plan.workloads, self.ledger.spread, most)
        self._report.plan_ends(search=self._report.elapsed_s)
        self._report.begin("confirm")
        groups = _by_draft(chosen)
        for place, (draft, group) in enumerate(groups):
            seconds = self._report.left_s / (len(groups) - place)
            tokens = self._extent.max_tokens
            pairs = budget.num_confirm_pairs(self._real_pace(), len(self._parts), tokens, len(group), seconds)
            measurement = await self._measure(draft, group, pairs, tokens)
            self._measurements.append(measurement)
            if measurement.is_interrupted:
                raise asyncio.CancelledError
            if measurement.failure is not None:
                raise measurement.failure
            self._confirmed += evaluate(measurement, group)
            if self._is_overdue:
                break

    def result(self, is_interrupted: bool, failure: LocalspecError | None, throttled: bool | None) -> TuningResult:
        """Return what is known by now."""
        stand, trials, best = self._stand, self.ledger.trials(), self.ledger.best()
        runs = stand.baseline_runs if stand is not None else []
        conditions = condition_notes(self._plan, runs, self._on_battery, throttled, bool(self._measurements))
        start = cold_start_note([one.setting.speculation for one in self._confirmed])
        return TuningResult(
            plan=self._plan,
            loaded=self.loaded,
            cold=self._cold,
            trials=trials,
            confirmed=tuple(self._confirmed),
            winner=choose_winner(self._confirmed),
            measurements=tuple(self._measurements),
            is_interrupted=is_interrupted,
            failure=failure,
            elapsed_s=self._report.elapsed_s,
            baseline_tps=tuple(rate for _, rate in runs),
            notes=(*self._cold.notes, *self._notes, *([start] if start else []), *conditions),
            on_battery=self._on_battery,
            joules_per_token=(self._joules(None), None if best is None else self._joules(best.setting)),
            cells=heat_cells(trials),
        )

    async def _measure(
        self, draft: Path | None, group: Sequence[WarmSetting], pairs: int, max_tokens: int
    ) -> Measurement:
        plan, stand, loaded = self._plan, self._stand, self._loaded()
        assert stand is not None and self._examination is not None and self._memory is not None
        if draft is not None and stand.draft != draft:
            await stand.switch_to(next(one for one in group if one.draft == draft))
        is_known_text = any(len(workload.prompts) < 2 for workload in plan.workloads)
        wanted = MeasurementPlan(
            target=plan.target,
            draft=stand.draft,
            context=self._cold.context,
            arms=arms_of(group),
            workloads=tuple(confirming for _, confirming in self._parts),
            sampling=replace(plan.sampling, seed=plan.sampling.seed + (SEED_STEP if is_known_text else 0)),
            is_temperature_fixed=plan.is_temperature_fixed,
            max_tokens=max_tokens,
            num_pairs=pairs,
            warmup_tokens=WARM_UP_TOKENS,
            ignore_eog=plan.ignore_eog,
            with_hashes=plan.with_hashes,
            draft_context=self._cold.draft_context,
            reserve_bytes=plan.reserve_bytes,
            is_forced=plan.is_forced,
        )
        memory = replace(self._memory, context=self._cold.context, draft_context=self._cold.draft_context)
        loaded = replace(loaded, draft=stand.draft_info)
        examination = self._readings.powered(self._examination)
        task, is_late = asyncio.current_task(), False

        def watch(progress: MeasurementProgress) -> None:
            nonlocal is_late
            self._report.confirming(progress)
            told = progress.comparison
            # A round is followed by more, so that this ends the run and nothing that comes after it.
            is_under_way = told is not None and isinstance(told.event, RoundFinished)
            if is_under_way and not is_late and task is not None and self._is_overdue:
                is_late = True
                task.cancel()

        measurement = await measure_loaded(
            self._engine, wanted, examination, loaded, memory, watch, self._readings.clock
        )
        if is_late and task is not None and task.uncancel() == 0:
            measurement = replace(measurement, is_interrupted=False)
            self._notes.append(
                "The machine was slower than in the search, so that the time was over before all pairs of the "
                "confirmation were run."
            )
        ended = self._readings.powered(examination)
        # Unplugged or plugged in meanwhile: a part of it was on battery.
        examination = examination if is_on_battery(examination) else ended
        self._on_battery = self._on_battery or is_on_battery(examination)
        return replace(measurement, examination=examination)

    @property
    def _is_overdue(self) -> bool:
        return self._report.left_s < -_OVERTIME * self._plan.budget_s

    async def _load(self, context: ContextSettings, draft_context: ContextSettings) -> ModelsLoaded:
        first = self._plan.drafts[0] if self._plan.drafts else None
        off = SpeculationSettings(method="off")
        self.loaded = await load_models(
            self._engine, self._plan.target, first, context, off, self._report.hear, draft_context
        )
        return self.loaded

    async def _steps(self, seconds: float) -> StepsMeasured:
        prompt = self._plan.workloads[0].prompts[0]
        text = f"{prompt.system}\n{prompt.user}"
        answer = await last_event(
            self._engine, MeasureSteps(self._engine.next_id(), text, cold.WIDTHS, seconds=seconds)
        )
        if not isinstance(answer, StepsMeasured):
            raise EngineDiedError("The engine gave another answer than the one asked for.", "Try again.")
        return answer

    def _make_stand(self, max_tokens: int) -> Stand:
        loaded = self._loaded()
        return Stand(
            engine=self._engine,
            max_tokens=max_tokens,
            ignore_eog=self._plan.ignore_eog,
            draft=self._plan.drafts[0] if loaded.draft is not None else None,
            draft_info=loaded.draft,
            draft_context=self._cold.draft_context,
            clock=self._clock,
            read_energy=self._readings.energy,
            on_event=self._report.hear,
            on_setting=self._report.running,
        )

    def _pool(self) -> Pool:
        """Return the prompts of the search: of each pair, one of each workload."""
        cases = [
            [
                Case(
                    workload.name, prompt, replace(self._plan.sampling, temperature=self._plan.temperature_of(workload))
                )
                for prompt in prompt_cases(workload)
            ]
            for workload, _ in self._parts
        ]
        return [[own[turn % len(own)] for own in cases] for turn in range(max(map(len, cases)))]

    def _size_up(self) -> budget.Extent:
        report = self._report
        return budget.size_up(self._pace, len(self._parts), report.left_s, self._plan.max_tokens, report.elapsed_s)

    def _real_pace(self) -> budget.Pace:
        """Return the pace, slower by what runs of the search took beyond it."""
        assert self._stand is not None
        factor = max(1.0, self._stand.run_s / self._pace.run_s(self._stand.max_tokens))
        return budget.Pace(self._pace.start_s * factor, self._pace.token_s * factor)

    def _joules(self, setting: WarmSetting | None) -> float | None:
        values = self._stand.joules.get(setting, []) if self._stand is not None else []
        return statistics.median(values) if values else None

    def _has_gpu(self) -> bool:
        return self._examination is not None and bool(self._examination.profile.gpus)

    def _loaded(self) -> ModelsLoaded:
        assert self.loaded is not None
        return self.loaded


def _by_draft(settings: Sequence[WarmSetting]) -> list[tuple[Path | None, list[WarmSetting]]]:
    """Return settings by the draft model that they need; those that need none go with the first."""
    drafts: list[Path | None] = list(dict.fromkeys(one.draft for one in settings if one.draft is not None))
    if not settings:
        return []
    first = drafts[0] if drafts else None
    groups: list[tuple[Path | None, list[WarmSetting]]] = [
        (first, [one for one in settings if one.draft in (None, first)])
    ]
    return groups + [(draft, [one for one in settings if one.draft == draft]) for draft in drafts[1:]]
