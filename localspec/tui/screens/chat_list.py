"""The kept chats: found by words, and taken up again."""

from __future__ import annotations

from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.errors import LocalspecError
from localspec.session.kept_answer import moment_text
from localspec.tui.chat_archive import ChatArchive, ListedChat
from localspec.tui.plain import plain, plain_line


class ChatList(ModalScreen[int | None]):
    """Gives the number of the chosen chat, or None."""

    CSS_PATH = "chat_list.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="chats.leave", tooltip="Go on with this chat"),
        Binding("down", "to_list", "List", id="chats.list", tooltip="Into the list", show=False),
    ]

    def __init__(self, archive: ChatArchive) -> None:
        """Take the way to the store."""
        super().__init__()
        self._archive = archive

    def compose(self) -> ComposeResult:
        """Yield words and list."""
        with Vertical(id="chats", classes="panel"):
            yield Input(placeholder="words to find", id="words", compact=True)
            yield OptionList(id="found", compact=True)
            yield Static("", id="nothing", markup=False, classes="muted")

    def on_mount(self) -> None:
        """List all chats."""
        self.query_one("#chats").border_title = "Chats"
        self._find("")

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        found = self.query_one("#found", OptionList)
        if found.option_count:
            self._choose(found.get_option_at_index(found.highlighted or 0))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self._choose(event.option)

    def action_to_list(self) -> None:
        """Go from the words to the list."""
        self.query_one("#found", OptionList).focus()

    def action_leave(self) -> None:
        """Choose none."""
        self.dismiss(None)

    @work(exclusive=True, group="chats", exit_on_error=False)
    async def _find(self, words: str) -> None:
        try:
            chats = await self._archive.listed(words)
        except LocalspecError as error:
            self.query_one("#nothing", Static).update(plain(f"! {error.message} {error.hint}"))
            return
        found = self.query_one("#found", OptionList)
        found.clear_options()
        found.add_options([Option(_prompt(chat), id=str(chat.summary.id)) for chat in chats])
        if chats:
            found.highlighted = 0
        words_left = "No chat has these words." if words.strip() else "No chats are kept yet."
        self.query_one("#nothing", Static).update("" if chats else words_left)

    def _choose(self, option: Option) -> None:
        self.dismiss(int(option.id or 0))


def _prompt(chat: ListedChat) -> Content:
    summary = chat.summary
    facts = f"  {moment_text(summary.updated_at)}, {summary.num_messages} messages, {summary.target_name}"
    title = plain_line(summary.title or f"chat {summary.id}").truncate(70, ellipsis=True)
    parts = [Content.assemble(title.stylize("bold")), plain_line(facts, "dim")]
    if chat.snippet:
        parts.append(Content("  ") + plain_line(chat.snippet, "dim italic"))
    return Content("\n").join(parts)
