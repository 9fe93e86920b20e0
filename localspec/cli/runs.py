"""`localspec runs`: the measurements that are kept."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from localspec.cli.chat_lines import moment_text
from localspec.cli.failures import EXIT_DONE, EXIT_FAILED, say_notice
from localspec.cli.run_list import LEGEND, run_line, runs_table
from localspec.cli.run_receipt import show_receipt, show_workloads
from localspec.cli.run_store import chosen_run, open_runs
from localspec.cli.screen import print_table, results_console, say
from localspec.cli.services import Services
from localspec.errors import UsageError
from localspec.session.plain_text import one_line
from localspec.session.records import document_of, encode_record
from localspec.session.run_document import choose_run
from localspec.session.run_export import exported
from localspec.session.suite_result import suite_sentences
from localspec.store.values import RunSummary

SCHEMA = 1

_MOST = 10**9
"""A larger limit is none, and SQLite would not take it."""

_STATES = {
    "running": "It is still being measured; here is what is complete.",
    "interrupted": "It was interrupted; here is what was complete.",
    "failed": "It ended early by a failure.",
    "lost": "Its process ended without a word; here is what it had measured.",
}


def run_list(services: Services, limit: int, is_json: bool) -> int:
    """List the runs, and return the exit code. So for all commands here."""
    with open_runs(services) as runs:
        # One more tells whether there are older ones.
        found = runs.summaries(min(limit, _MOST) + 1)
    summaries = found[:limit]
    console = results_console(is_json)
    if summaries:
        print_table(console, runs_table(console, summaries))
        if any(summary.is_unusable and summary.speedup is not None for summary in summaries):
            say(console, LEGEND, style="dim")
    else:
        say(console, "No runs are kept yet. `localspec demo` and `localspec bench MODEL` keep theirs.")
    if len(found) > limit:
        say(console, "There are older ones; --limit N shows more.", style="dim")
    if is_json:
        print(encode_record({"schema": SCHEMA, "runs": [asdict(summary) for summary in summaries]}))
    return EXIT_DONE


def run_show(services: Services, word: str, is_json: bool) -> int:
    """Show a run with all that its figures rest on."""
    stored = chosen_run(services, word)
    summary, document = stored.summary, document_of(stored)
    console = results_console(is_json)
    say(console, run_line(summary), style="bold")
    if state := _STATES.get(summary.state):
        say(console, state)
    if summary.finished_at:
        say(console, f"ended {moment_text(summary.finished_at)}", style="dim")
    if summary.profile:
        say(console, one_line(f"It measured the profile {summary.profile}."))
    for sentence in suite_sentences(document):
        say(console, one_line(sentence))
    console.print()
    show_receipt(document, console)
    show_workloads(document, console)
    if is_json:
        print(encode_record(exported(stored)))
    return EXIT_DONE


def run_delete(services: Services, words: Sequence[str], is_sure: bool) -> int:
    """Say what goes, ask, and delete it."""
    with open_runs(services) as runs:
        wanted: list[RunSummary] = []
        for word in words:
            summary = choose_run(runs, word).summary
            if summary not in wanted:
                wanted.append(summary)
        if running := [summary.id for summary in wanted if summary.state == "running"]:
            raise UsageError(f"Run {running[0]} is still being measured.", "Delete it when it has ended.")
        for summary in wanted:
            say(results_console(), run_line(summary))
        if not is_sure and not _is_confirmed():
            say_notice("Nothing was deleted.")
            return EXIT_FAILED
        for summary in wanted:
            runs.delete(summary.id)
    say(results_console(), "1 run deleted." if len(wanted) == 1 else f"{len(wanted)} runs deleted.")
    return EXIT_DONE


def _is_confirmed() -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("There is nobody to ask whether that may go.", "Add --yes.")
    return click.confirm("Delete?", default=False, err=True)
