"""The keys that count where one is, from the bindings themselves."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from localspec.tui.plain import MUTED


class HelpScreen(ModalScreen[None]):
    """Lists the keys of the screen below, of the field that has the focus, and of the app."""

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "#help-keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q", "leave", "Leave", id="help.leave", tooltip="Back to the screen"),
    ]

    def __init__(self, below: Screen[object]) -> None:
        """Take the screen whose keys are to be shown."""
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        """Yield the groups, the screen's own first."""
        panel = Vertical(id="help", classes="panel")
        panel.border_title = "Keys"
        panel.border_subtitle = "esc"
        groups: dict[str, list[tuple[str, str]]] = {"This screen": [], "Where the focus is": [], "Everywhere": []}
        for title, keys, words in self._keys():
            groups[title].append((keys, words))
        with panel, VerticalScroll(id="help-keys"):
            for title, rows in groups.items():
                if rows:
                    yield Static(title, classes="group", markup=False)
                    yield Static(_table(rows))

    def _keys(self) -> list[tuple[str, str, str]]:
        """Return title of the group, keys and what they do."""
        bindings: dict[tuple[str, str, str], list[str]] = {}
        for active in self._below.active_bindings.values():
            binding = active.binding
            # Those without a tooltip are Textual's own: arrows and the like.
            if binding.tooltip or binding.id:
                place = (self._group(active), binding.description, binding.tooltip)
                bindings.setdefault(place, []).append(self.app.get_key_display(binding))
        return [
            (title, " ".join(dict.fromkeys(keys)), tooltip or description)
            for (title, description, tooltip), keys in bindings.items()
        ]

    def _group(self, active: ActiveBinding) -> str:
        if active.node is self.app:
            return "Everywhere"
        return "This screen" if active.node is self._below else "Where the focus is"

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


def _table(rows: list[tuple[str, str]]) -> Content:
    width = max(len(keys) for keys, _ in rows)
    lines = [Content.assemble((keys.rjust(width), "bold"), "  ", (words, MUTED)) for keys, words in rows]
    return Content("\n").join(lines)
