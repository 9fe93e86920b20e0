"""Tables with names of models, of which those of the Hub are long."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from localspec.cli.screen import fits
from localspec.session.plain_text import one_line

Name = Callable[[str], str]
"""Makes of a model's name what a cell holds."""


def name_in_table(name: str) -> str:
    """Return a name in one line."""
    return one_line(name)


def broken_name(name: str) -> str:
    """Return a name broken behind its owner, where people can still read it."""
    return one_line(name).replace("/", "/\n", 1)


def fitting_table(console: Console, *makers: Callable[[Name], Table]) -> Table:
    """Return the first table that fits; if none does, the last one with its names broken."""
    for make in makers:
        if fits(console, grid := make(name_in_table)):
            return grid
    return makers[-1](broken_name)
