"""The settings: the file settings.toml, field by field. Its keys have a screen of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import DescendantFocus
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Select, Static

from localspec.errors import LocalspecError
from localspec.paths import settings_file
from localspec.session.plain_text import one_line
from localspec.session.settings_file import Value, change_settings, overridden_settings
from localspec.tui.configured import AUTO
from localspec.tui.key_names import key_text
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line
from localspec.tui.settings_fields import UNSET, Key, SettingField, setting_changes, setting_fields, setting_texts
from localspec.tui.settings_words import TITLES

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp


THEME: Key = ("app", "theme")


class SettingsScreen(ModalScreen[None]):
    """Nothing is written before it is accepted whole; a theme is only shown until then."""

    CSS_PATH = "settings.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (76, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="settings.leave", tooltip="Change nothing"),
        Binding("ctrl+s", "save", "Save", id="settings.save", tooltip="Write settings.toml", priority=True),
        Binding("ctrl+t", "keys", "Keys", id="settings.keys", tooltip="Give other keys to what they do"),
    ]

    def __init__(self, path: Path | None = None) -> None:
        """Take the file.

        Args:
            path: None for the one in the configuration folder.
        """
        super().__init__()
        self._path = path or settings_file()
        self._overridden = overridden_settings()
        self._texts: dict[Key, str] = {}
        self._is_warned = False
        """Whether it was said that what is written would be lost."""

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    def compose(self) -> ComposeResult:
        """Yield a row for each setting."""
        self._texts = setting_texts(self.host.services.settings)
        panel = Vertical(id="settings", classes="panel")
        panel.border_title = "Settings"
        panel.border_subtitle = plain_line(str(self._path))
        with panel:
            with VerticalScroll(can_focus=False):
                group = ""
                for field in setting_fields():
                    if field.key[0] != group:
                        group = field.key[0]
                        yield Label(TITLES.get(group, group), classes="group", markup=False)
                    with Horizontal(classes="row"):
                        yield from self._row(field)
            yield Static("", id="settings-words", classes="muted", markup=False)
            yield Static("", id="settings-refusal", markup=False)
            with Horizontal(id="settings-buttons"):
                save, keys = self._key("save", "ctrl+s"), self._key("keys", "ctrl+t")
                yield Button(Content(f"Save ({save})"), id="save", variant="primary", compact=True)
                yield Button(Content(f"Keys … ({keys})"), id="keys", compact=True)
                yield Button(Content(f"Leave ({self._key('leave', 'escape')})"), id="leave", compact=True)

    def _key(self, name: str, usual: str) -> str:
        return key_text(self.host.key_map, f"settings.{name}", usual)

    def _row(self, field: SettingField) -> ComposeResult:
        variable = self._overridden.get(field.key)
        text, name = self._texts[field.key], _widget_id(field.key)
        yield Label(field.key[1], markup=False)
        options = self._themes() if field.key == THEME else field.choices
        if options:
            choices = [(Content(option), option) for option in options]
            text = text if text in options else options[0]
            yield Select(choices, value=text, allow_blank=False, compact=True, id=name, disabled=variable is not None)
        else:
            # A line break would end the field's line.
            shown = "" if text == UNSET else one_line(text)
            yield Input(shown, id=name, compact=True, disabled=variable is not None)
        words = field.words if variable is None else f"! set by {one_line(variable)}"
        yield Label(plain_line(words), classes="muted", markup=False)

    @on(DescendantFocus)
    def _show_words(self, event: DescendantFocus) -> None:
        """Say what the field is for, where there is no room beside it."""
        words = {_widget_id(field.key): field.words for field in setting_fields()}
        self.query_one("#settings-words", Static).update(plain_line(words.get(event.widget.id or "", "")))

    def written(self) -> dict[Key, str]:
        """Return what the fields hold, but for those that cannot be edited."""
        texts: dict[Key, str] = {}
        for field in setting_fields():
            widget = self.query_one(f"#{_widget_id(field.key)}")
            if widget.disabled:
                continue
            if isinstance(widget, Select):
                texts[field.key] = str(widget.value)
            elif isinstance(widget, Input) and widget.value != one_line(_empty(self._texts[field.key])):
                texts[field.key] = widget.value
        return texts

    def _themes(self) -> tuple[str, ...]:
        return (AUTO, *sorted(self.host.available_themes))

    @on(Select.Changed, "#app-theme")
    def _show_theme(self, event: Select.Changed) -> None:
        event.stop()
        if isinstance(event.value, str):
            self.host.show_theme(event.value)

    def _changes(self) -> dict[Key, Value]:
        changes = setting_changes({key: _empty(text) for key, text in self._texts.items()}, self.written())
        return {key: value for key, value in changes.items() if not (value is None and self._texts[key] == UNSET)}

    def _refuse(self, text: str) -> None:
        refusal = self.query_one("#settings-refusal", Static)
        refusal.update(plain(f"! {text}"))
        refusal.add_class("-shown")

    @on(Input.Submitted)
    @on(Button.Pressed, "#save")
    def action_save(self) -> None:
        """Write what has changed, if it can be."""
        changes = self._changes()
        if changes:
            self.save(changes)
        else:
            self.dismiss(None)

    @work(exclusive=True, group="save", exit_on_error=False)
    async def save(self, changes: dict[Key, Value]) -> None:
        """Check and write, or say what is wrong."""
        try:
            settings = await asyncio.to_thread(change_settings, self._path, changes)
        except LocalspecError as error:
            self._refuse(f"{error.message} {error.hint}")
            return
        is_elsewhere = settings.models != self.host.services.settings.models
        self.host.take_settings(settings)
        more = keyed(" {models.refresh} on the Models screen looks into the folders.") if is_elsewhere else ""
        self.host.notify(f"The settings are written.{more}", markup=False)
        self.dismiss(None)

    @on(Button.Pressed, "#keys")
    def action_keys(self) -> None:
        """Show which keys there are, to change them."""
        from localspec.tui.screens.keys import KeysScreen

        self.app.push_screen(KeysScreen(self._path))

    def action_leave(self) -> None:
        """Change nothing; where something was written, only when asked twice."""
        if self._is_warned or not self._changes():
            self.leave()
            return
        self._is_warned = True
        save, leave = self._key("save", "ctrl+s"), self._key("leave", "escape")
        self._refuse(f"What you changed is not saved: {save} saves it, {leave} again leaves without.")

    @on(Button.Pressed, "#leave")
    def leave(self) -> None:
        """Go, with the theme that is kept."""
        self.host.show_theme(self.host.services.settings.app.theme)
        self.dismiss(None)


def _widget_id(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def _empty(text: str) -> str:
    return "" if text == UNSET else text
