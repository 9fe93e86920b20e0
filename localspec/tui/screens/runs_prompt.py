"""A question that is answered with a line of text: a name or a path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered."""

    text: str
    choice: int
    """Place of the chosen option; 0 where there were none."""


class RunsPrompt(ModalScreen[Reply | None]):
    """Ends with the answer, or with None if it was left. An empty text is no answer."""

    CSS_PATH = "runs_prompt.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", id="prompt.cancel", tooltip="Do nothing"),
    ]

    def __init__(self, title: str, text: str, value: str, yes: str, options: Sequence[str] = ()) -> None:
        """Ask.

        Args:
            title: a few words of our own.
            text: what is asked, in a sentence or two; may hold foreign text.
            value: what stands there at first.
            yes: on the button that answers.
            options: one of these is to be chosen, too; may be foreign texts.
        """
        super().__init__()
        self._title, self._text, self._value, self._yes, self._options = title, text, value, yes, tuple(options)

    def compose(self) -> ComposeResult:
        """Yield the box."""
        box = Vertical(id="box")
        box.border_title = plain_line(self._title)
        with box:
            yield Static(plain(self._text), markup=False, id="text")
            yield Input(
                plain_line(self._value).plain, placeholder="a name", compact=True, id="answer", select_on_focus=False
            )
            if self._options:
                yield OptionList(*(Option(plain_line(option)) for option in self._options), compact=True)
            with Horizontal(id="answers"):
                yield Button(plain_line(keyed("Cancel ({prompt.cancel})")), id="no", compact=True)
                yield Button(plain_line(f"{self._yes} (enter)"), id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        """Begin at the text."""
        if self._options:
            self.query_one(OptionList).highlighted = 0
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._answer()

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._answer()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "yes":
            self._answer()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        """End without an answer."""
        self.dismiss(None)

    def _answer(self) -> None:
        text = self.query_one(Input).value.strip()
        if not text:
            self.query_one(Input).focus()
            return
        choice = self.query_one(OptionList).highlighted if self._options else 0
        self.dismiss(Reply(text, choice or 0))
