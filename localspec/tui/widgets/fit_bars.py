"""The memories of a machine as bars of letters on colours, with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import bytes_text
from localspec.session.memory_parts import LEGEND, bar, limit_mark
from localspec.session.memory_pools import Pool, pools
from localspec.tui.plain import plain_line

if TYPE_CHECKING:
    from localspec.planning.plan import MemoryPlan

WORDY_WIDTH = 104
"""Columns from which the figures say their words, and there is no legend."""

TALL = 40
"""Lines of the screen from which bars are thick."""

_GAP = "  "
_WORDS = dict(LEGEND)
_STYLES = {
    "T": "$text-primary on $primary-muted",
    "d": "$text-accent on $accent-muted",
    "K": "$text-success on $success-muted",
    "k": "$text-warning on $warning-muted",
    "c": "$text-secondary on $secondary-muted",
    "x": "$foreground on $surface-lighten-2",
    "=": "$foreground on $surface-lighten-1",
    ".": "$foreground on $surface",
}


class FitBars(Widget):
    """One bar for each memory. A letter and a colour stand for each part, so that either will do."""

    DEFAULT_CSS = """
    FitBars { height: auto; width: 1fr; }
    """

    plan: reactive[MemoryPlan | None] = reactive(None, layout=True)
    """The plan that is shown; None for none."""

    def render(self) -> Content:
        """Return the bars for the width at hand."""
        return Content("\n").join(self._lines(max(1, self.content_size.width), self.app.size.height))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines there are at a width."""
        return len(self._lines(max(1, width), viewport.height))

    def _lines(self, width: int, height: int) -> list[Content]:
        return [] if self.plan is None else list(bar_lines(self.plan, width, height >= TALL))


def bar_lines(plan: MemoryPlan, width: int, is_thick: bool = False) -> Iterator[Content]:
    """Yield a plan's memories, each line no wider than `width`; thick bars take two lines."""
    is_wordy = width >= WORDY_WIDTH
    drawn = ""
    shown = pools(plan.devices, plan.rows)
    for index, pool in enumerate(shown):
        if is_wordy and index:
            yield Content("")
        text = bar(pool.parts, width)
        drawn += text
        yield from _cut(_heading(pool, width), width)
        yield from [coloured(text)] * (2 if is_thick else 1)
        if pool.limit_bytes is not None:
            words = f"the GPU's limit, {bytes_text(pool.limit_bytes)}"
            mark = limit_mark(pool.limit_bytes, pool.total_bytes, words, width - 2)
            yield plain_indented(mark, "dim").truncate(width, ellipsis=True)
        yield from flow([_figure(part.character, part.size_bytes, is_wordy) for part in pool.parts], width)
    if not is_wordy:
        yield from flow([_key(character) for character, _ in LEGEND if character in drawn], width)


def coloured(text: str) -> Content:
    """Return a bar with a colour for each kind of part."""
    runs = ((character, len(list(same))) for character, same in groupby(text))
    return Content.assemble(*((character * length, _STYLES.get(character, "")) for character, length in runs))


def flow(items: Sequence[Content | None], width: int) -> Iterator[Content]:
    """Yield lines of items that are never broken; None is no item."""
    line = Content("")
    for item in items:
        if item is None:
            continue
        longer = item if not line else Content.assemble(line, _GAP, item)
        if line and longer.cell_length > width:
            yield line
            longer = item
        line = longer
    if line:
        yield line.truncate(width, ellipsis=True)


def plain_indented(text: str, style: str) -> Content:
    """Return a text of our own whose spaces stay."""
    return Content.styled(text, style)


def _heading(pool: Pool, width: int) -> list[Content]:
    title = plain_line(pool.title, "bold")
    style = "bold $text-error" if pool.over_bytes else ""
    for words in (pool.taken, pool.share):
        taken = plain_line(words, style)
        if title.cell_length + 2 + taken.cell_length <= width:
            return [Content.assemble(title, "  ", taken)]
    return [title, taken]


def _cut(lines: Sequence[Content], width: int) -> Iterator[Content]:
    for line in lines:
        yield line.truncate(width, ellipsis=True)


def _figure(character: str, size_bytes: int, is_wordy: bool) -> Content | None:
    if not size_bytes:
        return None
    words = f" {_WORDS[character]}" if is_wordy else ""
    return Content.assemble((character, f"bold {_STYLES[character]}"), (words, "dim"), f" {bytes_text(size_bytes)}")


def _key(character: str) -> Content:
    return Content.assemble((character, "bold"), (f" {_WORDS[character]}", "dim"))
