"""A memory plan for people: a verdict, a bar for each device, the figures, and what could be given up."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from localspec.cli.memory_bars import WIDTH, bar, coloured, legend, limit_mark
from localspec.cli.screen import DASH, print_table, say, table
from localspec.planning.devices import PlanDevice
from localspec.planning.footprint import Placement
from localspec.planning.plan import MemoryPlan, PlanRow, Wishes
from localspec.planning.wording import device_title
from localspec.session.figures import bytes_text
from localspec.session.memory_pools import pools
from localspec.session.plain_text import one_line

_MAX_LABEL = 14
_FRAME = 2
"""Columns that the ends of a bar take."""


def show_plan(
    console: Console,
    plan: MemoryPlan,
    labels: tuple[str, str | None],
    wishes: Wishes,
    commands: Sequence[str],
) -> None:
    """Print a plan.

    Args:
        console: where to.
        plan: what to print.
        labels: of target and draft.
        wishes: what was asked for.
        commands: what takes each of the plan's offers.
    """
    target, draft = labels
    say(console, f"target  {one_line(target)}, {_placement(wishes.target)}")
    if draft is not None and wishes.draft is not None:
        say(console, f"draft   {one_line(draft)}, {_placement(wishes.draft, True)}")
    say(console, one_line(plan.sentence), style="bold")
    console.print()
    show_devices(console, plan.devices, plan.rows)
    console.print()
    print_table(console, _figures(plan.rows, plan.devices))
    for note in plan.notes:
        say(console, one_line(f"note: {note}"))
    if plan.offers:
        console.print()
        say(console, "What could be given up:", style="bold")
    for number, (offer, command) in enumerate(zip(plan.offers, commands, strict=True), 1):
        say(console, one_line(f"{number}. {offer.text}"))
        # Never broken, so that it can be copied.
        console.print(f"   {command}", soft_wrap=True)


def show_devices(console: Console, devices: Sequence[PlanDevice], rows: Sequence[PlanRow]) -> None:
    """Print a bar for each memory, and what its characters mean. One that a GPU shares with the host is one bar."""
    width = max(1, min(WIDTH, console.width - _FRAME))
    drawn = ""
    for pool in pools(devices, rows):
        text = bar(pool.parts, width)
        drawn += text
        say(console, one_line(f"{pool.title}: {pool.taken}"))
        console.print(coloured(text), soft_wrap=True)
        if pool.limit_bytes is not None:
            words = f"the GPU's limit, {bytes_text(pool.limit_bytes)}"
            console.print(f" {limit_mark(pool.limit_bytes, pool.total_bytes, words, width)}", soft_wrap=True)
        for note in pool.notes:
            say(console, one_line(note), indent=2)
    say(console, legend(drawn))


def device_label(name: str, devices: Sequence[PlanDevice]) -> str:
    """Return what a device is called in a column: a described one by its own name, shortened."""
    device = next((device for device in devices if device.name == name and device.kind == "gpu"), None)
    if device is None or not device.is_hypothetical:
        return name
    title = device_title(device, devices)
    return title if len(title) <= _MAX_LABEL else f"{title[: _MAX_LABEL - 1].rstrip()}…"


def _figures(rows: Sequence[PlanRow], devices: Sequence[PlanDevice]) -> Table:
    grid = table("Device", "Model", "Weights", "KV", "State", "Compute", "Output", "Total")
    grid.columns[1].justify = "left"
    for row in rows:
        sizes = (row.weights_bytes, row.kv_bytes, row.recurrent_bytes, row.compute_bytes, row.output_bytes)
        grid.add_row(
            one_line(device_label(row.device, devices)),
            row.model,
            *(bytes_text(size) if size else DASH for size in sizes),
            bytes_text(row.total_bytes),
        )
    return grid


def _placement(placement: Placement, is_draft: bool = False) -> str:
    context = f"n_ctx {placement.n_ctx}" if placement.n_ctx else "as much context as the target" if is_draft else ""
    same = placement.type_k == placement.type_v
    cache = placement.type_k if same else f"{placement.type_k}/{placement.type_v}"
    return f"{context or 'as much context as fits'}, KV {cache}"
