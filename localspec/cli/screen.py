"""Where output goes: results to stdout, everything that is no result to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from localspec.session.plain_text import one_line

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

WIDTH_WITHOUT_TERMINAL = 80
"""Columns of a file or a pipe, unless COLUMNS says otherwise."""

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
    made = Table(
        header_style="bold", box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), border_style="dim"
    )
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index == 0 else "right", overflow="fold")
    return made


def fits(console: Console, grid: Table) -> bool:
    """Return whether a table needs no more columns than there are."""
    unlimited = console.options.update(width=10_000)
    return Measurement.get(console, unlimited, grid).maximum <= console.width


def print_table(console: Console, grid: Table) -> None:
    """Print a table without the spaces that would fill up its lines."""
    for segments in console.render_lines(grid, pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True)


def say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print a text: on a terminal broken at words and indented, elsewhere a line of its own for each line."""
    shown = Text(text, style)
    width = max(1, console.width - indent)
    lines = shown.wrap(console, width) if console.is_terminal else shown.split("\n")
    for line in lines:
        line.rstrip()
        console.print(Text(" " * indent) + line, soft_wrap=True)


@contextmanager
def progress(console: Console, first: str = "starting llama.cpp") -> Iterator[Report]:
    """Show what is going on: one line that changes on a terminal, otherwise a line whenever the description changes."""
    if not console.is_terminal:
        yield _plain_report(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[share]}", markup=False),
        TextColumn("{task.fields[figure]}", markup=False),
    )
    # Seldom, since drawing takes a core from what is being measured.
    with hidden_keys(), Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task(first, total=None, share="", figure="")

        def report(description: str, fraction: float, figure: str) -> None:
            share = f"{100 * fraction:.0f} %"
            bar.update(
                task, description=one_line(description), total=1.0, completed=fraction, share=share, figure=figure
            )

        yield report


@contextmanager
def hidden_keys() -> Iterator[None]:
    """Do not echo what is typed meanwhile into what is being shown. It waits for the next prompt; Ctrl-C works."""
    if termios is None or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    try:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, hidden)
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


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
        # NO_COLOR asks for no escape codes; rich alone would keep bold and dim.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        width=None if is_terminal else _width_without_terminal(),
    )


def _width_without_terminal() -> int:
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdigit() and int(columns) > 0 else WIDTH_WITHOUT_TERMINAL
