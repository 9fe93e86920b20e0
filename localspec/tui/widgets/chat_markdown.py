"""Markdown of an answer, with tables and code that a narrow pane does not cut."""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it import MarkdownIt
from textual.app import ComposeResult
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Markdown
from textual.widgets._markdown import MarkdownBlock, MarkdownFence, MarkdownTable, MarkdownTH

from localspec.tui.markdown_table import Table, table_lines


def _parser() -> MarkdownIt:
    # Left to the parser, HTML in an answer would not be shown at all.
    return MarkdownIt("gfm-like").disable(["html_block", "html_inline"])


class ChatTable(MarkdownTable):
    """Draws all cells itself, broken to fit the width: a widget for each would have to be laid out with every row."""

    DEFAULT_CSS = """
    ChatTable { width: 1fr; height: auto; margin: 0 0 1 0; &:light { background: transparent; } }
    """

    _table = Table()
    _drawn: tuple[int, list[Content]] | None = None

    def compose(self) -> ComposeResult:
        """Take what the table holds; there are no widgets in it."""
        self._take(self)
        self._blocks.clear()
        yield from ()

    def _take(self, block: MarkdownTable) -> None:
        headers, rows = block._get_headers_and_rows()
        are_right = tuple(_is_right(cell) for cell in _all_in(block) if isinstance(cell, MarkdownTH))
        self._table = Table(tuple(headers), tuple(map(tuple, rows)), are_right)
        self._drawn = None

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        if isinstance(block, ChatTable):
            self._take(block)
            self._copy_context(block)
            self.refresh(layout=True)
        else:
            await super()._update_from_block(block)

    def _lines(self, width: int) -> list[Content]:
        if self._drawn is None or self._drawn[0] != width:
            self._drawn = width, table_lines(self._table, max(1, width))
        return self._drawn[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines there are at a width."""
        return len(self._lines(width))

    def render(self) -> Content:
        """Return the lines for the width that the table has."""
        return Content("\n").join(self._lines(self.content_size.width))


class ChatCode(MarkdownFence):
    """Breaks lines that are too long; what is copied from it has them whole."""

    DEFAULT_CSS = """
    ChatCode { overflow: hidden hidden; & > Label { width: 1fr; } }
    """


class ChatMarkdown(Markdown):
    """Shows HTML as it is written, and opens no link."""

    BLOCKS = {**Markdown.BLOCKS, "table_open": ChatTable, "fence": ChatCode, "code_block": ChatCode}  # noqa: RUF012

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__(open_links=False, parser_factory=_parser)


def _all_in(block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    for inner in block._blocks:
        yield inner
        yield from _all_in(inner)


def _is_right(header: MarkdownTH) -> bool:
    return "right" in str(header._token.attrs.get("style", ""))
