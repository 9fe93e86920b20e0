"""One answer: its thinking, folded; its text, as Markdown that grows block by block; and a line of figures."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Collapsible, Markdown, Static

from localspec.metrics.thinking import Split
from localspec.session.plain_text import printable
from localspec.tui.markdown_blocks import last_block_at
from localspec.tui.plain import plain, plain_line
from localspec.tui.widgets.chat_markdown import ChatMarkdown
from localspec.tui.widgets.chat_tail import ChatTail


def _always() -> bool:
    return True


class ChatAnswer(Vertical):
    """Shows what it is given: whole blocks as Markdown, and the one that is being written as it comes.

    To parse, mount and lay out Markdown with every token would take from the model what it needs.
    """

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
        self._given = self._text = ""
        self._shown = ""
        self._thought = ""

    def compose(self) -> ComposeResult:
        """Yield the parts."""
        with Collapsible(title="thinking", collapsed=True, classes="-none"):
            yield Static("", markup=False, classes="thinking")
        yield ChatMarkdown()
        yield ChatTail()
        yield Static("", markup=False, classes="figures -none")

    @property
    def markdown(self) -> Markdown:
        """The widget of the text."""
        return self.query_one(Markdown)

    async def grow(
        self, split: Split, num_thinking: int, is_due: Callable[[], bool] = _always, waits: bool = False
    ) -> bool:
        """Show the answer as it is now; it is given whole, and only what is new is drawn.

        Args:
            split: all of it.
            num_thinking: tokens of the thinking.
            is_due: asked whether to make Markdown of what is whole by now; else it stays lines until the next time.
            waits: whether lines for which there is no room wait for that, too.

        Returns:
            Whether everything is laid out anew, which costs many times as much as drawing lines.
        """
        self._show_thinking(split, num_thinking)
        text = self._printable(split.answer)
        if not text.startswith(self._shown):
            await self._show_whole("")
        shown, tail = len(self._shown), self.query_one(ChatTail)
        whole = last_block_at(text, shown)
        has_time = (whole > shown or (waits and tail.is_full_with(text[shown:]))) and is_due()
        if not has_time:
            whole = shown
        with self.app.batch_update():
            await self._append(text[shown:whole])
            is_laid_out = tail.grow(text[whole:], has_time or not waits)
        return is_laid_out or whole > shown

    async def settle(self, split: Split, num_thinking: int, line: str) -> None:
        """Show the answer as it is in the end, and the line below it."""
        self._show_thinking(split, num_thinking)
        text = self._printable(split.answer)
        with self.app.batch_update():
            self.query_one(ChatTail).end()
            if text.startswith(self._shown):
                await self._append(text[len(self._shown) :])
            if self.markdown.source != text:
                await self._show_whole(text)
            self.show_line(line)

    def show_line(self, line: str) -> None:
        """Show the line of figures."""
        figures = self.query_one(".figures", Static)
        figures.set_class(not line, "-none")
        figures.update(plain_line(line))

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

    def _printable(self, text: str) -> str:
        """Return a text without control characters; its beginning is most often known already."""
        if text.startswith(self._given):
            self._text += printable(text[len(self._given) :])
        else:
            self._text = printable(text)
        self._given = text
        return self._text

    async def _append(self, piece: str) -> None:
        if piece:
            self._shown += piece
            await self.markdown.append(piece)

    async def _show_whole(self, text: str) -> None:
        self._shown = text
        await self.markdown.update(text)
