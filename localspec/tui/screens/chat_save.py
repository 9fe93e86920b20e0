"""Where to write the chat: a name, asked for in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from localspec.errors import LocalspecError
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line


class ChatSave(ModalScreen[Path | None]):
    """Gives the path of the written file, or None."""

    CSS_PATH = "chat_save.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="save.leave", tooltip="Write nothing"),
    ]

    def __init__(self, name: str, write: Callable[[str], Path]) -> None:
        """Take a name to begin with, and what writes a file of the name that is chosen."""
        super().__init__()
        self._name = name
        self._write = write

    def compose(self) -> ComposeResult:
        """Yield the line."""
        with Vertical(id="save", classes="panel"):
            yield Input(plain_line(self._name or "").plain, id="name", compact=True)
            words = keyed("Enter writes the chat as Markdown, {save.leave} leaves.")
            yield Static(plain_line(words), id="note", markup=False, classes="muted")

    def on_mount(self) -> None:
        """Name the dialog."""
        self.query_one("#save").border_title = "Save"

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        try:
            path = self._write(event.value.strip())
        except LocalspecError as error:
            note = self.query_one("#note", Static)
            note.update(plain(f"! {error.message} {error.hint}"))
            note.add_class("bad")
            return
        self.dismiss(path)

    def action_leave(self) -> None:
        """Write nothing."""
        self.dismiss(None)
