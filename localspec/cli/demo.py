"""`localspec demo`: what speculation does on this machine, with a model that comes along."""

from __future__ import annotations

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.cli.bench import carry_out
from localspec.cli.failures import say_notice
from localspec.cli.screen import Report
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.engine.interface import Engine
from localspec.session.arms import build_arms
from localspec.session.comparison import check_extent
from localspec.session.demo import DemoModels, PreparationProgress, prepare_demo_models
from localspec.session.loading import (
    context_settings,
    draft_context_settings,
    measured_speculation,
    reserve_bytes,
    sampling_settings,
)
from localspec.session.measurement import Measurement, MeasurementPlan, OnProgress, measure
from localspec.session.run_keeping import RunKeeper
from localspec.settings import Flags, Settings

WORKLOADS = ("quote", "chat", "story")
"""One that copies, and two that do not."""


def run_demo(services: Services, flags: Flags, is_json: bool, is_forced: bool = False, is_kept: bool = True) -> int:
    """Prepare the models, measure, print, and return the exit code."""
    settings = settings_in_force(flags)
    check_extent(settings.bench.pairs, settings.bench.max_tokens)
    with_hashes = is_json or is_kept

    async def work(engine: Engine, report: Report, watch: OnProgress) -> Measurement:
        plan = demo_plan(await _prepare(engine, report), settings, with_hashes=with_hashes, is_forced=is_forced)
        return await measure(engine, plan, watch)

    keeper = RunKeeper("demo", services.open_database, say_notice) if is_kept else None
    return carry_out(services, work, is_json, keeper)


def demo_plan(models: DemoModels, settings: Settings, with_hashes: bool, is_forced: bool = False) -> MeasurementPlan:
    """Return the plan of the demo: its models and workloads, everything else as set."""
    known = load_workloads()
    return MeasurementPlan(
        target=models.target,
        draft=models.draft,
        context=context_settings(settings),
        arms=build_arms(("off", "draft", "ngram", "auto"), measured_speculation(settings)),
        workloads=tuple(find_workload(name, known) for name in WORKLOADS),
        sampling=sampling_settings(settings),
        is_temperature_fixed=False,
        max_tokens=settings.bench.max_tokens,
        num_pairs=settings.bench.pairs,
        warmup_tokens=settings.bench.warmup,
        with_hashes=with_hashes,
        draft_context=draft_context_settings(settings),
        reserve_bytes=reserve_bytes(settings),
        is_forced=is_forced,
    )


async def _prepare(engine: Engine, report: Report) -> DemoModels:
    def on_preparation(step: PreparationProgress) -> None:
        fraction = step.num_done / step.num_total if step.num_total else 0.0
        report(f"making {step.title} (once)", fraction, "")

    return await prepare_demo_models(engine, on_preparation)
