"""Two runs beside each other."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from localspec.cli.failures import EXIT_DONE
from localspec.cli.run_list import run_line
from localspec.cli.run_store import open_runs
from localspec.cli.screen import DASH, fits, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.cli.workload_table import below, rates_text
from localspec.metrics.comparison import Verdict
from localspec.session.figures import speed_unit
from localspec.session.plain_text import one_line
from localspec.session.records import document_of, encode_record
from localspec.session.run_comparison import (
    ArmChange,
    Change,
    RunComparison,
    compare_runs,
    comparison_record,
    unusable_sentence,
)
from localspec.session.run_document import choose_run
from localspec.session.verdict import factor_text, speedup_phrase

SCHEMA = 1

WORDS: dict[Verdict, str] = {
    "faster": "faster",
    "slower": "slower",
    "no_clear_difference": "no clear difference",
    "too_little_to_judge": "too little to judge",
}


def run_compare(services: Services, before: str, after: str, is_json: bool) -> int:
    """Compare two kept runs, and return the exit code."""
    with open_runs(services) as runs:
        old, new = choose_run(runs, before), choose_run(runs, after)
    comparison = compare_runs(document_of(old), document_of(new))
    console = results_console(is_json)
    for stored in (old, new):
        say(console, run_line(stored.summary))
    show_comparison(comparison, f"run {old.summary.id}", f"run {new.summary.id}", console)
    if is_json:
        ids = {"schema": SCHEMA, "before": old.summary.id, "after": new.summary.id}
        print(encode_record({**ids, **comparison_record(comparison)}))
    return EXIT_DONE


def show_comparison(comparison: RunComparison, before: str, after: str, console: Console) -> None:
    """Print what differs, then a table for each workload.

    Args:
        before: what the earlier run is called in the tables; likewise the later one.
    """
    console.print()
    if comparison.differences:
        say(console, f"What differs ({before} -> {after}):", style="bold")
        for difference in comparison.differences:
            say(console, one_line(str(difference)), indent=2)
    else:
        say(console, "Settings, build, device, power and files are the same, as far as they are known.")
    for workload in comparison.workloads:
        console.print()
        title = workload.name if workload.title == workload.name else f"{workload.title} ({workload.name})"
        say(console, one_line(title), style="bold")
        wide = _grid(workload.arms, before, after, is_narrow=False)
        if fits(console, wide):
            print_table(console, wide)
        else:
            _show_narrow(workload.arms, before, after, console)
        if sentence := unusable_sentence(workload, before, after):
            say(console, sentence)
    if comparison.unmatched:
        console.print()
    for sentence in comparison.unmatched:
        say(console, one_line(sentence))


def _show_narrow(arms: tuple[ArmChange, ...], before: str, after: str, console: Console) -> None:
    """Print the arms in as few tables as have room for them, one below the other."""
    while arms:
        num_shown = len(arms)
        grid = _grid(arms, before, after, is_narrow=True)
        while num_shown > 1 and not fits(console, grid):
            num_shown -= 1
            grid = _grid(arms[:num_shown], before, after, is_narrow=True)
        print_table(console, grid)
        arms = arms[num_shown:]
        if arms:
            console.print()


def _grid(arms: tuple[ArmChange, ...], before: str, after: str, is_narrow: bool) -> Table:
    grid = table("", *(one_line(arm.name) for arm in arms))

    def add(name: str, *cells: str) -> None:
        grid.add_row(name, *(below(cell) if is_narrow else cell for cell in cells))

    title = "decode_tps" if speed_unit() == "tokens/s" else f"decode ({speed_unit()})"
    add(f"{title}, {before}", *(rates_text(arm.decode_tps.before) for arm in arms))
    add(f"{title}, {after}", *(rates_text(arm.decode_tps.after) for arm in arms))
    _add_change(grid, [arm.decode_tps for arm in arms], is_narrow)
    if any(arm.speedup.before is not None or arm.speedup.after is not None for arm in arms):
        grid.add_row("")
        phrases = [
            [DASH if one is None else speedup_phrase(one) for one in (arm.speedup.before, arm.speedup.after)]
            for arm in arms
        ]
        add(f"speedup, {before}", *(one for one, _ in phrases))
        add(f"speedup, {after}", *(two for _, two in phrases))
        _add_change(grid, [arm.speedup for arm in arms], is_narrow)
    return grid


def _add_change(grid: Table, changes: list[Change], is_narrow: bool) -> None:
    ratios = [DASH if change.ratio is None else _ratio(change) for change in changes]
    grid.add_row("  ratio", *(below(ratio) if is_narrow else ratio for ratio in ratios))
    words = [DASH if change.verdict is None else WORDS[change.verdict] for change in changes]
    grid.add_row("  so it is", *(word.replace(" clear ", " clear\n") if is_narrow else word for word in words))


def _ratio(change: Change) -> str:
    ratio = change.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"{factor_text(ratio.median)}x" if ratio else DASH
    return speedup_phrase(ratio)
