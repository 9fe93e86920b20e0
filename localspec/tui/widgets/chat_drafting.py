"""Who drafted what in an answer, and what adaptive drafting believes: lines of the live panel."""

from __future__ import annotations

from textual.content import Content

from localspec.metrics.pacing import PacingStats
from localspec.metrics.speculation import SpeculationStats
from localspec.session.drafting_text import resting_phrase
from localspec.session.figures import milliseconds_text, percent_text
from localspec.session.plain_text import one_line
from localspec.tui.token_marks import LETTERS, drafter_mark

_NAME = 11
"""Cells of what stands before a figure."""
_LEVELS = "▁▂▃▄▅▆▇█"
_MAX_DRAFTERS = 6
_ROOMY = 33
"""From so many cells on words stand in full."""


def drafter_lines(stats: SpeculationStats, width: int) -> list[Content]:
    """Return a line for each drafter that has drafted, where there are several; names come from files."""
    shares = [(name, share) for name, share in stats.by_drafter.items() if share.num_draft_tokens]
    if len(shares) < 2:
        return []
    lines = []
    for name, share in shares[:_MAX_DRAFTERS]:
        figures = f"{share.num_accepted_tokens} of {share.num_draft_tokens}  {percent_text(share.acceptance_rate):>5}"
        # The letter is the X-ray's.
        head = Content.assemble((f"{LETTERS[drafter_mark(name)]} ", "bold"), (one_line(name), "dim"))
        room = max(4, width - len(figures) - 1)
        shown = head.truncate(room, ellipsis=True)
        lines.append(Content.assemble(shown, " " * max(1, width - shown.cell_length - len(figures)), figures))
    return lines


def pacing_lines(pacing: PacingStats, width: int) -> list[Content]:
    """Return what adaptive drafting chose, believes and expected, against what came; nothing with fixed lengths."""
    last = pacing.last
    if last is None or not pacing.num_rounds:
        return []
    resting = resting_phrase(pacing)
    now = "none: resting" if last.is_resting else f"{last.limit} token{'' if last.limit == 1 else 's'}"
    if last.is_exploring:
        now += ", to learn"
    lines = [_row("length now", now)]
    if resting:
        lines += [Content.assemble((line.plain, "$text-warning")) for line in Content(resting).wrap(max(8, width))]
    lines += histogram_lines(pacing.lengths, width)
    lines += gauge_lines(last.acceptance, last.needed, width)
    rounds = pacing.num_rounds
    for name, tokens, seconds in (
        ("expected", pacing.expected_tokens, pacing.expected_s),
        ("measured", float(pacing.num_tokens), pacing.total_s),
    ):
        words = " tokens" if width >= _ROOMY else ""
        lines.append(_row(name, f"{tokens / rounds:.2f}{words} in {milliseconds_text(seconds / rounds)}"))
    return lines


def histogram_lines(lengths: tuple[int, ...], width: int) -> list[Content]:
    """Return how often each length was chosen: a column for each, and below them the lengths of every fourth."""
    room = max(4, width - _NAME)
    shown = lengths[:room]
    most = max(shown, default=0)
    if not most:
        return []
    columns = "".join(_column(count, most) for count in shown)
    axis = ""
    for length in range(0, len(shown), 4):
        label = str(length)
        if length + len(label) <= room:
            axis = f"{axis:<{length}}{label}"
    return [
        Content.assemble((f"{'lengths':<{_NAME}}", "dim"), (columns, "$primary")),
        Content.assemble((" " * _NAME + axis, "dim")),
    ]


def gauge_lines(acceptance: float, needed: float, width: int) -> list[Content]:
    """Return acceptance against what is needed: both numbers, and a bar in which a mark stands for the second."""
    pays = acceptance >= needed
    relation = "\N{GREATER-THAN OR EQUAL TO}" if pays else "<"
    words = f"{acceptance:.2f}, needs {needed:.2f}" if width >= 28 else f"{acceptance:.2f} {relation} {needed:.2f}"
    room = max(8, width - 2)
    filled = round(min(1.0, max(0.0, acceptance)) * room)
    at = min(room - 1, round(min(1.0, max(0.0, needed)) * room))
    cells = ["█" if place < filled else "·" for place in range(room)]
    cells[at] = "┃"
    style = "$text-success" if pays else "$text-warning"
    return [
        Content.assemble(("acceptance ", "dim"), words, (" ✓" if pays else " ✗", style)),
        Content.assemble(("".join(cells[:at]), style), ("┃", "bold"), ("".join(cells[at + 1 :]), style)),
    ]


def _row(name: str, value: str) -> Content:
    return Content.assemble((f"{name:<{_NAME}}", "dim"), value)


def _column(count: int, most: int) -> str:
    return _LEVELS[max(0, -(-count * len(_LEVELS) // most) - 1)] if count else "·"
