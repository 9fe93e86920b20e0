"""Comparisons as tables, and their progress."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from localspec.catalog.workloads import Workload
from localspec.cli.heading import Names, chat_command, heading, names_of
from localspec.cli.screen import Report, say
from localspec.cli.workload_table import NOTHING_MEASURED, show_workload
from localspec.engine.events import PrefillProgress, RoundFinished
from localspec.metrics.meter import RateMeter
from localspec.session.figures import speed_text
from localspec.session.measurement import Measurement, MeasurementProgress
from localspec.session.outcome import ComparisonResult
from localspec.session.plain_text import one_line
from localspec.session.records import workload_record
from localspec.session.verdict import best_arm, is_reliable


def show_measurement(measurement: Measurement, console: Console, names: Names | None = None) -> None:
    """Print what was measured on, then a table, sentences and remarks for each workload, then what to do with it.

    Args:
        measurement: what was measured.
        console: takes it all.
        names: what the user calls the models; None for their files' names.
    """
    plan = measurement.plan
    names = names or names_of(plan)
    for line in heading(measurement, names):
        say(console, line)
    for note in measurement.context_notes:
        say(console, f"{note.severity}: {note.text} {note.advice}")
    for line in measurement.memory_notes:
        say(console, one_line(line))
    if not any(arm.has_run for result in measurement.results for arm in result.arms):
        console.print()
        say(console, NOTHING_MEASURED)
        return
    for result, workload in zip(measurement.results, plan.workloads, strict=False):
        show_comparison(result, workload, plan.sampling_for(workload).temperature, console)
    if not_started := plan.workloads[len(measurement.results) :]:
        console.print()
        say(console, f"Not started: {', '.join(one_line(workload.name) for workload in not_started)}.")
    if command := chat_command(measurement, names):
        console.print()
        say(console, _advice(measurement))
        # Never broken, so that it can be copied.
        console.print(f"  {command}", soft_wrap=True)


def show_comparison(result: ComparisonResult, workload: Workload, temperature: float, console: Console) -> None:
    """Print one workload: a column for each arm, then what follows from it."""
    facts = {"title": workload.title, "temperature": temperature, "is_copy_heavy": workload.is_copy_heavy}
    show_workload({**workload_record(result), **facts}, console)


def progress_printer(
    report: Report, clock: Callable[[], float] = time.monotonic
) -> Callable[[MeasurementProgress], None]:
    """Return what turns a measurement's progress into lines."""
    meter = RateMeter(clock)

    def on_progress(progress: MeasurementProgress) -> None:
        if progress.load is not None:
            report(f"loading the {progress.load.model}", progress.fraction, "")
        elif progress.comparison is not None:
            event = progress.comparison.event
            if event is None:
                meter.reset()
            elif isinstance(event, RoundFinished):
                meter.add(len(event.emitted))
            rate = meter.rate()
            figure = "" if rate is None else speed_text(rate)
            if progress.comparison.phase == "replay" and isinstance(event, PrefillProgress):
                figure = f"{event.num_done} of {event.num_total} tokens"
            report(_phase(progress), progress.fraction, figure)
        elif progress.stage == "switch":
            report("a text that changes: copy-heavy, open, copy-heavy", progress.fraction, "")
        else:
            report("reading the model files for their SHA-256", progress.fraction, "")

    return on_progress


def _phase(progress: MeasurementProgress) -> str:
    comparison = progress.comparison
    if comparison is None:
        return ""
    if comparison.phase == "warm_up":
        return f"{comparison.workload_name}: warming up, {comparison.arm.name}"
    pair = f"pair {comparison.pair + 1} of {comparison.num_pairs}"
    if comparison.phase == "replay":
        return f"{comparison.workload_name}: {pair}, finding out why the text of {comparison.arm.name} differs"
    return f"{comparison.workload_name}: {pair}, {comparison.arm.name}"


def _advice(measurement: Measurement) -> str:
    """Return what the command that follows is for."""
    if best_arm(measurement.results) is not None:
        return "To chat with the best of these:"
    arms = [arm for result in measurement.results if is_reliable(result) for arm in result.speculative]
    if any(arm.speedup is not None and arm.speedup.low is not None for arm in arms):
        return "Nothing is clearly faster here. To chat without drafts:"
    return "Too little was measured to choose by. To chat without drafts:"
