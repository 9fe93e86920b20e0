"""One answer: its thinking, folded; its text, as Markdown that grows; and a line of figures."""

from __future__ import annotations

from markdown_it import MarkdownIt
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Collapsible, Markdown, Static
from textual.widgets.markdown import MarkdownStream

from localspec.metrics.thinking import Split
from localspec.session.plain_text import printable
from localspec.tui.plain import plain, plain_line


def _parser() -> MarkdownIt:
    # Left to the parser, HTML in an answer would not be shown at all.
    return MarkdownIt("gfm-like").disable(["html_block", "html_inline"])


class ChatAnswer(Vertical):
    """Shows what it is given."""

    DEFAULT_CSS = """
    ChatAnswer {
        height: auto; padding: 0 0 1 0;
        & > Markdown { padding: 0 1 0 2; margin: 0; }
        & > .figures { height: auto; padding: 0 1 0 2; color: $text-muted; }
        & > Collapsible { margin: 0 1 0 1; padding: 0; border: none; background: $background; color: $text-muted; }
        & > Collapsible Contents { padding: 0 0 1 3; }
        & > .-none { display: none; }
    }
    """

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._shown = ""
        self._thought = ""
        self._stream: MarkdownStream | None = None

    def compose(self) -> ComposeResult:
        """Yield the parts."""
        with Collapsible(title="thinking", collapsed=True, classes="-none"):
            yield Static("", markup=False, classes="thinking")
        yield Markdown(open_links=False, parser_factory=_parser)
        yield Static("", markup=False, classes="figures -none")

    @property
    def markdown(self) -> Markdown:
        """The widget of the text."""
        return self.query_one(Markdown)

    async def grow(self, split: Split, num_thinking: int) -> None:
        """Show the answer as it is now; it is given whole, and only what is new is drawn."""
        self._show_thinking(split, num_thinking)
        text = printable(split.answer)
        if text == self._shown:
            return
        if not text.startswith(self._shown):
            await self._show_whole(text)
            return
        if self._stream is None:
            self._stream = Markdown.get_stream(self.markdown)
        piece, self._shown = text[len(self._shown) :], text
        await self._stream.write(piece)

    async def settle(self, split: Split, num_thinking: int, line: str) -> None:
        """Show the answer as it is in the end, and the line below it."""
        await self.grow(split, num_thinking)
        await self._stop_stream()
        if self.markdown.source != self._shown:
            await self._show_whole(self._shown)
        self.show_line(line)

    def show_line(self, line: str) -> None:
        """Show the line of figures."""
        figures = self.query_one(".figures", Static)
        figures.set_class(not line, "-none")
        figures.update(plain_line(line))

    async def on_unmount(self) -> None:
        """Leave no task behind."""
        if self._stream is not None and self._stream._task is not None:
            self._stream._task.cancel()

    def _show_thinking(self, split: Split, num_thinking: int) -> None:
        folded = self.query_one(Collapsible)
        folded.set_class(not (split.thinking or split.is_open), "-none")
        words = "thinking …" if split.is_open else "thought"
        title = f"{words} {num_thinking} tokens" if num_thinking else words
        if folded.title != title:
            folded.title = title
        # What nobody sees is not laid out either, until it is unfolded.
        self._thought = split.thinking
        if not folded.collapsed:
            self._fill_thinking()

    @on(Collapsible.Expanded)
    def _fill_thinking(self) -> None:
        self.query_one(".thinking", Static).update(plain(self._thought))

    @on(Markdown.LinkClicked)
    def _copy_link(self, event: Markdown.LinkClicked) -> None:
        event.stop()
        # Where a link leads is the model's word: nothing is opened by it.
        self.app.copy_to_clipboard(event.href)
        self.notify(f"Copied the address {plain_line(event.href)}", markup=False)

    async def _show_whole(self, text: str) -> None:
        await self._stop_stream()
        self._shown = text
        await self.markdown.update(text)

    async def _stop_stream(self) -> None:
        if self._stream is not None:
            await self._stream.stop()
            self._stream = None
