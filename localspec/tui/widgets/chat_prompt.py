"""Where a question is written: enter sends it, and earlier ones come back at the edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.widgets import TextArea

from localspec.session.plain_text import printable
from localspec.tui.keyed import keyed, keys_of
from localspec.tui.plain import plain_line

MAX_HISTORY = 200

MAX_CHARACTERS = 200_000
"""In the prompt: a line much longer is wrapped anew for a second at each key."""

_OF_THE_SCREEN = frozenset({"ctrl+e", "ctrl+k", "ctrl+y", "f6", "f7", "pageup", "pagedown"})
"""Keys of a text area that the chat uses for something else."""


def _own_bindings() -> list[BindingType]:
    """Return the bindings of a text area, without the keys that it gives up."""
    own: list[BindingType] = []
    for binding in TextArea.BINDINGS:
        if isinstance(binding, Binding):
            keys = [key for key in binding.key.split(",") if key not in _OF_THE_SCREEN]
            if keys:
                own.append(replace(binding, key=",".join(keys)))
    return own


def _placeholder() -> Content:
    return plain_line(
        keyed("Ask something: {chat.send} sends, {chat.new_line} begins a line, up brings back earlier questions.")
    )


class ChatPrompt(TextArea, inherit_bindings=False):
    """A text area of a few lines with a history."""

    DEFAULT_CSS = """
    ChatPrompt {
        height: auto; min-height: 3; max-height: 10; padding: 0 1;
        border: round $foreground 25%; background: $background;
        &:focus { border: round $accent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *_own_bindings(),
        Binding("enter", "send", "Send", id="chat.send", tooltip="Ask this", show=False),
        Binding(
            "ctrl+j,shift+enter,alt+enter",
            "new_line",
            "New line",
            id="chat.new_line",
            tooltip="Begin a line",
            show=False,
        ),
    ]

    @dataclass
    class Sent(Message):
        """A question is to be asked."""

        text: str

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__(
            soft_wrap=True,
            compact=False,
            highlight_cursor_line=False,
            placeholder=_placeholder(),
        )
        self._history: list[str] = []
        self._place = 0
        self._draft = ""
        self.is_sent = False
        """What is written is on its way, until whoever takes it says that it is not any more."""

    def on_mount(self) -> None:
        """Follow the keys."""
        self.watch(self.app, "key_map", self._show_keys, init=False)

    def _show_keys(self) -> None:
        self.placeholder = _placeholder()

    def remember(self, question: str) -> None:
        """Take a question into the history."""
        if 0 < len(question) <= MAX_CHARACTERS and (not self._history or self._history[-1] != question):
            self._history = [*self._history[1 - MAX_HISTORY :], question]
        self._place = len(self._history)

    def put(self, text: str) -> bool:
        """Put a text in place of what is there, the cursor behind it; return False, and say so, if it is too long."""
        if len(text) > MAX_CHARACTERS:
            self._refuse()
            return False
        self.load_text(printable(text))
        self.move_cursor(self.document.end)
        return True

    def _has_room(self, text: str) -> bool:
        has_room = len(self.text) - len(self.selected_text) + len(text) <= MAX_CHARACTERS
        if not has_room:
            self._refuse()
        return has_room

    def _refuse(self) -> None:
        self.notify(
            f"That is too long: the prompt takes {MAX_CHARACTERS:,} characters. Nothing was put in.\n"
            "A longer text belongs in a file: localspec bench --prompt FILE measures with it.",
            severity="warning",
            markup=False,
        )

    async def _on_paste(self, event: Paste) -> None:
        if not self._has_room(event.text):
            event.stop()
            event.prevent_default()

    def action_paste(self) -> None:
        """Put in what the app has copied."""
        if self._has_room(self.app.clipboard):
            super().action_paste()

    async def _on_key(self, event: Key) -> None:
        # The base class would insert a line break at enter before any binding is asked; so it does where enter is free.
        if event.key in keys_of("chat.send"):
            event.stop()
            event.prevent_default()
            self.action_send()
        elif event.key in keys_of("chat.new_line"):
            event.stop()
            event.prevent_default()
            self.action_new_line()

    def action_send(self) -> None:
        """Send what is written, if it is anything. Whoever takes it empties the prompt."""
        if self.text.strip() and not self.is_sent:
            self.is_sent = True
            self.post_message(self.Sent(self.text.strip("\n")))

    def action_new_line(self) -> None:
        """Begin a line."""
        self.replace("\n", *self.selection)

    def action_cursor_up(self, select: bool = False) -> None:
        """Go up, from the first line to the question before."""
        if not select and self.navigator.is_first_wrapped_line(self.cursor_location) and self._place > 0:
            if self._place == len(self._history):
                self._draft = self.text
            self._place -= 1
            self.put(self._history[self._place])
        else:
            super().action_cursor_up(select)

    def action_cursor_down(self, select: bool = False) -> None:
        """Go down, from the last line to the question after."""
        is_last = self.navigator.is_last_wrapped_line(self.cursor_location)
        if not select and is_last and self._place < len(self._history):
            self._place += 1
            self.put(self._draft if self._place == len(self._history) else self._history[self._place])
        else:
            super().action_cursor_down(select)
