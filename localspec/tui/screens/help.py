"""The keys that count where one is, from the bindings themselves."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from localspec.session.plain_text import one_line
from localspec.tui.active_keys import keys_in_order
from localspec.tui.keyed import keyed
from localspec.tui.plain import MUTED, plain_line


class HelpScreen(ModalScreen[None]):
    """Lists the keys of the screen below, of the field that has the focus, and of the app."""

    CSS_PATH = "help.tcss"
    AUTO_FOCUS = "#help-keys"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q", "leave", "Leave", id="help.leave", tooltip="Back to the screen"),
        Binding("k", "keys", "Change keys", id="help.keys", tooltip="Give other keys to what they do"),
    ]

    def __init__(self, below: Screen[object]) -> None:
        """Take the screen whose keys are to be shown."""
        super().__init__()
        self._below = below

    def compose(self) -> ComposeResult:
        """Yield the groups, the screen's own first."""
        panel = Vertical(id="help", classes="panel")
        panel.border_title = "Keys"
        panel.border_subtitle = plain_line(keyed("{help.keys} changes them, {help.leave} leaves"))
        groups: dict[str, list[tuple[str, str]]] = {"This screen": [], "Where the focus is": [], "Everywhere": []}
        for title, keys, words in self._keys():
            groups[title].append((keys, words))
        width = max((cell_len(keys) for rows in groups.values() for keys, _ in rows), default=0)
        with panel, VerticalScroll(id="help-keys"):
            for title, rows in groups.items():
                if rows:
                    yield Static(title, classes="group", markup=False)
                    yield Static(_table(rows, width))

    def _keys(self) -> list[tuple[str, str, str]]:
        """Return title of the group, keys and what they do."""
        found: dict[tuple[str, str, str], list[Binding]] = {}
        for active in keys_in_order(self._below):
            binding = active.binding
            # Those without a tooltip are Textual's own: arrows and the like.
            if binding.tooltip:
                place = (self._group(active), binding.action.partition("(")[0], binding.description)
                found.setdefault(place, []).append(binding)
        return [
            (title, _joined([self.app.get_key_display(binding) for binding in bindings]), _words(bindings))
            for (title, _, _), bindings in found.items()
        ]

    def _group(self, active: ActiveBinding) -> str:
        if active.node is self.app:
            return "Everywhere"
        return "This screen" if active.node is self._below else "Where the focus is"

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_keys(self) -> None:
        """Show all keys of the app, to change them."""
        from localspec.tui.screens.keys import KeysScreen

        self.app.switch_screen(KeysScreen())


def _table(rows: list[tuple[str, str]], width: int) -> Content:
    lines = []
    for keys, words in rows:
        padding = " " * (width - cell_len(keys))
        lines.append(Content.assemble(padding, (one_line(keys), "bold"), "  ", (one_line(words), MUTED)))
    return Content("\n").join(lines)


def _words(bindings: list[Binding]) -> str:
    tooltips = {binding.tooltip for binding in bindings}
    return tooltips.pop() if len(tooltips) == 1 else bindings[0].description


def _joined(keys: list[str]) -> str:
    """Return keys in a row, and neighbouring digits as a span."""
    unique = list(dict.fromkeys(keys))
    digits = [key for key in unique if key.isdigit()]
    if len(digits) > 2:
        span = f"1-{max(digits)}"
        unique = [span, *(key for key in unique if key not in digits and key != span)]
    return " ".join(unique)
