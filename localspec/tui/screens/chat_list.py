"""The kept chats: found by words, taken up again, renamed, deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import DescendantFocus
from textual.reactive import var
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.errors import LocalspecError
from localspec.session.kept_answer import moment_text
from localspec.tui.chat_archive import ChatArchive, ListedChat
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line

NEW_CHAT = 0
"""What is chosen where the chat that was open has been deleted: another."""

MAX_TITLE = 200

_KEYS = {
    "words": "enter opens, {chats.list} leads to more keys, {chats.leave} leaves",
    "found": "enter opens, {chats.delete} deletes, {chats.rename} renames, {chats.leave} leaves",
    "title": "enter keeps the title, {chats.leave} leaves it as it was",
}
"""By what has the focus. Enter is Textual's own key of fields and lists, and stays."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is being done to a chat of the list, and waits for another key."""

    chat: ListedChat
    what: Literal["delete", "rename"]


class ChatList(ModalScreen[int | None]):
    """Gives the number of the chosen chat, None for none, or NEW_CHAT."""

    CSS_PATH = "chat_list.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="chats.leave", tooltip="Go on with this chat"),
        Binding("down", "to_list", "List", id="chats.list", tooltip="Into the list", show=False),
        Binding("x,delete", "ask_to_delete", "Delete", id="chats.delete", tooltip="Delete the chat, after a question"),
        Binding("e", "rename", "Rename", id="chats.rename", tooltip="Give the chat another title"),
        Binding("y", "delete", "Yes", id="chats.delete_yes", tooltip="Delete it", show=False),
        Binding("n", "forget_change", "No", id="chats.delete_no", tooltip="Keep it", show=False),
    ]

    change: var[Change | None] = var[Change | None](None, init=False)
    """What waits for another key."""

    def __init__(self, archive: ChatArchive) -> None:
        """Take the way to the store."""
        super().__init__()
        self._archive = archive
        self._chats: tuple[ListedChat, ...] = ()
        self._is_open_one_gone = False

    def compose(self) -> ComposeResult:
        """Yield words, list and title."""
        with Vertical(id="chats", classes="panel"):
            yield Input(placeholder="words to find", id="words", compact=True)
            yield OptionList(id="found", compact=True)
            yield Input(placeholder="its title", id="title", compact=True, max_length=MAX_TITLE)
            yield Static("", id="nothing", markup=False, classes="muted")

    def on_mount(self) -> None:
        """List all chats."""
        self.query_one("#chats").border_title = "Chats"
        self._find("")

    @property
    def _found(self) -> OptionList:
        return self.query_one("#found", OptionList)

    @property
    def _highlighted(self) -> ListedChat | None:
        place = self._found.highlighted
        return self._chats[place] if place is not None and place < len(self._chats) else None

    # Finding and choosing.

    @on(Input.Changed, "#words")
    def _words_changed(self, event: Input.Changed) -> None:
        self._find(event.value)

    @on(Input.Submitted, "#words")
    def _words_submitted(self) -> None:
        if (chat := self._highlighted or next(iter(self._chats), None)) is not None:
            self.dismiss(chat.summary.id)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        # Enter is no answer to the question whether to delete.
        if self.change is None:
            self.dismiss(int(event.option.id or NEW_CHAT))

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        if self.change is not None and self.change.chat != self._highlighted:
            self.change = None

    @on(DescendantFocus)
    def _focus_moved(self) -> None:
        focused = "" if self.focused is None else self.focused.id
        self.query_one("#chats").border_subtitle = plain_line(keyed(_KEYS.get(focused or "", _KEYS["words"])))
        if self.change is not None and focused == "words":
            self.change = None

    def action_to_list(self) -> None:
        """Go from the words to the list."""
        self._found.focus()

    def action_leave(self) -> None:
        """Give up what is being done; else choose none."""
        if self.change is not None:
            self.action_forget_change()
        else:
            self.dismiss(NEW_CHAT if self._is_open_one_gone else None)

    @work(exclusive=True, group="chats", exit_on_error=False)
    async def _find(self, words: str) -> None:
        if not self._chats:
            # A store that another program has locked is waited for.
            self.query_one("#nothing", Static).update("reading …")
        try:
            chats = await self._archive.listed(words)
        except LocalspecError as error:
            self.query_one("#nothing", Static).update(plain(f"! {error.message} {error.hint}"))
            return
        place = self._found.highlighted or 0
        self._chats, self.change = chats, None
        self._found.set_options([Option(_prompt(chat), id=str(chat.summary.id)) for chat in chats])
        if chats:
            self._found.highlighted = min(place, len(chats) - 1)
        words_left = "No chat has these words." if words.strip() else "No chats are kept yet."
        self.query_one("#nothing", Static).update("" if chats else words_left)

    # Renaming and deleting.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Answers count only while there is a question, and changes only where no words are being written."""
        is_asking = self.change is not None and self.change.what == "delete"
        if action in ("delete", "forget_change"):
            return is_asking
        if action in ("ask_to_delete", "rename"):
            return self.focused is self._found and not is_asking
        return True

    def watch_change(self, old: Change | None, new: Change | None) -> None:
        """Show the question in the chat's own place, or the title to be written."""
        self.set_class(new is not None and new.what == "rename", "-naming")
        for change in (old, new):
            if change is None or change.what != "delete" or change.chat not in self._chats:
                continue
            prompt = _question(change.chat) if change is new else _prompt(change.chat)
            self._found.replace_option_prompt_at_index(self._chats.index(change.chat), prompt)

    def action_ask_to_delete(self) -> None:
        """Ask whether to delete the highlighted chat."""
        if (chat := self._highlighted) is not None:
            self.change = Change(chat, "delete")

    def action_rename(self) -> None:
        """Write another title for the highlighted chat."""
        if (chat := self._highlighted) is not None:
            self.change = Change(chat, "rename")
            title = self.query_one("#title", Input)
            title.value = plain_line(chat.summary.title).plain
            title.focus()

    def action_forget_change(self) -> None:
        """Leave the chat as it is."""
        self.change = None
        self._found.focus()

    def action_delete(self) -> None:
        """Delete the chat that was asked about."""
        if self.change is not None:
            self._delete(self.change.chat)

    @work(exclusive=True, group="change", exit_on_error=False)
    async def _delete(self, chat: ListedChat) -> None:
        self.change = None
        try:
            is_open_one = await self._archive.delete(chat.summary.id)
        except LocalspecError as error:
            self._say_failure(error)
        else:
            self._is_open_one_gone = self._is_open_one_gone or is_open_one
        self._find(self.query_one("#words", Input).value)

    @on(Input.Submitted, "#title")
    def _title_submitted(self, event: Input.Submitted) -> None:
        change, title = self.change, event.value.strip()
        self.action_forget_change()
        if change is not None and title and title != change.chat.summary.title:
            self._rename(change.chat, title)

    @work(exclusive=True, group="change", exit_on_error=False)
    async def _rename(self, chat: ListedChat, title: str) -> None:
        try:
            await self._archive.rename(chat.summary.id, title)
        except LocalspecError as error:
            self._say_failure(error)
        self._find(self.query_one("#words", Input).value)

    def _say_failure(self, error: LocalspecError) -> None:
        self.notify(str(plain(f"{error.message}\n{error.hint}".rstrip())), severity="error", markup=False)


def _title(chat: ListedChat) -> Content:
    title = plain_line(chat.summary.title or f"chat {chat.summary.id}").truncate(70, ellipsis=True)
    return title.stylize("bold")


def _prompt(chat: ListedChat) -> Content:
    summary = chat.summary
    facts = f"  {moment_text(summary.updated_at)}, {summary.num_messages} messages, {summary.target_name}"
    parts = [_title(chat), plain_line(facts, "dim")]
    if chat.snippet:
        parts.append(Content("  ") + plain_line(chat.snippet, "dim italic"))
    return Content("\n").join(parts)


def _question(chat: ListedChat) -> Content:
    num = chat.summary.num_messages
    what = "its one message" if num == 1 else f"its {num} messages"
    # Without a colour: there is none that can be read on every theme's cursor.
    asked = Content(f"! delete {what}?  {keyed('{chats.delete_yes} deletes, {chats.delete_no} keeps')}")
    parts = [_title(chat), asked]
    if chat.snippet:
        parts.append(Content("  ") + plain_line(chat.snippet, "dim italic"))
    return Content("\n").join(parts)
