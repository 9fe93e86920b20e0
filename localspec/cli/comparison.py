"""Comparisons as tables, and their progress."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

from localspec.catalog.workloads import Workload
from localspec.cli.figures import milliseconds_text, number_text, percent_text, rate_text
from localspec.cli.screen import DASH, Report, table
from localspec.cli.text import one_line
from localspec.engine.events import RoundFinished
from localspec.metrics.meter import RateMeter
from localspec.metrics.statistics import Estimate
from localspec.session.measurement import Measurement, MeasurementProgress
from localspec.session.outcome import ArmResult, ComparisonResult
from localspec.session.verdict import arm_sentence, same_text_sentence, speedup_phrase, summary_sentence


def show_measurement(measurement: Measurement, console: Console) -> None:
    """Print a table, a sentence and the remarks for each workload."""
    for result, workload in zip(measurement.results, measurement.plan.workloads, strict=False):
        show_comparison(result, workload, measurement.plan.sampling_for(workload).temperature, console)
    if measurement.loaded.draft_failure:
        console.print(
            f"\nThe draft model could not be loaded: {one_line(measurement.loaded.draft_failure)}", soft_wrap=True
        )


def show_comparison(result: ComparisonResult, workload: Workload, temperature: float, console: Console) -> None:
    """Print one workload: a column for each arm, then what follows from it."""
    kind = "copy-heavy, " if workload.is_copy_heavy else ""
    title = one_line(f"{workload.title} ({workload.name}: {kind}temperature {temperature:g})")
    grid = table("", *(one_line(arm.arm.name) for arm in result.arms))
    for name, cell in _ROWS:
        grid.add_row(name, *(cell(arm) if arm.has_run else DASH for arm in result.arms))
    console.print()
    console.print(title, style="bold", soft_wrap=True)
    console.print(grid)
    console.print(one_line(summary_sentence(result)), soft_wrap=True)
    for remark in remarks(result):
        console.print(f"  {one_line(remark)}", soft_wrap=True)


def remarks(result: ComparisonResult) -> list[str]:
    """Return what else must be said: arms that have not run, texts that differ, what makes the figures uncertain."""
    summary = summary_sentence(result)
    found = [arm_sentence(arm, result.baseline) for arm in result.speculative if not arm.has_run]
    found = [sentence for sentence in found if sentence != summary]
    for arm in result.speculative:
        if arm.same_text is not None and not arm.same_text.identical:
            found.append(f"{arm.arm.name}: {same_text_sentence(arm)}")
    found += result.notes
    if result.is_interrupted:
        found.append("Interrupted: only the runs that were complete are counted.")
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
    return f"{milliseconds_text(arm.gap_percentile('p50'))} / {milliseconds_text(arm.gap_percentile('p95'))}"


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
    ("decode_tps, tokens/s", _rate),
    ("speedup", _speedup),
    ("acceptance", lambda arm: percent_text(arm.stats.acceptance_rate)),
    ("tau, tokens per round", lambda arm: number_text(arm.stats.mean_accepted_length)),
    ("TTFT", lambda arm: milliseconds_text(arm.ttft_s)),
    ("TPOT p50 / p95", _percentiles),
    ("target passes saved", _saved),
    ("same text?", _same_text),
)
