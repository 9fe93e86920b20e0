"""`python -m tests.simulation`: writes the tables of docs/pacing.md and the picture beside them; takes minutes."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from tests.simulation.compare import OURS, POLICIES, TOLD, Setting, run
from tests.simulation.machines import CPU_F16, GPU, METAL
from tests.simulation.picture import draw_regret
from tests.simulation.tables import COLUMNS, best_table, makers, policy_table
from tests.simulation.texts import MODEL_TEXTS, REGIMES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pacing.md"
PICTURE = ROOT / "assets" / "pacing-regret.svg"
LENGTH = 1200


def regret(setting: Setting, policy: str, seeds: range) -> list[float]:
    """Return by token how many plain steps more than being told it took on the switching text, mean over seeds."""
    make_text, make_pacing = MODEL_TEXTS["switching, telling"], makers()[policy]
    sums = [0.0] * (LENGTH + 1)
    for seed in seeds:
        taken = run(setting, make_text, make_pacing, LENGTH, seed).spent
        told = run(setting, make_text, POLICIES[TOLD], LENGTH, seed).spent
        for token in range(LENGTH + 1):
            sums[token] += taken[min(token, len(taken) - 1)] - told[min(token, len(told) - 1)]
    return [total / len(seeds) for total in sums]


def marks() -> list[int]:
    """Return the tokens at which the switching text changes."""
    found, at = [], 0
    while at < LENGTH:
        for _, count in REGIMES:
            at += count
            found.append(at)
    return [mark for mark in found if mark < LENGTH]


def put(page: str, name: str, table: str) -> str:
    """Return the page with a table in its place."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE} has no place for {name}")
    return pattern.sub(lambda _: f"{begin}\n{table}\n{end}", page)


def say(text: str) -> None:
    """Tell how far it is."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Run all, or a short version that only prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="one text each, and nothing is written")
    is_short = parser.parse_args().short
    seeds = range(1) if is_short else range(4)
    policies = policy_table(512, seeds, (0.05,) if is_short else (0.0, 0.05, 0.15, 0.5), say)
    conversations = best_table(256, 4, range(1) if is_short else range(3), 0.05, say)
    if is_short:
        print(policies, conversations, sep="\n\n")
        return
    curves = {
        f"{machine.name}, c = 0.05": {
            name: regret(Setting(machine, 0.05), name, range(6))
            for name in ("off", *(column for column in COLUMNS if column not in (OURS, TOLD)), OURS)
        }
        for machine in (GPU, METAL, CPU_F16)
    }
    draw_regret(curves, marks(), PICTURE)
    page = put(PAGE.read_text(encoding="utf-8"), "policies", policies)
    PAGE.write_text(put(page, "conversations", conversations), encoding="utf-8")


main()
