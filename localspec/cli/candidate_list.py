"""Drafts that were found for a target, for people: ranked, with one line of reason each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.table import Table

from localspec.catalog.costs import share_text
from localspec.cli.labels import Name, fitting_table
from localspec.cli.screen import DASH, print_table, say, table
from localspec.session.candidates import Candidate, SearchExtent
from localspec.session.figures import bytes_text, percent_text
from localspec.session.located import LocatedModel
from localspec.session.plain_text import one_line
from localspec.session.ranking import CAVEAT

_LEGEND = (
    "Cost: what a draft step reads, in target steps. Pays from: the acceptance rate from which 4 drafted tokens a "
    f"round gain, if checking 5 tokens costs as much as one; on a processor it costs more. {CAVEAT}"
)

_PLAIN = ("Draft", "Method")
_COLUMNS = (*_PLAIN, "Size", "Cost", "Pays from")


def show_candidates(
    console: Console, target: LocatedModel, candidates: Sequence[Candidate], extent: SearchExtent | None = None
) -> None:
    """Print ranked candidates, then the refused ones, and what was not considered."""
    accepted = [one for one in candidates if not one.refusal]
    refused = [one for one in candidates if one.refusal]
    is_plain = all(one.source == "built in" for one in accepted)
    say(console, one_line(f"What may draft for {target.label}"), style="bold")
    print_table(console, fitting_table(console, partial(_grid, accepted, _PLAIN if is_plain else _COLUMNS)))
    if any(one.cost_ratio for one in accepted):
        say(console, _LEGEND)
    console.print()
    for rank, one in enumerate(accepted, 1):
        say(console, one_line(f"{rank}. {_named(one)}: {one.reason}"))
    listed = [one for one in accepted if one.notes]
    if listed:
        console.print()
        say(console, "The curated list says:", style="bold")
    for one in listed:
        say(console, one_line(f"{one.label}: {one.notes}"), indent=2)
    if refused:
        console.print()
        say(console, "Refused:", style="bold")
    for one in refused:
        say(console, one_line(f"{_named(one)}: {one.refusal}"), indent=2)
    if extent is None:
        return
    said = [extent.passed_over, extent.searched if is_plain else ""]
    if any(said):
        console.print()
    for sentence in filter(None, said):
        say(console, sentence)


def _named(one: Candidate) -> str:
    others = f" (the same as {', '.join(one.other_names)})" if one.other_names else ""
    return f"{one.label}{others}"


def _grid(accepted: Sequence[Candidate], columns: Sequence[str], shown: Name) -> Table:
    grid = table("", *columns)
    for index in (1, 2):
        grid.columns[index].justify = "left"
    for rank, one in enumerate(accepted, 1):
        is_here = one.source == "local" or one.path is not None
        is_counted = one.cost_ratio is not None and one.method != "ngram"
        row = {
            "Draft": shown(one.label + (" (here)" if is_here else "")),
            "Method": one.method,
            "Size": bytes_text(one.size_bytes) if one.size_bytes else DASH,
            "Cost": share_text(one.cost_ratio or 0.0) if is_counted else "0" if one.method == "ngram" else DASH,
            "Pays from": percent_text(one.break_even) if one.method != "ngram" else DASH,
        }
        grid.add_row(str(rank), *(row[column] for column in columns))
    return grid
