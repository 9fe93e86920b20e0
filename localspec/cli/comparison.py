"""Comparisons as tables, and their progress."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from localspec.catalog.workloads import Workload
from localspec.cli.figures import milliseconds_number, number_text, percent_text, rate_text
from localspec.cli.heading import chat_command, heading
from localspec.cli.screen import DASH, Report, fits, print_table, say, table
from localspec.cli.text import one_line
from localspec.engine.events import RoundFinished
from localspec.metrics.meter import RateMeter
from localspec.metrics.statistics import Estimate
from localspec.session.measurement import Measurement, MeasurementProgress
from localspec.session.outcome import ArmResult, ComparisonResult
from localspec.session.verdict import best_arm, same_text_sentence, speedup_phrase, verdict_sentences


def show_measurement(measurement: Measurement, console: Console) -> None:
    """Print what was measured on, then a table, sentences and remarks for each workload, then what to do with it."""
    plan = measurement.plan
    for line in heading(measurement):
        say(console, line)
    for note in measurement.context_notes:
        say(console, f"{note.severity}: {note.text} {note.advice}")
    for line in measurement.memory_notes:
        say(console, one_line(line))
    for result, workload in zip(measurement.results, plan.workloads, strict=False):
        show_comparison(result, workload, plan.sampling_for(workload).temperature, console)
    if not_started := plan.workloads[len(measurement.results) :]:
        console.print()
        say(console, f"Not started: {', '.join(one_line(workload.name) for workload in not_started)}.")
    if measurement.loaded.draft_failure:
        console.print()
        say(console, f"The draft model could not be loaded: {one_line(measurement.loaded.draft_failure)}")
    if command := chat_command(measurement):
        is_off = best_arm(measurement.results) is None
        console.print()
        say(
            console,
            "Nothing is clearly faster here. To chat without drafts:" if is_off else "To chat with the best of these:",
        )
        # Never broken, so that it can be copied.
        console.print(f"  {one_line(command)}", soft_wrap=True)


def show_comparison(result: ComparisonResult, workload: Workload, temperature: float, console: Console) -> None:
    """Print one workload: a column for each arm, then what follows from it."""
    kind = "copy-heavy, " if workload.is_copy_heavy else ""
    console.print()
    say(console, one_line(f"{workload.title} ({workload.name}: {kind}temperature {temperature:g})"), style="bold")
    wide = _grid(result, is_narrow=False)
    print_table(console, wide if fits(console, wide) else _grid(result, is_narrow=True))
    for sentence in verdict_sentences(result):
        say(console, one_line(sentence))
    for remark in remarks(result):
        say(console, one_line(remark), indent=2)


def remarks(result: ComparisonResult) -> list[str]:
    """Return what else must be said: texts that differ, what makes the figures uncertain."""
    found = [
        f"{arm.arm.name}: {same_text_sentence(arm)}"
        for arm in result.speculative
        if arm.same_text is not None and not arm.same_text.identical
    ]
    if any(arm.has_run for arm in result.speculative):
        found += result.notes
    if result.is_interrupted:
        found.append("Ended early: only the runs that were complete are counted.")
    return found


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
            report(
                _phase(progress),
                progress.fraction,
                "" if rate is None else f"{rate_text(rate)} tokens/s",
            )
        else:
            report("reading the model files for their SHA-256", progress.fraction, "")

    return on_progress


def _phase(progress: MeasurementProgress) -> str:
    comparison = progress.comparison
    if comparison is None:
        return ""
    if comparison.phase == "warm_up":
        return f"{comparison.workload_name}: warming up, {comparison.arm.name}"
    if comparison.phase == "replay":
        return f"{comparison.workload_name}: examining a difference, {comparison.arm.name}"
    return f"{comparison.workload_name}: pair {comparison.pair + 1} of {comparison.num_pairs}, {comparison.arm.name}"


def _grid(result: ComparisonResult, is_narrow: bool) -> Table:
    grid = table("", *(one_line(arm.arm.name) for arm in result.arms))
    rows = _ROWS
    if len({len(arm.trials) for arm in result.arms if arm.has_run}) > 1:
        rows = (("complete runs", lambda arm: str(len(arm.trials))), *rows)
    for name, cell in rows:
        cells = [cell(arm) if arm.has_run else DASH for arm in result.arms]
        # An interval goes below its figure, and is broken nowhere else.
        grid.add_row(name, *(text.replace(" (", "\n(").replace(", ", ",\n") if is_narrow else text for text in cells))
    return grid


def _rate(arm: ArmResult) -> str:
    return _interval(arm.decode_tps, rate_text)


def _interval(estimate: Estimate | None, text: Callable[[float | None], str]) -> str:
    if estimate is None:
        return DASH
    if estimate.low is None or estimate.high is None:
        return text(estimate.median)
    return f"{text(estimate.median)} ({text(estimate.low)} to {text(estimate.high)})"


def _speedup(arm: ArmResult) -> str:
    return DASH if arm.speedup is None else speedup_phrase(arm.speedup)


def _percentiles(arm: ArmResult) -> str:
    return f"{milliseconds_number(arm.gap_percentile('p50'))} / {milliseconds_number(arm.gap_percentile('p95'))}"


def _saved(arm: ArmResult) -> str:
    return DASH if arm.arm.is_baseline else f"{arm.stats.target_passes_saved} of {arm.stats.num_tokens}"


def _same_text(arm: ArmResult) -> str:
    answer = arm.same_text
    if answer is None:
        return DASH
    if answer.identical:
        return "identical"
    return f"{answer.kind or 'differs'}, token {(answer.first_difference or 0) + 1}"


_ROWS: tuple[tuple[str, Callable[[ArmResult], str]], ...] = (
    ("decode_tps (tokens/s)", _rate),
    ("speedup", _speedup),
    ("acceptance", lambda arm: percent_text(arm.stats.acceptance_rate)),
    ("tau (tokens/round)", lambda arm: number_text(arm.stats.mean_accepted_length)),
    ("TTFT (ms)", lambda arm: milliseconds_number(arm.ttft_s)),
    ("TPOT p50 / p95 (ms)", _percentiles),
    ("saved passes", _saved),
    ("same text?", _same_text),
)
