"""The card of a comparison: figures, sentences and remarks."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Static

from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.result_card import MARKS, ResultCard, TextCard, Tone

_STYLES: dict[Tone, str] = {
    "faster": "bold $text-success",
    "slower": "bold $text-error",
    "no_clear_difference": "bold $text-warning",
    "unusable": "bold $text-warning",
    "unknown": "bold",
}
_WIDEST = 22
"""Cells of a column's head."""


class CompareCard(VerticalScroll):
    """Scrolls by keys when it is focused."""

    DEFAULT_CSS = """
    CompareCard { border-subtitle-color: $text; padding: 0 0 0 1; scrollbar-size-vertical: 1; }
    CompareCard > Static { height: auto; margin-right: 1; }
    """

    card: reactive[ResultCard | None] = reactive(None)
    """What is shown; None before the first result."""

    def compose(self) -> ComposeResult:
        """Yield the text."""
        yield Static("", markup=False)

    def on_mount(self) -> None:
        """Give it its frame."""
        self.add_class("panel")
        self.border_title = "Result"

    def watch_card(self, card: ResultCard | None) -> None:
        """Show another card from its beginning."""
        if not self.children:
            return
        self.query_one(Static).update("" if card is None else card_content(card))
        kept = "" if card is None else "not kept" if card.run_id is None else f"run {card.run_id} kept"
        self.border_subtitle = kept
        self.scroll_home(animate=False)


def card_content(card: ResultCard) -> Content:
    """Return a card as text."""
    blocks = [Content("\n").join(_text_lines(text)) for text in card.texts]
    if not blocks:
        blocks.append(Content.styled("Nothing was measured.", "bold"))
    blocks.append(Content("\n").join([Content.styled(one_line(note), MUTED) for note in card.notes]))
    return Content("\n\n").join(blocks)


def _text_lines(text: TextCard) -> list[Content]:
    lines = [
        Content.assemble(
            (f"{MARKS[text.tone]} {one_line(text.headline)}", _STYLES[text.tone]),
            ("  ", ""),
            (one_line(text.title), MUTED),
        )
    ]
    lines += [Content(one_line(sentence)) for sentence in text.sentences]
    lines += [Content.styled(f"! {one_line(remark)}", "$text-warning") for remark in text.remarks]
    return [*lines, Content(""), *_table(text)]


def _table(text: TextCard) -> list[Content]:
    heads = [_cut(one_line(arm)) for arm in text.arms]
    rows = [(one_line(label), tuple(map(one_line, cells))) for label, cells in text.rows]
    label_width = max((cell_len(label) for label, _ in rows), default=0)
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    widths = [max(cell_len(value) for value in (head, *column)) for head, column in zip(heads, columns, strict=True)]
    lines = [Content.styled(" " * label_width + _cells(tuple(heads), widths), "bold")]
    for label, cells in rows:
        padded = label + " " * (label_width - cell_len(label))
        lines.append(Content.assemble((padded, MUTED), (_cells(cells, widths), "")))
    return lines


def _cells(cells: tuple[str, ...], widths: list[int]) -> str:
    return "".join("  " + " " * (width - cell_len(cell)) + cell for cell, width in zip(cells, widths, strict=True))


def _cut(text: str) -> str:
    return text if cell_len(text) <= _WIDEST else Content(text).truncate(_WIDEST, ellipsis=True).plain
