"""Kept runs as lines of a table, and which of them a filter shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from localspec.session.figures import DASH
from localspec.session.plain_text import one_line
from localspec.store.values import RunSummary

FASTER, SLOWER, UNCLEAR = "\N{BLACK UP-POINTING TRIANGLE}", "\N{BLACK DOWN-POINTING TRIANGLE}", "\N{ALMOST EQUAL TO}"
"""Marks of a verdict, which must not be told by colour alone."""
UNUSABLE = "*"
"""Mark of a speedup that is not to be relied on, since the baseline changed too much while it was measured."""


_PLUS = " + "


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line. All texts are safe and in one line."""

    id: int
    at: str
    """When it began, as the clock on the wall showed it."""
    target: str
    draft: str
    """Empty without a draft model."""
    workloads: str
    speedup: str
    """With its interval; a dash if nothing was compared."""
    mark: str
    """Verdict in one character; empty without an interval."""
    best_arm: str
    state: str
    kind: str

    @property
    def models(self) -> str:
        """Both models."""
        return f"{self.target} + {self.draft}" if self.draft else self.target


def run_row(summary: RunSummary) -> RunRow:
    """Return a run's line."""
    from localspec.session.kept_answer import moment_text

    return RunRow(
        id=summary.id,
        at=moment_text(summary.created_at),
        target=one_line(summary.target_name) or DASH,
        draft=one_line(summary.draft_name),
        workloads=one_line(", ".join(summary.workloads)) or DASH,
        speedup=speedup_text(summary),
        mark=verdict_mark(summary),
        best_arm=one_line(summary.best_arm) or DASH,
        state=summary.state,
        kind=summary.kind,
    )


@dataclass(frozen=True, slots=True)
class RunTable:
    """Runs as cells of a table."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_Level = tuple[tuple[str, int], ...]

_LEVELS: tuple[_Level, ...] = (
    (("No.", 6), ("Date", 16), ("Models", 60), ("Workloads", 24), ("Speedup", 24), ("Best arm", 16), ("State", 11)),
    (("No.", 6), ("date", 11), ("Models", 44), ("Workloads", 16), ("Speedup", 24), ("Best arm", 12), ("State", 11)),
    (("No.", 6), ("date", 11), ("Models", 32), ("Workloads", 12), ("Speedup", 24), ("State", 11)),
    (("No.", 6), ("date", 11), ("Models", 28), ("Speedup", 24), ("State", 11)),
    (("No.", 6), ("date", 11), ("Models", 22), ("speedup", 8), ("State", 11)),
    (("No.", 6), ("Models", 18), ("speedup", 8), ("State", 11)),
)
"""Columns with the most cells of each, from much room to little; in small letters a shorter form of the same."""


def run_table(rows: Sequence[RunRow], width: int) -> RunTable:
    """Return the fullest table that fits into a width; the smallest one if none does."""
    found, spare = RunTable((), ()), 0
    for level in _LEVELS:
        found = _table(rows, level)
        sizes = (max(map(cell_len, column)) for column in zip(found.headers, *found.rows, strict=True))
        spare = width - sum(size + 2 for size in sizes)
        if spare >= 0:
            break
    # What is left over goes to the names, which are cut most.
    roomy = tuple((name, size + max(0, spare) * (name == "Models")) for name, size in level)
    return _table(rows, roomy) if spare > 0 else found


def _table(rows: Sequence[RunRow], level: _Level) -> RunTable:
    return RunTable(
        tuple(name.capitalize() for name, _ in level),
        tuple(tuple(_cell(row, name, size) for name, size in level) for row in rows),
    )


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` cells."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}\N{HORIZONTAL ELLIPSIS}"


def models_text(target: str, draft: str, width: int) -> str:
    """Return both models in at most `width` cells; of the two the longer one is cut first."""
    if not draft:
        return cut(target, width)
    room = width - len(_PLUS)
    half = room // 2
    for_draft = min(cell_len(draft), max(half, room - cell_len(target)))
    return f"{cut(target, room - for_draft)}{_PLUS}{cut(draft, for_draft)}"


def _cell(row: RunRow, name: str, width: int) -> str:
    match name:
        case "No.":
            return str(row.id)
        case "Date":
            return row.at
        case "date":
            return row.at[5:]
        case "Models":
            return models_text(row.target, row.draft, width)
        case "Workloads":
            return cut(row.workloads, width)
        case "Speedup":
            return f"{row.mark} {row.speedup}".strip()
        case "speedup":
            return f"{row.mark} {row.speedup.partition(' (')[0]}".strip()
        case "Best arm":
            return cut(row.best_arm, width)
        case _:
            return row.kind if row.kind == "suite" and row.state == "done" else row.state


def speedup_text(summary: RunSummary) -> str:
    """Return the best arm's speedup with its interval; a dash if nothing was compared."""
    if summary.speedup is None:
        return DASH
    if summary.speedup_low is None or summary.speedup_high is None:
        return f"{summary.speedup:.2f}x"
    return f"{summary.speedup:.2f}x ({summary.speedup_low:.2f} to {summary.speedup_high:.2f})"


def verdict_mark(summary: RunSummary) -> str:
    """Return whether the interval lies above 1, below it, or on both sides; empty without one.

    Of a run whose baseline changed too much nothing is claimed.
    """
    if summary.is_unusable and summary.speedup is not None:
        return UNUSABLE
    if summary.speedup is None or summary.speedup_low is None or summary.speedup_high is None:
        return ""
    return FASTER if summary.speedup_low > 1.0 else SLOWER if summary.speedup_high < 1.0 else UNCLEAR


def filtered(runs: Sequence[RunSummary], words: str) -> tuple[RunSummary, ...]:
    """Return the runs in which every word occurs somewhere: number, date, models, workloads, arm, state, device."""
    wanted = words.casefold().split()
    if not wanted:
        return tuple(runs)
    return tuple(run for run in runs if _has(_searched(run), wanted))


def pair_speedups(runs: Sequence[RunSummary], of: RunSummary) -> tuple[float, ...]:
    """Return the speedups of all runs with the same two models that compared something of use, oldest first."""
    same = [
        run
        for run in runs
        if (run.target_name, run.draft_name) == (of.target_name, of.draft_name) and not run.is_unusable
    ]
    return tuple(run.speedup for run in sorted(same, key=lambda run: run.id) if run.speedup is not None)


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def _searched(run: RunSummary) -> str:
    row = run_row(run)
    parts = (str(run.id), row.at, row.models, row.workloads, row.best_arm, run.state, run.kind, run.profile, run.device)
    return " ".join(parts).casefold()
