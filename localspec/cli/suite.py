"""`localspec bench --suite auto`: is `auto` as good as the best fixed setting for each text?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from localspec.catalog.workloads import find_workload, load_workloads
from localspec.cli.bench import make_plan
from localspec.cli.comparison import progress_printer
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, EXIT_INTERRUPTED, say_notice
from localspec.cli.heading import ModelName
from localspec.cli.interruption import Interruptions
from localspec.cli.options import BenchChoice
from localspec.cli.screen import DASH, notices_console, print_table, progress, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.settings_in_force import settings_in_force
from localspec.errors import LocalspecError, UsageError
from localspec.hardware.throttling import read_clock
from localspec.session.figures import duration_text, rate_text, speed_unit
from localspec.session.loading import measured_speculation
from localspec.session.measurement import Measurement, load_for, open_measurement
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record, model_record
from localspec.session.run_keeping import RunKeeper
from localspec.session.suite import MIN_TOKENS, WORKLOADS, SuitePlan, ended_suite, run_suite
from localspec.session.suite_result import SuiteResult, SuiteRow, goal_line, suite_record
from localspec.session.tuning.budget import parse_budget
from localspec.session.verdict import speedup_phrase
from localspec.settings import Flags, Settings

if TYPE_CHECKING:
    from localspec.metrics.statistics import Estimate

SCHEMA = 1


def run_suite_command(services: Services, choice: BenchChoice, budget: str | None, flags: Flags, is_json: bool) -> int:
    """Measure, print, and return the exit code.

    Args:
        budget: a time such as `20m`, after which no further part is begun; None for no end.
    """
    settings = settings_in_force(flags)
    suite, names = _suite_plan(choice, budget, settings, flags, is_json or choice.is_kept)
    keeper = RunKeeper("suite", services.open_database, say_notice) if choice.is_kept else None
    with Interruptions(say_notice) as interruptions:
        engine = services.make_engine()
        try:
            with progress(notices_console()) as report:
                watch = progress_printer(report)
                if keeper is not None:
                    watch = keeper.watching(watch)

                async def work() -> tuple[Measurement, SuiteResult]:
                    ready = await load_for(engine, suite.plan, watch, names[0].word)
                    opening = await open_measurement(suite.plan, ready.examination, ready.loaded, ready.memory, watch)
                    return opening, await run_suite(engine, suite, watch, opening=opening)

                opening, result = interruptions.run(work())
        except BaseException as error:
            if keeper is not None:
                keeper.fail(error.message if isinstance(error, LocalspecError) else "It was broken off.")
            raise
        finally:
            interruptions.run(engine.close(), is_stoppable=False)
        found = suite_record(result)
        # Before anything is printed: nobody may be reading any more.
        run_id = None if keeper is None else keeper.finish(ended_suite(opening, result, read_clock()), {"suite": found})
    console = results_console(is_json)
    show_suite(result, suite, console)
    if result.is_interrupted:
        notices_console().print("Interrupted.")
    if run_id is not None:
        # Notes say what is missing.
        is_whole = not result.is_interrupted and not result.notes
        whole = "the whole suite, with the speedups of every fixed setting in its JSON"
        say_notice(f"run {run_id} kept: {whole if is_whole else 'what the suite had measured by then'}")
    if is_json:
        loaded, hashes = opening.loaded, opening.hashes
        draft = None if loaded.draft is None else model_record(loaded.draft, hashes[1])
        models = {"target": model_record(loaded.target, hashes[0]), "draft": draft}
        extent = {"max_tokens": suite.plan.max_tokens, "pairs": suite.plan.num_pairs, "grid_pairs": suite.grid_pairs}
        print(encode_record({"schema": SCHEMA, "suite": "auto", "run_id": run_id, **models, **extent, **found}))
    if result.is_interrupted:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if not result.rows else EXIT_DONE


def show_suite(result: SuiteResult, suite: SuitePlan, console: Console) -> None:
    """Print a line for each workload, then what auto promises beside what was found."""
    plan = suite.plan
    pairs = "1 pair" if plan.num_pairs == 1 else f"{plan.num_pairs} pairs"
    finals = f"{pairs} of the fastest ones and auto"
    tokens = f"{plan.max_tokens} tokens each"
    say(console, f"{len(suite.fixed)} fixed settings, then {finals}, {tokens}; auto begins every answer cold")
    console.print()
    grid = table("Workload", f"off ({speed_unit()})", "auto / off", "best fixed", "best / off", "auto / best")
    for row in result.rows:
        grid.add_row(*_cells(row))
    print_table(console, grid)
    if (switch := result.switch) is not None:
        console.print()
        parts = ", ".join(f"{name} ({best})" for name, best in zip(switch.segments, switch.best, strict=True))
        say(
            console,
            one_line(
                f"A text that changes, with the best setting of each part: {parts}. auto / off {_factor(switch.auto)}, "
                f"auto / these {_factor(switch.auto_of_best)}."
            ),
        )
    console.print()
    for goal in result.goals:
        say(console, one_line(goal_line(goal)))
    for note in result.notes:
        say(console, one_line(f"note: {note}"))


def _suite_plan(
    choice: BenchChoice, budget: str | None, settings: Settings, flags: Flags, with_hashes: bool
) -> tuple[SuitePlan, tuple[ModelName, ModelName | None]]:
    if choice.methods or choice.prompt_file is not None:
        raise UsageError("--suite has methods and texts of its own.", "Leave out --method and --prompt.")
    budget_s = None if budget is None else parse_budget(budget)
    names = choice.workloads or WORKLOADS
    plan, models = make_plan(replace(choice, workloads=names), settings, flags, with_hashes)
    known = load_workloads()
    plan = replace(plan, workloads=tuple(find_workload(name, known) for name in names), ignore_eog=True)
    if plan.max_tokens < MIN_TOKENS:
        say_notice(
            f"note: What auto promises is counted over answers of {MIN_TOKENS} tokens or more, not {plan.max_tokens}."
        )
    suite = SuitePlan(plan, measured_speculation(settings), plan.draft is not None, budget_s=budget_s)
    suite = replace(suite, plan=replace(plan, arms=suite.arms))
    if budget_s is None:
        say_notice(
            f"note: {len(suite.arms)} arms on {len(names)} workloads take long; --budget ends it after a time, such as "
            f"{duration_text(1200)}."
        )
    return suite, models


def _cells(row: SuiteRow) -> tuple[str, ...]:
    return (
        row.workload,
        rate_text(row.off_tps),
        _factor(row.auto),
        row.best or DASH,
        "1.00x" if row.best == "off" else _factor(row.best_speedup),
        _factor(row.auto_of_best),
    )


def _factor(estimate: Estimate | None) -> str:
    return DASH if estimate is None else speedup_phrase(estimate)
