"""What the settings say of the app itself: theme, units and keys."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from textual import work
from textual.app import App
from textual.events import Event, Key, Paste
from textual.reactive import var
from textual.theme import Theme

from localspec.errors import LocalspecError, SettingsError
from localspec.session.plain_text import printable
from localspec.settings import Settings
from localspec.tui.alt_keys import hear_alt_keys, without_text
from localspec.tui.failure_notice import short_notice
from localspec.tui.key_names import KeyNameError, parse_keys
from localspec.tui.plain import plain
from localspec.tui.services import AppServices
from localspec.units import Units, use_units

AUTO = "auto"
DARK, LIGHT = "textual-dark", "textual-light"

_DARK_COLOURS = {"0", "1", "2", "3", "4", "5", "6", "8", "default"}
"""Of the sixteen that terminals number."""


class ConfiguredApp(App[int]):
    """An app that looks and hears as the settings say, and follows them when they change."""

    key_map: var[Mapping[str, str]] = var[Mapping[str, str]](dict)
    """Keys in force that are not the usual ones, by the name of what they do."""

    def __init__(self, services: AppServices) -> None:
        """Take the settings; the keys come with the first screen, since all screens have to be known for them."""
        super().__init__()
        hear_alt_keys()
        self.services = services
        self._shown_theme = ""
        self._use_looks(services.settings)
        # What the first screen says of keys is right at once, but for keys that turn out not to be possible.
        self.set_reactive(ConfiguredApp.key_map, _named(services.settings.keys))

    def on_mount(self) -> None:
        """Keep a theme that is chosen in the palette, and take the keys."""
        self.theme_changed_signal.subscribe(self, self._keep_theme)
        wanted = self.services.settings.app.theme
        if wanted != AUTO and wanted not in self.available_themes:
            hint = f"There are auto, {', '.join(sorted(self.available_themes))}."
            self.show_failure(SettingsError(f"app.theme: there is no theme {wanted!r:.80}.", hint))
        if self.services.settings.keys:
            self.call_after_refresh(self.use_keys, self.services.settings.keys)

    def show_failure(self, error: LocalspecError) -> None:
        """Say what went wrong, and what to do about it."""
        text = error.message if not error.hint else f"{error.message}\n{error.hint}"
        self.notify(str(plain(short_notice(text))), severity="error", timeout=10, markup=False)

    async def on_event(self, event: Event) -> None:
        """Let nothing be pasted that a terminal would obey when it is shown, and no key with alt write its letter."""
        if isinstance(event, Paste):
            event.text = printable(event.text)
        elif isinstance(event, Key):
            without_text(event)
        await super().on_event(event)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text, without what a terminal would obey: it may be a model's, and is pasted somewhere."""
        super().copy_to_clipboard(printable(text))

    def show_theme(self, wanted: str) -> None:
        """Show a theme without keeping it.

        Args:
            wanted: as the settings name it; an unknown one is taken for `auto`.
        """
        self._shown_theme = theme_in_force(wanted, self.available_themes, os.environ)
        self.theme = self._shown_theme

    @work(exclusive=True, group="keys")
    async def use_keys(self, keys: Mapping[str, str]) -> None:
        """Put keys in force, and say which cannot be; those have their usual ones."""
        errors: Sequence[SettingsError] = ()
        if keys:
            keys, errors = await asyncio.to_thread(_checked, keys)
        self.set_keymap(keys)
        self.key_map = keys
        for error in errors:
            self.show_failure(error)

    def watch_key_map(self) -> None:
        """Draw anew what names keys."""
        self._draw_anew()

    def follow_settings(self, settings: Settings) -> None:
        """Look and hear as other settings say."""
        before = self.services.settings
        self.services = replace(self.services, settings=settings)
        self._use_looks(settings)
        if settings.keys != before.keys:
            self.use_keys(settings.keys)
        if settings.units != before.units:
            self._draw_anew()

    def _draw_anew(self) -> None:
        for stack in self._screen_stacks.values():
            for screen in stack:
                # What is written anew with each change will follow by itself.
                for widget in screen.query("*"):
                    widget.refresh(layout=True)

    def take_settings(self, settings: Settings) -> None:
        """Put other settings in force."""
        self.follow_settings(settings)

    def _use_looks(self, settings: Settings) -> None:
        use_units(Units(settings.units.memory, settings.units.speed))
        self.show_theme(settings.app.theme)

    def _keep_theme(self, theme: Theme) -> None:
        if theme.name == self._shown_theme:
            return
        self._shown_theme = theme.name
        if self.services.memory_file is not None:
            self.write_theme(theme.name)

    @work(exclusive=True, group="theme", exit_on_error=False)
    async def write_theme(self, name: str) -> None:
        """Write a theme that was chosen in the palette into the settings, unless the environment names one."""
        from localspec.paths import settings_file
        from localspec.session.settings_file import change_settings, overridden_settings

        variable = overridden_settings().get(("app", "theme"))
        if variable is not None:
            self.notify(f"For this time only: {plain(variable)} names the theme.", markup=False)
            return
        try:
            self.take_settings(await asyncio.to_thread(change_settings, settings_file(), {("app", "theme"): name}))
        except LocalspecError as error:
            self.show_failure(error)


def _named(keys: Mapping[str, str]) -> dict[str, str]:
    """Return keys in Textual's spelling; what is none is left out."""
    named: dict[str, str] = {}
    for name, text in keys.items():
        with suppress(KeyNameError):
            named[name] = ",".join(parse_keys(text))
    return named


def _checked(keys: Mapping[str, str]) -> tuple[Mapping[str, str], Sequence[SettingsError]]:
    # Importing all screens takes a moment, in which the app is to be used.
    from localspec.tui.key_map import check_keys

    return check_keys(keys)


def theme_in_force(wanted: str, known: Collection[str], environ: Mapping[str, str]) -> str:
    """Return the theme that a setting stands for.

    Args:
        wanted: a theme's name, or `auto`.
        known: names of all themes.
        environ: `COLORFGBG`, which some terminals set, ends with the number of the background's colour.
    """
    if wanted in known:
        return wanted
    background = environ.get("COLORFGBG", "").rpartition(";")[2] or "default"
    return DARK if background in _DARK_COLOURS else LIGHT
