"""A question that is answered with yes or no before something is removed."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line


class ModelsQuestion(ModalScreen[bool]):
    """Ends with whether it was said yes. The harmless answer has the focus."""

    CSS_PATH = "models_question.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="question.yes", tooltip="Do it"),
        Binding("n,escape", "answer(False)", "No", id="question.no", tooltip="Leave all as it is"),
        Binding("left,right", "other", "Other answer", id="question.other", tooltip="To the other answer", show=False),
    ]

    def __init__(self, title: str, text: Content, yes: str, no: str = "Keep") -> None:
        """Ask.

        Args:
            title: a few words of our own.
            text: what is at stake.
            yes: on the button that does it.
            no: on the button that does not.
        """
        super().__init__()
        self._title, self._text, self._yes, self._no = title, text, yes, no

    def compose(self) -> ComposeResult:
        """Yield the box."""
        box = Vertical(id="box")
        box.border_title = plain_line(self._title)
        with box:
            yield Static(self._text, id="text", markup=False)
            with Horizontal(id="answers"):
                no, yes = f"{self._no} {keyed('({question.no})')}", f"{self._yes} {keyed('({question.yes})')}"
                yield Button(plain_line(no), id="no", compact=True)
                yield Button(plain_line(yes), id="yes", compact=True, variant="error")

    def on_mount(self) -> None:
        """Focus the harmless answer."""
        self.query_one("#no", Button).focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.dismiss(event.button.id == "yes")

    def action_answer(self, is_yes: bool) -> None:
        """End with an answer."""
        self.dismiss(is_yes)

    def action_other(self) -> None:
        """Go to the other button."""
        self.focus_next()
