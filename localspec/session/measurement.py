"""A whole measurement: load, compare the arms on every workload, and keep what there is if it ends early."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localspec.catalog.workloads import Workload
from localspec.engine.events import LoadProgress, ModelsLoaded
from localspec.engine.interface import Engine
from localspec.engine.values import ContextSettings, DeviceInfo, SamplingSettings
from localspec.errors import EngineDiedError, LocalspecError
from localspec.hardware.throttling import ClockReading, read_clock, was_throttled
from localspec.methods import is_adaptive
from localspec.planning.devices import DEFAULT_RESERVE_BYTES
from localspec.planning.notes import Note
from localspec.session.arms import Arm, prompt_cases
from localspec.session.comparison import ComparisonProgress, check_extent, run_comparison
from localspec.session.draft_refusal import draft_refusal
from localspec.session.examination import Examination, examine
from localspec.session.hashing import sha256_of
from localspec.session.load_plan import LoadPlan, plan_load
from localspec.session.loading import context_notes, load_models
from localspec.session.memory_use import check_use, memory_record
from localspec.session.outcome import ComparisonFailed, ComparisonInterrupted, ComparisonResult
from localspec.session.pacing_memory import COLD, PacingMemory
from localspec.session.records import Record, bench_record, device_record, model_record, settings_record


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """What to measure, and how."""

    target: Path
    draft: Path | None
    context: ContextSettings
    arms: tuple[Arm, ...]
    """The baseline first."""
    workloads: tuple[Workload, ...]
    sampling: SamplingSettings
    is_temperature_fixed: bool
    """The sampling's temperature holds for workloads that have one of their own, too."""
    max_tokens: int
    num_pairs: int
    warmup_tokens: int
    ignore_eog: bool = False
    with_hashes: bool = False
    """Read the model files through for their SHA-256 first."""
    draft_context: ContextSettings | None = None
    """None: as the target's."""
    reserve_bytes: int = DEFAULT_RESERVE_BYTES
    """Kept free on each device by the memory plan."""
    is_forced: bool = False
    """Load even what the memory plan says would not fit."""
    half_width: float | None = None
    """End a workload early, after the pair with which half of every speedup's interval is at most this share of it."""
    is_tuned: bool = False
    """Arms with adaptive lengths begin each run with what earlier answers taught, not cold."""

    def sampling_for(self, workload: Workload) -> SamplingSettings:
        """Return the sampling with the temperature that is in force for a workload."""
        if self.is_temperature_fixed or workload.temperature is None:
            return self.sampling
        return dataclasses.replace(self.sampling, temperature=workload.temperature)


@dataclass(frozen=True, slots=True)
class MeasurementProgress:
    """Where a measurement stands."""

    stage: str
    """`hash`, `load`, `compare`, or in a suite `switch`."""
    fraction: float
    """Of the whole stage."""
    load: LoadProgress | None = None
    comparison: ComparisonProgress | None = None
    opening: Measurement | None = None
    """With the stage `compare`: all that is known before the first result."""
    part: str = ""
    """Of a suite, which compares on each workload more than once; empty elsewhere."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured."""

    plan: MeasurementPlan
    examination: Examination
    loaded: ModelsLoaded
    hashes: tuple[str | None, str | None]
    """SHA-256 of target and draft."""
    results: tuple[ComparisonResult, ...]
    """One for each workload that was begun, in the plan's order."""
    clocks: tuple[ClockReading, ClockReading]
    """Before and after."""
    is_interrupted: bool
    failure: LocalspecError | None
    """Why it ended early after something had been measured already."""
    memory: LoadPlan | None = None
    """How the models were placed, and why."""
    memory_notes: tuple[str, ...] = ()
    """What is not as it was asked for, and where the models take other memory than planned."""
    pacing_state: str = COLD
    """What each run with adaptive lengths begins with."""

    @property
    def pacing_start(self) -> str:
        """`cold` or `tuned`; empty where no length is adaptive."""
        arms = [arm.speculation for arm in self.plan.arms]
        if not any(is_adaptive(speculation.method, speculation.pacing) for speculation in arms):
            return ""
        return "cold" if self.pacing_state == COLD else "tuned"

    @property
    def context_notes(self) -> tuple[Note, ...]:
        """What to know of contexts that are longer than the models were trained for."""
        return context_notes(self.loaded)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why each way of drafting could not run, if none could on any workload; otherwise empty."""
        arms = [arm for result in self.results for arm in result.speculative]
        if self.is_interrupted or any(arm.has_run for arm in arms):
            return ()
        return tuple(dict.fromkeys(f"{arm.arm.name}: {arm.reason.rstrip('.')}" for arm in arms))


OnProgress = Callable[[MeasurementProgress], None]


async def measure(
    engine: Engine,
    plan: MeasurementPlan,
    on_progress: OnProgress,
    read_clock: Callable[[], ClockReading] = read_clock,
    target_word: str = "",
    learnt: PacingMemory | None = None,
) -> Measurement:
    """Carry out a plan. Cancelling the task after the models are loaded ends it early with what was measured.

    Args:
        engine: loads the models and runs them.
        plan: what to measure.
        on_progress: hears how far it is.
        read_clock: the processor's, before and after.
        target_word: what the user calls the target by; empty for its path.
        learnt: what adaptive drafting has learnt earlier, for a plan that begins with it.

    Raises:
        UsageError: the plan measures nothing.
        ModelLoadError: the models would not fit into memory, or the draft cannot be used.
        LocalspecError: nothing could be measured.
    """
    check_extent(plan.num_pairs, plan.max_tokens)
    ready = await load_for(engine, plan, on_progress, target_word)
    return await measure_loaded(
        engine, plan, ready.examination, ready.loaded, ready.memory, on_progress, read_clock, learnt
    )


@dataclass(frozen=True, slots=True)
class Ready:
    """Models that are loaded, and where."""

    examination: Examination
    memory: LoadPlan
    loaded: ModelsLoaded


async def load_for(engine: Engine, plan: MeasurementPlan, on_progress: OnProgress, target_word: str = "") -> Ready:
    """Examine the machine, plan the memory and load a plan's models.

    Raises:
        ModelLoadError: the models would not fit into memory, or the draft cannot be used.
        LocalspecError: the machine or the models cannot be used.
    """
    examination = await examine(engine)
    if examination.failure is not None:
        raise examination.failure
    memory = await plan_load(
        engine,
        plan.target,
        plan.draft,
        plan.context,
        plan.context if plan.draft_context is None else plan.draft_context,
        reserve_bytes=plan.reserve_bytes,
        is_forced=plan.is_forced,
    )
    loaded = await load_models(
        engine,
        plan.target,
        plan.draft,
        memory.context,
        plan.arms[0].speculation,
        lambda event: on_progress(MeasurementProgress("load", event.fraction, load=event)),
        memory.draft_context,
    )
    if plan.draft is not None and loaded.draft is None:
        raise draft_refusal(target_word or str(plan.target), loaded.draft_failure)
    return Ready(examination, memory, loaded)


async def measure_loaded(
    engine: Engine,
    plan: MeasurementPlan,
    examination: Examination,
    loaded: ModelsLoaded,
    memory: LoadPlan,
    on_progress: OnProgress,
    read_clock: Callable[[], ClockReading] = read_clock,
    learnt: PacingMemory | None = None,
) -> Measurement:
    """Carry out a plan on its models, which are loaded already. Cancelling ends it early with what was measured.

    Args:
        engine: holds the models.
        plan: what to measure.
        examination: the machine's.
        loaded: what the engine has.
        memory: how it was placed.
        on_progress: hears how far it is.
        read_clock: the processor's, before and after.
        learnt: what adaptive drafting has learnt earlier, for a plan that begins with it.

    Raises:
        LocalspecError: nothing could be measured.
    """
    opening = await open_measurement(plan, examination, loaded, memory, on_progress, read_clock, learnt)
    results: list[ComparisonResult] = []
    is_interrupted = False
    failure: LocalspecError | None = None
    try:
        for index in range(len(plan.workloads)):
            results.append(await _compare(engine, opening, index, on_progress))
    except ComparisonInterrupted as interruption:
        results.append(interruption.result)
        is_interrupted = True
    except ComparisonFailed as ending:
        results.append(ending.result)
        failure = ending.failure
    except asyncio.CancelledError:
        is_interrupted = True
    except LocalspecError as error:
        if not results:
            raise
        failure = error
    return dataclasses.replace(
        opening,
        results=tuple(results),
        clocks=(opening.clocks[0], read_clock()),
        is_interrupted=is_interrupted,
        failure=failure,
    )


async def open_measurement(
    plan: MeasurementPlan,
    examination: Examination,
    loaded: ModelsLoaded,
    memory: LoadPlan,
    on_progress: OnProgress,
    read_clock: Callable[[], ClockReading] = read_clock,
    learnt: PacingMemory | None = None,
) -> Measurement:
    """Return a measurement as it begins, without results; the arguments are those of measure_loaded.

    Raises:
        LocalspecError: a model file cannot be read for its SHA-256.
    """
    memory_notes = (*memory.notes, *check_use(memory, loaded))
    state = learnt.find(loaded.target, loaded.draft) if plan.is_tuned and learnt is not None else ""
    hashes = (
        await _hash(plan, plan.target, on_progress),
        await _hash(plan, plan.draft if loaded.draft is not None else None, on_progress),
    )
    before = read_clock()
    return Measurement(
        plan,
        examination,
        loaded,
        hashes,
        (),
        (before, before),
        is_interrupted=False,
        failure=None,
        memory=memory,
        memory_notes=memory_notes,
        pacing_state=state or COLD,
    )


def measurement_record(measurement: Measurement) -> Record:
    """Return the JSON document of a measurement.

    Raises:
        EngineDiedError: the engine did not say what it is.
    """
    plan, loaded, examination = measurement.plan, measurement.loaded, measurement.examination
    if examination.build is None:
        raise EngineDiedError("The engine did not say what it is.", "Try again.")
    host = examination.profile.host
    record = bench_record(
        build=examination.build,
        device=device_record(
            [DeviceInfo(**dataclasses.asdict(device)) for device in examination.profile.devices],
            loaded.target.n_gpu_layers,
            power_source=host.power,
            throttling=_throttling(measurement),
            host=dataclasses.asdict(host),
            drivers=examination.profile.drivers,
        ),
        target=model_record(loaded.target, measurement.hashes[0]),
        draft=None if loaded.draft is None else model_record(loaded.draft, measurement.hashes[1]),
        settings=settings_record(
            loaded.target,
            plan.context,
            plan.sampling,
            max_tokens=plan.max_tokens,
            num_pairs=plan.num_pairs,
            ignore_eog=plan.ignore_eog,
            warmup_tokens=plan.warmup_tokens,
            draft=loaded.draft,
            arms=plan.arms,
            pacing_start=measurement.pacing_start,
        ),
        results=measurement.results,
        is_interrupted=measurement.is_interrupted,
    )
    for entry, workload in zip(record["workloads"], plan.workloads, strict=False):
        entry["title"] = workload.title
        entry["temperature"] = plan.sampling_for(workload).temperature
        entry["is_copy_heavy"] = workload.is_copy_heavy
    record["memory"] = memory_record(measurement.memory, loaded)
    record["notes"] = [dataclasses.asdict(note) for note in measurement.context_notes]
    # A workload that a failure cut short is incomplete, too, but nobody interrupted it.
    record["interrupted"] = measurement.is_interrupted
    record["draft_failure"] = loaded.draft_failure
    record["failure"] = None if measurement.failure is None else measurement.failure.message
    return record


async def _compare(engine: Engine, opening: Measurement, index: int, on_progress: OnProgress) -> ComparisonResult:
    plan = opening.plan
    workload = plan.workloads[index]

    def report(progress: ComparisonProgress) -> None:
        share = progress.num_done / progress.num_total if progress.num_total else 0.0
        fraction = (index + share) / len(plan.workloads)
        on_progress(MeasurementProgress("compare", fraction, comparison=progress, opening=opening))

    return await run_comparison(
        engine,
        workload.name,
        prompt_cases(workload),
        plan.arms,
        plan.sampling_for(workload),
        plan.max_tokens,
        report,
        num_pairs=plan.num_pairs,
        ignore_eog=plan.ignore_eog,
        warmup_tokens=plan.warmup_tokens,
        half_width=plan.half_width,
        pacing_state=opening.pacing_state,
    )


async def _hash(plan: MeasurementPlan, path: Path | None, on_progress: OnProgress) -> str | None:
    if path is None or not plan.with_hashes:
        return None

    def report(num_done: int, num_total: int) -> None:
        on_progress(MeasurementProgress("hash", num_done / num_total if num_total else 1.0))

    return await sha256_of(path, report)


def _throttling(measurement: Measurement) -> str | None:
    throttled = was_throttled(*measurement.clocks)
    if throttled is None:
        return None
    return "the hardware slowed itself down while measuring" if throttled else "none"
