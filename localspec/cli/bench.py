"""`localspec bench`: compare ways of drafting on models of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, cast

from rich.console import Console

from localspec.catalog.workloads import Workload, find_workload, load_workloads, workload_from_file
from localspec.cli.alarms import raise_alarms
from localspec.cli.comparison import progress_printer, show_measurement
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, say_failure, say_notice
from localspec.cli.heading import Names, name_of
from localspec.cli.interruption import Interruptions
from localspec.cli.my_chats import conclude_by_kind, own_texts
from localspec.cli.options import BenchChoice
from localspec.cli.screen import Report, notices_console, progress, results_console
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.cli.talk_drafting import paced_remark
from localspec.engine.interface import Engine
from localspec.engine.values import Method
from localspec.errors import LocalspecError, UsageError
from localspec.methods import takes_draft
from localspec.session.arguments import named_model
from localspec.session.arms import build_arms, check_methods
from localspec.session.comparison import check_extent
from localspec.session.loading import (
    context_settings,
    draft_context_settings,
    measured_speculation,
    reserve_bytes,
    sampling_settings,
)
from localspec.session.measurement import Measurement, MeasurementPlan, OnProgress, measure, measurement_record
from localspec.session.pacing_memory import PacingKeeper, PacingMemory
from localspec.session.records import Record, encode_record
from localspec.session.run_keeping import RunKeeper
from localspec.settings import Flags, Settings

DEFAULT_WORKLOADS = ("edit", "chat")


Work = Callable[[Engine, Report, OnProgress], Coroutine[Any, Any, Measurement]]
"""Measures on an engine; the report is for what comes before the measurement."""

Conclude = Callable[[Record, Console], Record]
"""Prints what a run's document means beside another one, and returns what the JSON holds of that."""


def run_bench(services: Services, choice: BenchChoice, flags: Flags, is_json: bool) -> int:
    """Measure, print, and return the exit code."""
    settings = settings_in_force(flags)
    own: tuple[Workload, ...] = ()
    if choice.is_own:
        check_extent(settings.bench.pairs, settings.bench.max_tokens)
        own = own_texts(services, context_settings(settings), settings.bench.max_tokens)
    plan, names = make_plan(choice, settings, flags, is_json or choice.is_kept, own)
    keeper = RunKeeper("bench", services.open_database, say_notice, choice.profile) if choice.is_kept else None

    async def work(engine: Engine, report: Report, watch: OnProgress) -> Measurement:
        return await measure(engine, plan, watch, target_word=names[0].word, learnt=PacingMemory())

    return carry_out(services, work, is_json, keeper, conclude_by_kind if own else None, names)


def carry_out(
    services: Services,
    work: Work,
    is_json: bool,
    keeper: RunKeeper | None,
    conclude: Conclude | None = None,
    names: Names | None = None,
) -> int:
    """Run a measurement on an engine of its own, keep and print what it brought, and return the exit code.

    Ctrl-C ends it early, once; what was measured is then printed all the same, however often it is pressed.

    Args:
        keeper: keeps the run; None for one that is not kept.
        conclude: what more to say in the end.
        names: what the user calls the models; None for their files' names.
    """
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            with progress(notices_console()) as report:
                watch = progress_printer(report)
                if keeper is not None:
                    watch = keeper.watching(watch)
                watch = PacingKeeper(PacingMemory()).watching(watch)
                measurement = interruptions.run(work(engine, report, watch))
        except BaseException as error:
            if keeper is not None:
                keeper.fail(error.message if isinstance(error, LocalspecError) else "It was broken off.")
            raise
        finally:
            interruptions.run(engine.close(), is_stoppable=False)
        # Before anything is printed: nobody may be reading any more.
        run_id = None if keeper is None else keeper.finish(measurement)
        return finish(services, measurement, is_json, run_id, conclude, names)


def make_plan(
    choice: BenchChoice, settings: Settings, flags: Flags, with_hashes: bool, own: tuple[Workload, ...] = ()
) -> tuple[MeasurementPlan, Names]:
    """Return the plan that the command line and the settings make up, and what the user calls its models.

    Args:
        choice: what to compare.
        settings: in force.
        flags: those of the command line.
        with_hashes: read the model files through first.
        own: workloads made of the user's chats.

    Raises:
        UsageError: a workload or prompt does not exist, a method lacks its model, or nothing would be measured.
    """
    check_extent(settings.bench.pairs, settings.bench.max_tokens)
    methods = cast("tuple[Method, ...]", choice.methods) or _default_methods(choice)
    check_methods(methods, choice.draft)
    if not choice.profile and (note := paced_remark(methods, flags.get("draft", {}).get("pacing"))):
        say_notice(f"note: {note}")
    if set(methods) == {"off"}:
        raise UsageError(
            "With --method off alone, there is nothing to compare.",
            "Add --method auto, or --method draft and --draft MODEL.",
        )
    target = named_model(choice.target, settings)
    draft = named_model(choice.draft, settings) if choice.draft is not None and takes_draft(methods) else None
    plan = MeasurementPlan(
        target=target.path,
        draft=None if draft is None else draft.path,
        context=context_settings(settings),
        arms=build_arms(methods, measured_speculation(settings)),
        workloads=_workloads(choice, own),
        sampling=sampling_settings(settings),
        is_temperature_fixed=flags.get("sampling", {}).get("temperature") is not None,
        max_tokens=settings.bench.max_tokens,
        num_pairs=settings.bench.pairs,
        warmup_tokens=settings.bench.warmup,
        ignore_eog=choice.ignore_eos,
        with_hashes=with_hashes,
        draft_context=draft_context_settings(settings),
        reserve_bytes=reserve_bytes(settings),
        is_forced=choice.is_forced,
        is_tuned=choice.is_tuned,
    )
    return plan, (name_of(target, choice.target), None if draft is None else name_of(draft, choice.draft or ""))


def finish(
    services: Services,
    measurement: Measurement,
    is_json: bool,
    run_id: int | None,
    conclude: Conclude | None,
    names: Names | None = None,
) -> int:
    """Print what was measured, the document last, and return the exit code.

    Args:
        run_id: the number that it is kept under, and then it is compared with earlier runs; None if it is not kept.
        conclude: what more to say.
        names: what the user calls the models; None for their files' names.
    """
    console = results_console(is_json)
    document = {**measurement_record(measurement), "run_id": run_id}
    show_measurement(measurement, console, names)
    more = {} if conclude is None else conclude(document, console)
    alarms = [] if run_id is None else raise_alarms(services, document, run_id, notices_console())
    if measurement.failure is not None:
        say_failure(measurement.failure)
    if refusals := measurement.refusals:
        hint = "Choose another --draft or --method, or another target; `localspec chat` works without drafts."
        say_failure(LocalspecError(f"No way of drafting could run here: {'; '.join(refusals)}.", hint))
    if measurement.is_interrupted:
        notices_console().print("Interrupted.")
    if run_id is not None:
        say_notice(f"run {run_id} kept")
    if is_json:
        print(encode_record({**document, **more, "alarms": alarms}))
    if measurement.is_interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if measurement.failure is not None or refusals else EXIT_DONE


def _default_methods(choice: BenchChoice) -> tuple[Method, ...]:
    return ("off", "draft", "ngram", "auto") if choice.draft is not None else ("off", "ngram", "auto")


def _workloads(choice: BenchChoice, own: tuple[Workload, ...]) -> tuple[Workload, ...]:
    if choice.prompt_file is not None:
        own = (*own, workload_from_file(choice.prompt_file))
    names = dict.fromkeys(choice.workloads or (() if own else DEFAULT_WORKLOADS))
    if not names:
        return own
    known = load_workloads()
    names_known = [workload.name for workload in known]
    for name in names:
        if name not in names_known:
            raise UsageError(f"There is no workload {name!r}.", f"There are: {', '.join(names_known)}.")
    return (*(find_workload(name, known) for name in names), *own)
