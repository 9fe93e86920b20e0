"""A memory plan for people: a verdict, a bar for each device, the figures, and what could be given up."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from localspec.cli.figures import bytes_text
from localspec.cli.memory_bars import WIDTH, bar, coloured, legend, parts_of
from localspec.cli.screen import DASH, print_table, say, table
from localspec.cli.text import one_line
from localspec.planning.devices import PlanDevice, used_bytes
from localspec.planning.footprint import Placement
from localspec.planning.plan import MemoryPlan, PlanRow, Wishes

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
    print_table(console, _figures(plan.rows))
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
    """Print a bar for each device, and what its characters mean."""
    used = used_bytes(rows, devices)
    width = max(1, min(WIDTH, console.width - _FRAME))
    sharing = [device.name for device in devices if device.shares_host_memory]
    drawn = ""
    for device in devices:
        others = sharing if device.kind == "host" else []
        text = bar(parts_of(device, rows, others), width)
        drawn += text
        over = used.get(device.name, 0) - device.budget_bytes
        excess = f", {bytes_text(over)} too much" if over > 0 else ""
        say(
            console,
            one_line(
                f"{_title(device)}: {bytes_text(used.get(device.name, 0))} of {bytes_text(device.budget_bytes)} taken"
                f"{excess} ({bytes_text(device.free_bytes)} of {bytes_text(device.total_bytes)} free, "
                f"{bytes_text(device.reserve_bytes)} kept free)"
            ),
        )
        console.print(coloured(text), soft_wrap=True)
        if device.note:
            say(console, one_line(device.note), indent=2)
    say(console, legend(drawn))


def _title(device: PlanDevice) -> str:
    name = device.name if device.description in ("", device.name) else f"{device.description} ({device.name})"
    return f"{name}, hypothetical" if device.is_hypothetical else name


def _figures(rows: Sequence[PlanRow]) -> Table:
    grid = table("Device", "Model", "Weights", "KV", "State", "Compute", "Output", "Total")
    grid.columns[1].justify = "left"
    for row in rows:
        sizes = (row.weights_bytes, row.kv_bytes, row.recurrent_bytes, row.compute_bytes, row.output_bytes)
        grid.add_row(
            one_line(row.device),
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
