"""A profile as other engines take it, to be copied."""

from __future__ import annotations

import os
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from localspec.errors import LocalspecError
from localspec.session.exporting.exports import DESTINATIONS, export
from localspec.session.plain_text import printable
from localspec.session.profiles import NamedProfile
from localspec.tui.plain import plain_line
from localspec.tui.widgets.key_line import KeyLine


class RunsExport(ModalScreen[None]):
    """The engines at the left; the text of the highlighted one at the right."""

    CSS_PATH = "runs_export.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", id="export.back", tooltip="Back to the profiles"),
        Binding("y,ctrl+c", "copy", "Copy", id="export.copy", tooltip="Copy all of it", priority=True),
    ]

    def __init__(self, profile: NamedProfile, notes: tuple[str, ...] = ()) -> None:
        """Take what is exported.

        Args:
            profile: read and checked.
            notes: on files that are gone or changed.
        """
        super().__init__()
        self._profile = profile
        self._notes = notes

    def compose(self) -> ComposeResult:
        """Yield the box."""
        box = Vertical(id="box")
        box.border_title = "Export the profile"
        with box:
            for note in self._notes:
                yield Static(Content.assemble(("! ", "bold $text-warning"), plain_line(note)), markup=False)
            with Horizontal(id="halves"):
                yield OptionList(*(Option(Content(name), id=name) for name in DESTINATIONS), compact=True)
                yield TextArea(read_only=True, soft_wrap=True, show_cursor=False, compact=True)
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin with the first engine."""
        engines = self.query_one(OptionList)
        engines.highlighted = 0
        engines.focus()

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        area = self.query_one(TextArea)
        try:
            text = export(self._profile, DESTINATIONS[event.option_index], "powershell" if os.name == "nt" else "sh")
        except LocalspecError as error:
            text = f"{error.message}\n{error.hint}".strip()
        area.load_text(printable(text))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_copy()

    def action_copy(self) -> None:
        """Copy what is selected, or all of it."""
        area = self.query_one(TextArea)
        self.app.copy_to_clipboard(area.selected_text or area.text)
        self.notify("Copied.", markup=False)

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)
