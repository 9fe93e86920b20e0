"""The questions and answers of a chat. Only the newest are mounted; earlier ones come back with a click."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual._styles_cache import StylesCache
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.events import Click
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from localspec.metrics.thinking import split_thinking
from localspec.session.answer_line import answer_line
from localspec.tui.chat_fold import AnswerSnapshot, ChatTurn
from localspec.tui.plain import plain

if TYPE_CHECKING:
    # Markdown takes long to import, and an empty chat shows none.
    from localspec.tui.widgets.chat_answer import ChatAnswer

MAX_MOUNTED = 8
"""Exchanges. Each answer is some dozens of widgets, and each of those costs whenever a line is added at the end."""

MAX_CHARACTERS = 12_000
"""Of the answers that are mounted; the newest exchange always is."""


class ChatQuestion(Static):
    """One question, as it was written."""

    DEFAULT_CSS = """
    ChatQuestion { height: auto; padding: 0 1; margin: 0 0 1 0; border-left: thick $primary; background: $surface; }
    """

    def __init__(self, question: str) -> None:
        """Take the text."""
        super().__init__(plain(question), markup=False)


class EarlierTurns(Static):
    """Says how many exchanges are not mounted."""

    DEFAULT_CSS = """
    EarlierTurns { height: 1; color: $text-muted; text-align: center; &:hover { text-style: underline; } }
    """

    class Wanted(Message):
        """They are to be shown."""

    def on_click(self, event: Click) -> None:
        """Ask for them."""
        event.stop()
        self.post_message(self.Wanted())


class ChatTranscript(VerticalScroll):
    """Follows its end, unless a person has scrolled away from it."""

    DEFAULT_CSS = """
    ChatTranscript { height: 1fr; padding: 1 1 0 1; scrollbar-size-vertical: 1; }
    ChatTranscript > .welcome { height: 1fr; color: $text-muted; content-align: center middle; text-align: center; }
    """

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()
        self._first = 0
        self._turns: tuple[ChatTurn, ...] = ()

    def compose(self) -> ComposeResult:
        """Yield what an empty chat shows."""
        yield Static("", markup=False, classes="welcome")

    def on_mount(self) -> None:
        """Follow the end."""
        self.anchor()

    def welcome(self, text: str) -> None:
        """Say something while there is nothing to read."""
        for static in self.query_children(".welcome").results(Static):
            static.update(plain(text))

    async def show(self, turns: tuple[ChatTurn, ...], welcome: str = "") -> None:
        """Show a chat from its newest exchanges up."""
        self._turns, self._first = turns, first_shown(turns)
        await self.remove_children()
        _forget_drawn()
        if turns:
            await self.mount_all(self._earlier())
            await self._mount_turns(turns[self._first :])
        else:
            await self.mount(Static(plain(welcome), markup=False, classes="welcome"))
        self.anchor()

    async def begin(self, question: str, turns: tuple[ChatTurn, ...]) -> None:
        """Show a question, and the place for its answer.

        Args:
            turns: those before it.
        """
        from localspec.tui.widgets.chat_answer import ChatAnswer

        self._turns = turns
        await self.query_children(".welcome").remove()
        await self.mount(ChatQuestion(question), ChatAnswer())
        await self._forget_oldest()
        self.anchor()

    async def grow(self, snapshot: AnswerSnapshot, is_due: Callable[[], bool], waits: bool) -> bool:
        """Show how far the last answer is; the arguments and what is returned are those of `ChatAnswer.grow`."""
        answer = self._last_answer()
        return answer is not None and await answer.grow(snapshot.split, snapshot.num_thinking, is_due, waits)

    async def settle(self, turn: ChatTurn) -> None:
        """Show the last answer as it is in the end."""
        if (answer := self._last_answer()) is not None:
            await answer.settle(split_thinking(turn.text), turn.num_thinking, answer_line(turn.figures))

    def show_line(self, line: str) -> None:
        """Show another line under the last answer."""
        if (answer := self._last_answer()) is not None:
            answer.show_line(line)

    async def take_back(self) -> None:
        """Remove the last question with its answer."""
        for found in (self._answers(), self._questions()):
            if found:
                await found[-1].remove()

    def page_up(self) -> None:
        """Scroll up, and at the upper end on to earlier exchanges."""
        if self.scroll_y <= 0 and self._first:
            self.post_message(EarlierTurns.Wanted())
        else:
            self.scroll_page_up()

    @on(EarlierTurns.Wanted)
    async def _show_earlier(self, event: EarlierTurns.Wanted) -> None:
        event.stop()
        last, self._first = self._first, first_shown(self._turns[: self._first])
        await self.query_children(EarlierTurns).remove()
        mark = self.children[0] if self.children else None
        await self._mount_turns(self._turns[self._first : last], before=mark)
        if earlier := self._earlier():
            await self.mount(*earlier, before=0)

    async def _mount_turns(self, turns: Sequence[ChatTurn], before: Widget | None = None) -> None:
        from localspec.tui.widgets.chat_answer import ChatAnswer

        answers = [(turn, ChatAnswer()) for turn in turns]
        widgets = [widget for turn, answer in answers for widget in (ChatQuestion(turn.question), answer)]
        if before is None:
            await self.mount_all(widgets)
        else:
            await self.mount_all(widgets, before=before)
        for turn, answer in answers:
            await answer.settle(split_thinking(turn.text), turn.num_thinking, answer_line(turn.figures))

    async def _forget_oldest(self) -> None:
        num_over = first_shown(self._turns, num_more=1) - self._first
        if num_over <= 0:
            return
        with self.app.batch_update():
            for widget in (*self._questions()[:num_over], *self._answers()[:num_over]):
                await widget.remove()
        _forget_drawn()
        self._first += num_over
        await self.query_children(EarlierTurns).remove()
        await self.mount(*self._earlier(), before=0)

    def _earlier(self) -> list[Widget]:
        noun = "exchange" if self._first == 1 else "exchanges"
        return [EarlierTurns(f"… {self._first} earlier {noun}", markup=False)] if self._first else []

    def _questions(self) -> list[ChatQuestion]:
        return list(self.query_children(ChatQuestion))

    def _answers(self) -> list[ChatAnswer]:
        if not self._questions():
            return []
        from localspec.tui.widgets.chat_answer import ChatAnswer

        return list(self.query_children(ChatAnswer))

    def _last_answer(self) -> ChatAnswer | None:
        found = self._answers()
        return found[-1] if found else None


def _forget_drawn() -> None:
    # Textual remembers the colours of a thousand widgets by what they have drawn, and with it all of that.
    StylesCache.get_inner_outer.cache_clear()


def first_shown(turns: Sequence[ChatTurn], num_more: int = 0) -> int:
    """Return which of the exchanges is the first of those that are mounted together.

    Args:
        turns: the newest last.
        num_more: exchanges after them, which need a place too.
    """
    most = MAX_MOUNTED - num_more
    length = 0
    for index in range(len(turns) - 1, -1, -1):
        length += len(turns[index].text)
        is_newest = index == len(turns) - 1
        if len(turns) - index > most or (length > MAX_CHARACTERS and not is_newest):
            return index + 1
    return 0
