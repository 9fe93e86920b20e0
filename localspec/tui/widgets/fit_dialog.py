"""Dialogs of the fit screen: type a value, or choose one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.errors import UsageError
from localspec.tui.plain import plain, plain_line

_MOST = 200
"""Characters that are shown of a choice."""

_FRAME = """
    {name} {{
        align: center middle;
        & > Vertical {{
            width: 60;
            max-width: 94%;
            height: auto;
            max-height: 90%;
            padding: 0 1;
            border: round $accent;
            border-title-color: $text;
            background: $surface;
        }}
        & .hint {{ color: $text-muted; padding: 0 1; }}
        & .failure {{ color: $text-error; padding: 0 1; }}
        & OptionList {{ border: none; background: transparent; padding: 0 1; max-height: 14; height: auto; }}
        & OptionList:focus {{ border: none; }}
    }}
"""

_BACK = Binding("escape", "dismiss(None)", "Back", id="fit.dialog.back", tooltip="Leave it as it is")


class EntryDialog(ModalScreen[str | None]):
    """Asks for a text until it can be read; gives it back, or None."""

    DEFAULT_CSS = _FRAME.format(name="EntryDialog")
    BINDINGS: ClassVar[list[BindingType]] = [_BACK]

    def __init__(self, title: str, hint: str, value: str, check: Callable[[str], object]) -> None:
        """Take what to ask.

        Args:
            title: what it is about.
            hint: what can be typed.
            value: what stands there at first.
            check: raises UsageError for what cannot be read.
        """
        super().__init__()
        self._title, self._hint, self._value, self._check = title, hint, value, check

    def compose(self) -> ComposeResult:
        """Yield the field and what is said of it."""
        with Vertical() as frame:
            frame.border_title = plain_line(self._title)
            yield Input(plain_line(self._value).plain, compact=True)
            yield Static(plain(self._hint), classes="hint", markup=False)
            yield Static("", classes="failure", markup=False)

    @on(Input.Submitted)
    def _read(self, event: Input.Submitted) -> None:
        try:
            self._check(event.value)
        except UsageError as error:
            self.query_one(".failure", Static).update(plain(f"{error.message} {error.hint}"))
            return
        self.dismiss(event.value)


class ChoiceDialog(ModalScreen[int | None]):
    """Lets one of several be chosen; gives back its index, or None."""

    DEFAULT_CSS = _FRAME.format(name="ChoiceDialog")
    BINDINGS: ClassVar[list[BindingType]] = [_BACK]

    def __init__(self, title: str, choices: Sequence[str], current: int, hint: str = "") -> None:
        """Take what to choose from. Texts of choices are foreign."""
        super().__init__()
        self._title, self._choices, self._current, self._hint = title, choices, current, hint

    def compose(self) -> ComposeResult:
        """Yield the list."""
        with Vertical() as frame:
            frame.border_title = plain_line(self._title)
            yield OptionList(*(Option(plain_line(choice[:_MOST])) for choice in self._choices))
            if self._hint:
                yield Static(plain(self._hint), classes="hint", markup=False)

    def on_mount(self) -> None:
        """Begin at what is in force."""
        self.query_one(OptionList).highlighted = self._current

    @on(OptionList.OptionSelected)
    def _choose(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)
