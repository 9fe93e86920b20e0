"""Keys while they are being chosen: what each action has now, and what may be given to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content

from localspec.errors import SettingsError
from localspec.session.plain_text import one_line
from localspec.tui.key_map import KeyedAction, check_keys, remapped
from localspec.tui.key_names import key_text
from localspec.tui.plain import MUTED

_KEYS_WIDTH = 18


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A line of the list."""

    text: Content
    id: str
    """Of the action; empty for a title."""


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """All actions, and the keys that are not the usual ones."""

    actions: tuple[KeyedAction, ...]
    keys: Mapping[str, str]
    """By the name of the action, as they would be written."""

    def words_of(self, name: str) -> str:
        """Return what an action does."""
        return next((action.words for action in self.actions if action.id == name), name)

    def given(self, name: str, key: str) -> tuple[KeyChoice, SettingsError | None]:
        """Return the choice with another key for an action, or the same with the reason why that cannot be.

        Args:
            name: the action's.
            key: as Textual calls it; empty for the usual one.
        """
        keys = {other: text for other, text in self.keys.items() if other != name}
        usual = next((action.keys for action in self.actions if action.id == name), ())
        if key and (key,) != usual:
            keys[name] = key
        before = {error.message for error in check_keys(self.keys)[1]}
        new = [error for error in check_keys(keys)[1] if error.message not in before]
        return (self, new[0]) if new else (replace(self, keys=keys), None)

    def changes(self, settled: Mapping[str, str]) -> dict[str, str | None]:
        """Return what differs from the settings; None for what is to be left out of them."""
        names = {*settled, *self.keys}
        return {name: self.keys.get(name) for name in sorted(names) if settled.get(name) != self.keys.get(name)}


def key_rows(choice: KeyChoice, words: str) -> list[KeyRow]:
    """Return a line for each action that holds all words, under the names of where they are."""
    rows: list[KeyRow] = []
    place = ""
    shown: set[str] = set()
    wanted = words.lower().split()
    for action in remapped(choice.actions, choice.keys):
        text = f"{action.place} {action.name} {action.words} {action.id} {' '.join(action.keys)}".lower()
        if action.id in shown or not all(word in text for word in wanted):
            continue
        shown.add(action.id)
        where = f"{action.place}, in dialogs" if action.is_in_dialog else action.place
        if where != place:
            place = where
            rows.append(KeyRow(Content(place), ""))
        rows.append(KeyRow(_row(action, action.id in choice.keys), action.id))
    return rows or [KeyRow(Content("Nothing has these words."), "")]


def _row(action: KeyedAction, is_changed: bool) -> Content:
    keys = one_line(" ".join(key_text({}, "", key) for key in action.keys))
    padding = " " * max(1, _KEYS_WIDTH - cell_len(keys))
    mark = "*" if is_changed else " "
    return Content.assemble(
        f"{mark} ", (keys, "bold"), padding, one_line(action.words), (f"  {one_line(action.id)}", MUTED)
    )
