"""A search as lines: while it goes on, and what it found."""

from __future__ import annotations

from rich.console import Console

from localspec.cli.advice import command_line
from localspec.cli.screen import DASH, Report, print_table, say, table
from localspec.session.comparison import ComparisonProgress
from localspec.session.plain_text import one_line
from localspec.session.tuning.reporter import OnProgress
from localspec.session.tuning.space import setting_name
from localspec.session.tuning.values import STAGES, TuningPlan, TuningProgress, TuningResult, TuningTrial
from localspec.session.tuning.words import result_sentences, stage_text
from localspec.session.verdict import factor_text

MAX_ROWS = 12
"""Ways of drafting that are listed, the best first."""


def progress_printer(report: Report, plan: TuningPlan) -> OnProgress:
    """Return what turns a search's progress into lines."""
    names = [stage for stage, _ in STAGES]

    def on_progress(told: TuningProgress) -> None:
        share = min(1.0, told.elapsed_s / told.budget_s)
        head = f"{names.index(told.stage) + 1}/{len(names)} {stage_text(told.stage)}"
        detail = told.what
        if told.measurement is not None and told.measurement.comparison is not None:
            detail = _confirming(told.measurement.comparison)
        figure = ""
        if told.best is not None and told.best.ratio is not None:
            name = setting_name(told.best.setting, plan.drafts)
            figure = f"best so far {factor_text(told.best.ratio)}x: {one_line(name)}"
        report(f"{head}: {detail}" if detail else head, share, figure)

    return on_progress


def _confirming(told: ComparisonProgress) -> str:
    what = {
        "warm_up": "warm-up",
        "trial": f"pair {told.pair + 1} of {told.num_pairs}",
        "replay": f"why the texts of pair {told.pair + 1} differ",
    }
    return f"{told.workload_name}, {what[told.phase]}"


def show_result(result: TuningResult, console: Console, profile: str = "") -> None:
    """Print what was found: what was tried, then the verdict, then what to do with it.

    Args:
        result: of a search.
        console: takes it all.
        profile: name of the profile that was saved; empty for none.
    """
    _show_loading(result, console)
    _show_trials(result, console)
    console.print()
    for sentence in result_sentences(result):
        say(console, one_line(sentence))
    for note in result.notes:
        say(console, f"note: {one_line(note)}")
    if profile:
        console.print()
        say(console, f"Kept as the profile {one_line(profile)}. To chat with it:")
        # Never broken, so that it can be copied.
        console.print(f"  {command_line('localspec', 'chat', '--profile', profile)}", soft_wrap=True)


def _show_loading(result: TuningResult, console: Console) -> None:
    trials = result.cold.trials
    if len(trials) < 2:
        return
    grid = table("Loaded with", "plain step, ms", "step of 5, ms", "draft step, ms")
    for trial in trials:
        if trial.reason:
            grid.add_row(one_line(trial.name), one_line(trial.reason), DASH, DASH)
            continue
        steps = (trial.step_s(1), trial.step_s(5), trial.draft_step_s)
        grid.add_row(one_line(trial.name), *(DASH if step is None else f"{1000 * step:.1f}" for step in steps))
    print_table(console, grid)
    console.print()


def _show_trials(result: TuningResult, console: Console) -> None:
    if not result.trials:
        return
    workloads = [workload.name for workload in result.plan.workloads]
    columns = workloads if len(workloads) > 1 else []
    grid = table("Drafting", "against off", *columns, "pairs")
    for trial in result.trials[:MAX_ROWS]:
        name = one_line(setting_name(trial.setting, result.plan.drafts))
        if trial.ratio is None:
            grid.add_row(name, DASH, *(DASH for _ in columns), "0")
            continue
        grid.add_row(name, _factor(trial.ratio), *(_on(trial, column) for column in columns), str(trial.num_pairs))
    print_table(console, grid)
    if len(result.trials) > MAX_ROWS:
        say(console, f"and {len(result.trials) - MAX_ROWS} more that were no better")
    for trial in result.trials:
        if trial.reason:
            name = setting_name(trial.setting, result.plan.drafts)
            say(console, one_line(f"{name} could not run: {trial.reason}"))
    off, best = result.joules_per_token
    if off is not None:
        shown = DASH if best is None else f"{best:.2f}"
        say(console, f"Energy of the processor, joules per token: off {off:.2f}, best {shown}.")


def _on(trial: TuningTrial, workload: str) -> str:
    values = dict(trial.ratios).get(workload, ())
    return _factor(TuningTrial(trial.setting, ((workload, values),)).ratio)


def _factor(ratio: float | None) -> str:
    return DASH if ratio is None else f"{factor_text(ratio)}x"
