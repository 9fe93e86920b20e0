"""Which keys there are, and other ones for them: press the new key, and it is written into settings.toml."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from localspec.errors import LocalspecError
from localspec.paths import settings_file
from localspec.session.settings_file import change_settings, overridden_settings
from localspec.tui.key_choice import KeyChoice, key_rows
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp
    from localspec.tui.key_map import KeyedAction


class KeysScreen(ModalScreen[None]):
    """A list of all keys. Nothing is written before it is saved."""

    CSS_PATH = "keys.tcss"
    AUTO_FOCUS = "#keys-list"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="keys.leave", tooltip="Change nothing, or end the search"),
        Binding("ctrl+s", "save", "Save", id="keys.save", tooltip="Write settings.toml", priority=True),
        Binding("delete,backspace", "reset", "Usual key", id="keys.reset", tooltip="Give it its usual key again"),
        Binding("slash", "search", "Search", id="keys.search", tooltip="Show keys whose texts hold some words"),
    ]

    def __init__(self, path: Path | None = None) -> None:
        """Take the file.

        Args:
            path: None for the one in the configuration folder.
        """
        super().__init__()
        self._path = path or settings_file()
        self._fixed = {name: variable for (group, name), variable in overridden_settings().items() if group == "keys"}
        self._choice: KeyChoice | None = None

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    @property
    def listed(self) -> OptionList:
        """The list of keys."""
        return self.query_one("#keys-list", OptionList)

    def compose(self) -> ComposeResult:
        """Yield search, list and what is said of it."""
        panel = Vertical(id="keys", classes="panel")
        panel.border_title = "Keys"
        panel.border_subtitle = plain_line(str(self._path))
        with panel:
            yield Input(placeholder=keyed("words to look for; {keys.leave} shows all"), id="keys-search", compact=True)
            yield OptionList(id="keys-list", compact=True)
            words = keyed("Enter, then the new key; {keys.reset} gives the usual one again, {keys.search} searches.")
            yield Static(plain_line(words), classes="muted")
            yield Static("", id="keys-refusal", markup=False)
            with Horizontal(id="keys-buttons"):
                yield Button("Save", id="save", variant="primary", compact=True)
                yield Button("Leave", id="leave", compact=True)

    @work(exclusive=True, group="keys", exit_on_error=True)
    async def fill(self) -> None:
        """List the keys, as soon as all screens are known."""
        actions = await asyncio.to_thread(_actions)
        self._choice = KeyChoice(tuple(actions), dict(self.host.services.settings.keys))
        self._show()

    def on_mount(self) -> None:
        """Begin."""
        self.fill()

    def _show(self) -> None:
        if self._choice is None:
            return
        before = self._current()
        rows = key_rows(self._choice, self.query_one("#keys-search", Input).value)
        self.listed.clear_options()
        self.listed.add_options([Option(row.text, id=row.id or None, disabled=not row.id) for row in rows])
        ids = [row.id for row in rows]
        if not before or before not in ids:
            before = next((name for name in ids if name), "")
        self.listed.highlighted = ids.index(before) if before else None

    def _current(self) -> str:
        place = self.listed.highlighted
        return "" if place is None else self.listed.get_option_at_index(place).id or ""

    def _refuse(self, words: str) -> None:
        refusal = self.query_one("#keys-refusal", Static)
        refusal.update(plain(words))
        refusal.set_class(bool(words), "-shown")

    @on(Input.Changed, "#keys-search")
    def _search(self, event: Input.Changed) -> None:
        event.stop()
        self._show()

    @on(Input.Submitted, "#keys-search")
    def _to_list(self, event: Input.Submitted) -> None:
        event.stop()
        self.listed.focus()

    @on(OptionList.OptionSelected)
    def _ask(self, event: OptionList.OptionSelected) -> None:
        from localspec.tui.screens.keys_press import KeyPress

        event.stop()
        choice, name = self._choice, event.option.id or ""
        if choice is None or self._is_fixed(name):
            return

        def take(key: str | None) -> None:
            if key is not None:
                self._give(name, key)

        self.app.push_screen(KeyPress(choice.words_of(name)), take)

    def _is_fixed(self, name: str) -> bool:
        variable = self._fixed.get(name)
        self._refuse("" if variable is None else f"! {variable} says this key.")
        return variable is not None

    def _give(self, name: str, key: str) -> None:
        assert self._choice is not None
        changed, refusal = self._choice.given(name, key)
        self._refuse("" if refusal is None else f"! {refusal.message.removeprefix('keys: ')} {refusal.hint}")
        self._choice = changed
        self._show()

    def action_reset(self) -> None:
        """Give the marked action its usual key again."""
        name = self._current()
        if self._choice is not None and name and not self._is_fixed(name):
            self._give(name, "")

    def action_search(self) -> None:
        """Go to the words to look for."""
        self.query_one("#keys-search").focus()

    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        """Write what has changed."""
        changes = {} if self._choice is None else self._choice.changes(self.host.services.settings.keys)
        if changes:
            self.save({("keys", name): key for name, key in changes.items()})
        else:
            self.dismiss(None)

    @work(exclusive=True, group="save", exit_on_error=False)
    async def save(self, changes: dict[tuple[str, str], str | None]) -> None:
        """Write, or say what is wrong."""
        try:
            settings = await asyncio.to_thread(change_settings, self._path, changes)
        except LocalspecError as error:
            self._refuse(f"! {error.message} {error.hint}")
            return
        self.host.take_settings(settings)
        self.host.notify("The keys are written.", markup=False)
        self.dismiss(None)

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """End the search, or change nothing."""
        search = self.query_one("#keys-search", Input)
        if search.value or search.has_focus:
            search.value = ""
            self.listed.focus()
        else:
            self.dismiss(None)


def _actions() -> Sequence[KeyedAction]:
    from localspec.tui.key_map import keyed_actions

    return keyed_actions()
