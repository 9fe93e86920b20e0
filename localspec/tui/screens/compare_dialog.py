"""What the dialogs of the Compare screen have in common: fields, a line for what is wrong, two buttons."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from localspec.errors import LocalspecError, UsageError
from localspec.tui.key_names import key_text
from localspec.tui.plain import plain, plain_line

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp

Answer = TypeVar("Answer")


class CompareDialog(ModalScreen[Answer | None], Generic[Answer]):
    """A modal that gives an answer, or None if it is left."""

    CSS_PATH = "compare_dialog.tcss"
    HEADING = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Cancel", id="compare.dialog.leave", tooltip="Change nothing"),
        Binding("ctrl+s", "accept", "Accept", id="compare.dialog.accept", tooltip="Take it as it is", priority=True),
    ]

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    def compose(self) -> ComposeResult:
        """Yield the frame around the fields."""
        with VerticalScroll(classes="dialog", can_focus=False) as box:
            box.border_title = plain_line(self.HEADING)
            accept = key_text(self.host.key_map, "compare.dialog.accept", "ctrl+s")
            leave = key_text(self.host.key_map, "compare.dialog.leave", "escape")
            box.border_subtitle = plain_line(f"{accept} accepts, {leave} cancels")
            yield from self.compose_fields()
            yield Static("", classes="wrong", markup=False)
            with Horizontal(classes="buttons"):
                yield Button("Accept", id="dialog-accept", variant="primary", compact=True, action="screen.accept")
                yield Button("Cancel", id="dialog-leave", compact=True, action="screen.leave")

    def compose_fields(self) -> ComposeResult:
        """Yield what can be changed."""
        yield from ()

    def read(self) -> Answer:
        """Return the answer.

        Raises:
            LocalspecError: it cannot be taken; the dialog says why and stays.
        """
        raise NotImplementedError

    @on(Input.Submitted)
    def _submit(self) -> None:
        self.action_accept()

    def action_accept(self) -> None:
        """Give the answer, or say what is wrong with it."""
        try:
            answer = self.read()
        except LocalspecError as error:
            self.say(error)
        else:
            self.dismiss(answer)

    def action_leave(self) -> None:
        """Leave everything as it was."""
        self.dismiss(None)

    def say(self, error: LocalspecError) -> None:
        """Show what is wrong."""
        self.query_one(".wrong", Static).update(plain(f"{error.message} {error.hint}".strip()))


def field(label: str, name: str, value: str) -> Horizontal:
    """Return a line with a label and an entry of that name."""
    return Horizontal(
        Label(label, markup=False),
        Input(plain_line(value).plain, id=f"field-{name}", compact=True),
        classes="field",
        id=f"row-{name}",
    )


def whole_number(text: str, label: str, low: int, high: int) -> int:
    """Return a number that was typed.

    Raises:
        UsageError: it is none, or out of its range.
    """
    try:
        value = int(text.strip())
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise UsageError(f"{label} is a whole number from {low} to {high}.")
    return value


def decimal(text: str, label: str, low: float, high: float) -> float:
    """Return a number with or without decimals that was typed.

    Raises:
        UsageError: it is none, or out of its range.
    """
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = low - 1.0
    if not low <= value <= high:
        raise UsageError(f"{label} is a number from {low:g} to {high:g}.")
    return value
