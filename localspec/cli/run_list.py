"""The kept runs as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from localspec.cli.chat_lines import moment_text
from localspec.cli.screen import DASH, fits, table
from localspec.metrics.statistics import Estimate
from localspec.session.plain_text import one_line
from localspec.session.verdict import factor_text, speedup_phrase
from localspec.store.values import RunSummary

UNUSABLE_MARK = "*"

LEGEND = f"{UNUSABLE_MARK} unusable: the baseline changed too much while it was measured."

SLIM_WIDTH = 60
"""With fewer columns than this, a table of several would break words."""


def runs_table(console: Console, summaries: Sequence[RunSummary]) -> Table:
    """Return the runs as a table that fits; in few columns a run takes several lines, in very few all in one column."""
    wide, narrow = _wide(summaries), _narrow(summaries)
    if fits(console, wide):
        return wide
    return narrow if console.width >= SLIM_WIDTH or fits(console, narrow) else _slim(summaries)


def run_line(summary: RunSummary) -> str:
    """Return a run in one line."""
    models = " + ".join(one_line(name) for name in (summary.target_name, summary.draft_name) if name)
    return f"run {summary.id}: {moment_text(summary.created_at)}, {summary.kind}, {models or DASH}, {summary.state}"


def speedup_text(summary: RunSummary) -> str:
    """Return the best arm's speedup with its interval; a dash if nothing was compared."""
    if summary.speedup is None:
        return DASH
    mark = UNUSABLE_MARK if summary.is_unusable else ""
    if summary.speedup_low is None or summary.speedup_high is None:
        return f"{factor_text(summary.speedup)}x{mark}"
    return speedup_phrase(Estimate(summary.speedup, summary.speedup_low, summary.speedup_high, 0)) + mark


def _wide(summaries: Sequence[RunSummary]) -> Table:
    grid = table("", "Date", "Kind", "Target", "Draft", "Workloads", "Speedup", "Best arm", "State")
    _align_left(grid, "Speedup")
    for summary in summaries:
        grid.add_row(
            str(summary.id),
            moment_text(summary.created_at),
            summary.kind,
            one_line(summary.target_name) or DASH,
            one_line(summary.draft_name) or DASH,
            _workloads(summary),
            speedup_text(summary),
            one_line(summary.best_arm) or DASH,
            summary.state,
        )
    return grid


def _narrow(summaries: Sequence[RunSummary]) -> Table:
    grid = table("", "Date", "Models", "Workloads", "Speedup", "State")
    _align_left(grid)
    for column in grid.columns:
        column.no_wrap = column.header not in ("Models", "Workloads", "Speedup")
    for summary in summaries:
        models = [one_line(summary.target_name) or DASH]
        if summary.draft_name:
            models.append(f"+ {one_line(summary.draft_name)}")
        speedup = speedup_text(summary).replace(" (", "\n(")
        if summary.best_arm:
            speedup += f"\n{one_line(summary.best_arm)}"
        grid.add_row(
            str(summary.id),
            moment_text(summary.created_at).replace(" ", "\n"),
            "\n".join(models),
            _workloads(summary).replace(", ", "\n"),
            speedup,
            f"{summary.kind}\n{summary.state}",
        )
    return grid


def _slim(summaries: Sequence[RunSummary]) -> Table:
    grid = table("", "Run")
    _align_left(grid)
    for summary in summaries:
        models = [one_line(name) for name in (summary.target_name, summary.draft_name) if name] or [DASH]
        speedup = speedup_text(summary).replace(" (", "\n(")
        lines = [
            f"{moment_text(summary.created_at)} {summary.kind}",
            "\n+ ".join(models),
            _workloads(summary),
            f"{speedup} {one_line(summary.best_arm)}".rstrip(),
            summary.state,
        ]
        grid.add_row(str(summary.id), "\n".join(lines))
    return grid


def _align_left(grid: Table, *but: str) -> None:
    for column in grid.columns:
        column.justify = "right" if column.header in ("", *but) else "left"


def _workloads(summary: RunSummary) -> str:
    return one_line(", ".join(summary.workloads)) or DASH
