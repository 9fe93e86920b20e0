"""Where output goes: results to stdout, everything that is no result to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from localspec.cli.text import one_line

WIDTH_WITHOUT_TERMINAL = 140
"""Columns of a file or a pipe: wide enough that no table is cut."""

DASH = "\N{EN DASH}"
"""Shown for a value that does not exist; never 0."""

Report = Callable[[str, float, str], None]
"""Called with what is going on, the fraction that is done, and a figure that changes all the time."""


def results_console(is_json: bool = False) -> Console:
    """Return the console for results. With JSON wanted, stdout is for the document alone and tables go to stderr."""
    return _console(sys.stderr.isatty() if is_json else sys.stdout.isatty(), is_stderr=is_json)


def notices_console() -> Console:
    """Return the console for progress and remarks: stderr."""
    return _console(sys.stderr.isatty(), is_stderr=True)


def table(*columns: str) -> Table:
    """Return an empty table: the first column is left-aligned, the others are right-aligned."""
    made = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return made


@contextmanager
def progress(console: Console) -> Iterator[Report]:
    """Show what is going on: one line that changes on a terminal, otherwise a line whenever the description changes."""
    if not console.is_terminal:
        yield _plain_report(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[figure]}", markup=False),
    )
    # Seldom, since drawing takes a core from what is being measured.
    with Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("", total=1.0, figure="")

        def report(description: str, fraction: float, figure: str) -> None:
            bar.update(task, description=one_line(description), completed=fraction, figure=figure)

        yield report


def _plain_report(console: Console) -> Report:
    last = ""

    def report(description: str, fraction: float, figure: str) -> None:
        nonlocal last
        line = one_line(description)
        if line != last:
            last = line
            console.print(line, soft_wrap=True)

    return report


def _console(is_terminal: bool, is_stderr: bool) -> Console:
    return Console(
        stderr=is_stderr,
        markup=False,
        highlight=False,
        emoji=False,
        width=None if is_terminal else WIDTH_WITHOUT_TERMINAL,
    )
