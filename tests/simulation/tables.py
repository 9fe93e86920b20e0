"""Tables of the simulation, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.simulation.compare import (
    OURS,
    POLICIES,
    TOLD,
    MakePacing,
    Setting,
    best_fixed,
    converse,
    fixed,
    total_cost,
)
from tests.simulation.machines import MACHINES, Machine
from tests.simulation.texts import COPYING_TEXTS, MODEL_TEXTS, MakeText

Say = Callable[[str], None]

COLUMNS = ("fixed 3", "+2 / -1", "dynamic threshold", "joint confidence", "epsilon-greedy", "UCB", OURS, TOLD)


def makers() -> dict[str, MakePacing]:
    """Return all policies that have a column."""
    return {**POLICIES, "fixed 3": fixed(3)}


def policy_table(length: int, seeds: range, steps: Sequence[float], say: Say) -> str:
    """Return speeds relative to off from a cold start: mean over the draft model's texts, and the worst of them."""
    rows = [_row("machine", "c", *COLUMNS), _row(*["---"] * (2 + len(COLUMNS)))]
    made = makers()
    for machine in MACHINES:
        for step in steps:
            say(f"{machine.name}, c = {step}")
            setting = Setting(machine, step)
            cells = []
            for name in COLUMNS:
                speeds = [
                    length * len(seeds) / total_cost(setting, make_text, made[name], length, seeds)
                    for make_text in MODEL_TEXTS.values()
                ]
                cell = f"{sum(speeds) / len(speeds):.2f} ({min(speeds):.2f})"
                cells.append(f"**{cell}**" if name == OURS else cell)
            rows.append(_row(machine.name, f"{step:g}", *cells))
    return "\n".join(rows)


def best_table(length: int, num_answers: int, seeds: range, step: float, say: Say) -> str:
    """Return localspec's speed in a conversation beside off, the best fixed length, and being told."""
    rows = [
        _row(
            "text", "machine", "first 128 / off", "all / off", "best fixed", "later answers / best fixed", "all / told"
        ),
        _row(*["---"] * 7),
    ]
    for name, make_text in {**MODEL_TEXTS, **COPYING_TEXTS}.items():
        for machine in MACHINES:
            say(f"{name}, {machine.name}")
            rows.append(_best_row(name, make_text, machine, step, length, num_answers, seeds))
    return "\n".join(rows)


def _best_row(
    name: str, make_text: MakeText, machine: Machine, step: float, length: int, num_answers: int, seeds: range
) -> str:
    setting = Setting(machine, step, has_copier=name in COPYING_TEXTS)
    texts = range(num_answers * len(seeds))
    answers = converse(setting, make_text, length, num_answers, seeds)
    best, cost = best_fixed(setting, make_text, length, texts)
    told = total_cost(setting, make_text, POLICIES[TOLD], length, texts)
    first = total_cost(setting, make_text, POLICIES[OURS], 128, seeds)
    off = length * num_answers * len(seeds)
    return _row(
        name,
        machine.name,
        f"{128 * len(seeds) / first:.2f}",
        f"{off / sum(answers):.2f}",
        f"{off / cost:.2f} ({f'n_max {best}' if best else 'off'})",
        f"{cost * (num_answers - 1) / num_answers / sum(answers[1:]):.2f}",
        f"{told / sum(answers):.2f}",
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"
