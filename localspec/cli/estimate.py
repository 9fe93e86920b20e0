"""`localspec estimate`: what speculation should gain, and beside it what it did."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from localspec.cli.failures import EXIT_DONE
from localspec.cli.profile import opened
from localspec.cli.screen import DASH, print_table, results_console, say, table
from localspec.cli.services import Services
from localspec.metrics.prediction import LengthPrediction, best_length
from localspec.session.estimate import (
    RunEstimate,
    estimate_run,
    estimate_stated,
    lengths_record,
    run_estimate_record,
    shortened,
)
from localspec.session.figures import number_text, percent_text
from localspec.session.plain_text import one_line
from localspec.session.records import encode_record
from localspec.session.run_document import choose_run, read_document
from localspec.store.runs import Runs

SCHEMA = 1


def run_stated(acceptance: float, n_max: int, draft_cost: float, verify_costs: Sequence[float], is_json: bool) -> int:
    """Print an estimate from figures that were stated, and return the exit code."""
    lengths = estimate_stated(acceptance, n_max, draft_cost, verify_costs)
    console = results_console(is_json)
    grid = table("Drafted", "Tokens", "Steps", "Speedup", "Breaks even at")
    best = best_length(lengths)
    for length in lengths:
        grid.add_row(*_cells(length, best))
    print_table(console, grid)
    console.print()
    say(console, best_sentence(best))
    if not verify_costs:
        say(
            console,
            "Checking several tokens is taken to be as fast as one step. It seldom is: `localspec bench` measures it, "
            "and `localspec estimate --run last` reckons with that.",
        )
    if is_json:
        stated = {"acceptance": acceptance, "draft_cost": draft_cost, "verify_costs": list(verify_costs) or None}
        record = {"schema": SCHEMA, **stated, "lengths": lengths_record(lengths), "best_n": best.n}
        print(encode_record(record))
    return EXIT_DONE


def run_measured(services: Services, run: str, workload: str, arm: str, n_max: int | None, is_json: bool) -> int:
    """Print estimates from a kept run beside what it measured, and return the exit code."""
    with opened(services) as database:
        stored = choose_run(Runs(database), run)
    estimates = estimate_run(read_document(stored), workload, arm)
    if n_max is not None:
        estimates = tuple(shortened(estimate, n_max) for estimate in estimates)
    console = results_console(is_json)
    say(console, f"run {stored.summary.id}", style="bold")
    _show_measured(console, estimates)
    chosen = max(estimates, key=lambda estimate: estimate.measured or 0.0)
    console.print()
    _show_lengths(console, chosen)
    if is_json:
        records = [run_estimate_record(estimate) for estimate in estimates]
        print(encode_record({"schema": SCHEMA, "run_id": stored.summary.id, "estimates": records}))
    return EXIT_DONE


def best_sentence(best: LengthPrediction) -> str:
    """Return which length to draft, and what it gains."""
    if best.n == 0:
        return "No length pays: leave drafts off."
    tokens = "1 token" if best.n == 1 else f"{best.n} tokens"
    return (
        f"Best: draft {tokens}. A round then gives {best.tokens:.2f} tokens for {best.steps:.2f} steps, "
        f"{best.speedup:.2f}x."
    )


def _show_measured(console: Console, estimates: Sequence[RunEstimate]) -> None:
    grid = table("Workload", "Arm", "Predicted", "Measured", "Interval", "Difference")
    grid.columns[1].justify = "left"
    for estimate in estimates:
        low, high = estimate.low, estimate.high
        difference = estimate.difference
        grid.add_row(
            one_line(estimate.workload),
            one_line(estimate.arm),
            _factor(estimate.predicted),
            _factor(estimate.measured),
            DASH if low is None or high is None else f"{low:.2f} to {high:.2f}",
            DASH if difference is None else f"{100 * difference:+.0f} %",
        )
    print_table(console, grid)
    console.print()
    say(
        console,
        "Predicted is from the medians of single rounds. It leaves out slow moments of the machine, which the measured "
        "figure has in it.",
    )


def _show_lengths(console: Console, estimate: RunEstimate) -> None:
    say(console, one_line(f"{estimate.workload}, {estimate.arm}, if every round drafted:"), style="bold")
    best = estimate.best
    grid = table("Drafted", "Tokens", "Steps", "Speedup", "Breaks even at", "Acceptance", "Checking", "Rounds")
    for length in estimate.lengths:
        n = length.n
        acceptance = percent_text(estimate.acceptance[n - 1]) if n else DASH
        cost = number_text(estimate.verify_costs[n - 1]) if n else "1.00"
        mark = "" if n == 0 or estimate.is_measured(n) else "~"
        grid.add_row(*_cells(length, best), acceptance, mark + cost, str(estimate.num_rounds[n]))
    print_table(console, grid)
    console.print()
    say(console, best_sentence(best))
    say(
        console,
        f"A drafted token took {estimate.draft_cost:.3f} steps. Acceptance is that of the last token drafted, given "
        "that all before it were accepted; checking is a round's time without the drafting. A cost with ~ rests on few "
        "rounds or on its neighbours.",
    )
    if not estimate.num_rounds[0] or sum(estimate.num_rounds[1:]) >= 0.9 * sum(estimate.num_rounds):
        return
    share = 1.0 - estimate.num_rounds[0] / sum(estimate.num_rounds)
    say(console, f"Only {percent_text(share)} of the rounds had anything to check; the others are plain steps.")


def _cells(length: LengthPrediction, best: LengthPrediction) -> tuple[str, ...]:
    mark = " *" if length.n == best.n else ""
    paying = "never" if length.break_even is None else percent_text(length.break_even)
    even = paying if length.n else DASH
    return f"{length.n}{mark}", number_text(length.tokens), number_text(length.steps), _factor(length.speedup), even


def _factor(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}x"
