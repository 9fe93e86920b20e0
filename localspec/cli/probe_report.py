"""A probe as tables, a drawing of characters, and a verdict."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from localspec.cli.advice import command_line
from localspec.cli.heading import Names, context_words, draft_context_words, model_text, threads_text
from localspec.cli.probe_drawing import draw_needed
from localspec.cli.screen import DASH, print_table, say, table
from localspec.engine.events import StepCost
from localspec.session.figures import bytes_text, number_text, percent_text, rate_text, speed_text, speed_unit
from localspec.session.loading import context_notes
from localspec.session.plain_text import one_line
from localspec.session.probe_words import acceptance_text, condition_sentences, verdict_sentence
from localspec.session.probing import ProbeReport, needed_rows
from localspec.session.step_curve import LengthNeed, StepCurve

LENGTHS = (1, 2, 4, 8)
"""Drafted tokens in a round that have a column of their own."""

_STEPS_WORDS = (
    "Half of the steps took a time within the middle half. Rise: beyond the step before it, in single steps; ~ where "
    "the middle halves of the two overlap, so that no difference is claimed. At best: were all tokens accepted."
)

_NEEDED_WORDS = (
    "Cost: a step of the draft / a step of the target; 0 copies from the text (n-gram, suffix). k: tokens drafted in a "
    "round; best is the one that pays first. Acceptance: of a token, if all before it were accepted."
)


def show_report(report: ProbeReport, names: Names, console: Console) -> None:
    """Print what was measured on, then for each depth what steps cost and which acceptance pays, then what to do."""
    for line in _heading(report, names):
        say(console, line)
    for note in context_notes(report.loaded):
        say(console, f"{note.severity}: {note.text} {note.advice}")
    for line in report.memory_notes:
        say(console, one_line(line))
    for curve in report.curves:
        console.print()
        _show_curve(curve, console, is_first=curve is report.curves[0])
    console.print()
    for sentence in condition_sentences(report):
        say(console, f"note: {sentence}")
    for curve in report.curves:
        behind = f"Behind {curve.depth} positions: " if len(report.curves) > 1 else ""
        say(console, f"{behind}{verdict_sentence(curve)}", style="bold")
    _show_way_on(report, names, console)


def _heading(report: ProbeReport, names: Names) -> list[str]:
    target, draft = report.loaded.target, report.loaded.draft
    lines = [f"target  {model_text(names[0].shown, target)}, {bytes_text(target.size_bytes)}"]
    if draft is not None and names[1] is not None:
        lines.append(f"draft   {model_text(names[1].shown, draft)}, {bytes_text(draft.size_bytes)}")
    threads = threads_text(target, draft)
    lines.append(one_line(f"n_ctx {target.n_ctx}, threads {threads}, text {report.plan.text_name}"))
    return lines


def _show_curve(curve: StepCurve, console: Console, is_first: bool) -> None:
    words = f"Steps of the target behind {curve.depth} positions"
    if curve.prefill_tps is not None:
        words += f"; the prompt is read with {speed_text(curve.prefill_tps)}"
    say(console, words, style="bold")
    print_table(console, _steps_table(curve))
    if curve.draft is not None:
        say(
            console,
            f"A step of the draft takes {_milliseconds(curve.draft.median_s)} ms "
            f"({_milliseconds(curve.draft.low_s)} to {_milliseconds(curve.draft.high_s)}), "
            f"{number_text(curve.draft_cost)} of a step of the target.",
        )
    if is_first:
        say(console, _STEPS_WORDS)
    console.print()
    say(console, "Drafts pay from this acceptance on, by what a drafted token costs", style="bold")
    print_table(console, _needed_table(curve))
    if is_first:
        say(console, _NEEDED_WORDS + ("" if curve.draft is None else " X: this draft."))
    console.print()
    for line in draw_needed(curve):
        console.print(Text(line), soft_wrap=True)


def _steps_table(curve: StepCurve) -> Table:
    grid = table("Tokens", "Time, ms", "Middle half", "Of one", "Rise", f"{speed_unit()} at best", "Timed")
    costs, rises = curve.costs, curve.rises
    for step in curve.steps:
        rise = f"{rises[step.width]:+.2f}" if step.width in rises else "~" if step.width > 1 else DASH
        grid.add_row(
            str(step.width),
            _milliseconds(step.median_s),
            _middle_half(step),
            number_text(costs[step.width]),
            rise,
            rate_text(step.width / step.median_s),
            f"{step.num_steps}",
        )
    return grid


def _needed_table(curve: StepCurve) -> Table:
    grid = table("Cost", "Best k", "At least", "Middle half", *(f"k = {n}" for n in LENGTHS))
    for row in needed_rows(curve):
        best = row.best
        label = f"{row.draft_cost:.2f} X" if row.is_measured else f"{row.draft_cost:g}"
        cells = [DASH, "never", DASH]
        if best is not None:
            cells = [str(best.n), acceptance_text(best.acceptance), _span(best)]
        columns = [DASH if need is None else acceptance_text(need.acceptance) for need in map(row.at, LENGTHS)]
        grid.add_row(label, *cells, *columns, style="bold" if row.is_measured else "")
    return grid


def _show_way_on(report: ProbeReport, names: Names, console: Console) -> None:
    """Say what to do next, with the command."""
    draft = names[1]
    if draft is None:
        size = report.loaded.target.size_bytes
        say(
            console,
            "Before a draft is fetched, the size of its file tells its cost, roughly: "
            f"{percent_text(0.1)} would be {bytes_text(size // 10)} here. Small models cost somewhat more than that.",
        )
        say(console, "To see what can draft for it:")
        command = command_line("localspec", "pair", names[0].word)
    else:
        say(console, "The acceptance on your texts is measured by:")
        plan = report.plan
        options = [*draft_context_words(plan.draft_context or plan.context, plan.context), *context_words(plan.context)]
        if plan.is_forced:
            options.append("--force")
        command = command_line("localspec", "bench", names[0].word, "--draft", draft.word, *options)
    # Never broken, so that it can be copied.
    console.print(f"  {command}", soft_wrap=True)


def _span(need: LengthNeed) -> str:
    return f"{acceptance_text(need.low)} to {acceptance_text(need.high)}"


def _middle_half(step: StepCost) -> str:
    return f"{_milliseconds(step.low_s)} to {_milliseconds(step.high_s)}"


def _milliseconds(seconds: float) -> str:
    value = 1000.0 * seconds
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
