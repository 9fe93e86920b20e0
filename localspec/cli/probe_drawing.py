"""The acceptance that drafts need, drawn with characters that every terminal has."""

from __future__ import annotations

from localspec.session.probe_words import PUBLISHED
from localspec.session.step_curve import StepCurve

WIDTH = 61
"""Columns of the plot itself, so that all fits into 80."""

_ROWS = 11
"""For acceptance 1.0, 0.9, … 0.0."""

_LEFT = 6
_LEAST_EDGE = 0.6
"""Costs are drawn up to here at least."""


def draw_needed(curve: StepCurve) -> list[str]:
    """Return lines of a plot: the least acceptance that pays, by the draft's cost. `X` is the measured draft.

    Where no draft pays, the curve ends. Dots lie where published acceptances of small drafts are.
    """
    own = curve.needed_by_draft()
    edge = _edge(0.0 if own is None else own.draft_cost)
    cells = [[" "] * WIDTH for _ in range(_ROWS)]
    low, high = PUBLISHED
    for row in range(_row(high), _row(low) + 1):
        cells[row] = ["." if column % 2 else " " for column in range(WIDTH)]
    for column in range(WIDTH):
        best = curve.needed(column * edge / (WIDTH - 1)).best
        if best is not None and best.acceptance is not None:
            cells[_row(best.acceptance)][column] = "*"
    if own is not None:
        acceptance = None if own.best is None else own.best.acceptance
        cells[0 if acceptance is None else _row(acceptance)][round(own.draft_cost / edge * (WIDTH - 1))] = "X"
    lines = ["acceptance needed"]
    for row, line in enumerate(cells):
        label = f"{1.0 - row / (_ROWS - 1):.1f}" if row % 2 == 0 else ""
        lines.append(f"{label:>{_LEFT - 1}} |{''.join(line)}".rstrip())
    lines.append(" " * _LEFT + "+" + "-" * WIDTH)
    lines.append(_ticks(edge))
    legend = f"*: from here up drafts pay   .: published, {low:g} to {high:g}"
    if own is not None:
        legend += "   X: this draft" if own.best is not None else "   X: this draft, which never pays"
    lines.append(" " * (_LEFT + 1) + "a drafted token's time / a step of the target")
    lines.append(" " * (_LEFT + 1) + legend)
    return lines


def _row(acceptance: float) -> int:
    return round((1.0 - acceptance) * (_ROWS - 1))


def _edge(cost: float) -> float:
    """Return where the axis ends: a number whose sixth parts are short, too."""
    edge = _LEAST_EDGE
    while edge < cost:
        edge *= 2.0
    return edge


def _ticks(edge: float) -> str:
    line = [" "] * (_LEFT + 1 + WIDTH + 4)
    for part in range(7):
        label = f"{edge * part / 6:g}"
        at = _LEFT + 1 + part * (WIDTH - 1) // 6 - (len(label) - 1) // 2
        line[at : at + len(label)] = label
    return "".join(line).rstrip()
