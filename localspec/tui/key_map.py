"""Everything in the app that a key does, and which keys the settings give to it instead."""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from localspec.errors import SettingsError
from localspec.tui.key_names import KeyNameError, is_typed, parse_keys
from localspec.tui.keyed import keyed

PLACES = {
    "": "Everywhere",
    "models": "Models",
    "fit": "Fit",
    "chat": "Chat",
    "compare": "Compare",
    "runs": "Runs",
}
"""Modes with their names, and what belongs to none of them."""

_PREFIXES = {"hub": "models", "probe": "models", "tune": "compare"} | dict.fromkeys(
    ("welcome", "settings", "help", "keys", "demo"), ""
)
"""What the first word of a file's name stands for, where that is no mode."""


@dataclass(frozen=True, slots=True)
class KeyedAction:
    """Something that a key does."""

    id: str
    keys: tuple[str, ...]
    """That it has by default, or as the settings say."""
    name: str
    words: str
    """What it does, in half a sentence."""
    action: str
    """As Textual calls it."""
    owner: type[DOMNode]
    """App, screen or widget that carries it out."""
    mode: str
    """Where that is; empty for everywhere and for dialogs of no mode."""

    @property
    def is_in_dialog(self) -> bool:
        """Whether it exists only while a dialog is open."""
        return issubclass(self.owner, ModalScreen)

    @property
    def place(self) -> str:
        """Where it works, by the name that a user knows."""
        return PLACES[self.mode]


@functools.cache
def keyed_actions() -> tuple[KeyedAction, ...]:
    """Return everything that has a key, in the order of the modes. Imports all screens: a third of a second, once."""
    found: dict[tuple[str, type], KeyedAction] = {}
    for owner in _owners():
        for binding in owner.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id is not None:
                action = _action(binding, owner)
                found.setdefault((action.id, owner), action)
    order = list(PLACES)
    return tuple(sorted(found.values(), key=lambda action: (order.index(action.mode), action.is_in_dialog)))


def remapped(actions: Iterable[KeyedAction], keys: Mapping[str, str]) -> tuple[KeyedAction, ...]:
    """Return actions with other keys, by id; keys that are none are passed over."""
    return tuple(_with_keys(action, keys) for action in actions)


def check_keys(keys: Mapping[str, str]) -> tuple[dict[str, str], tuple[SettingsError, ...]]:
    """Return the keys that can be in force, in Textual's spelling, and why others cannot. Imports all screens."""
    errors: list[SettingsError] = []
    known = {action.id for action in keyed_actions()}
    fit: dict[str, str] = {}
    for name, text in keys.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = (
                f"Did you mean {near[0]}?"
                if near
                else keyed("The screen of keys ({app.help}, then {help.keys}) names them all.")
            )
            errors.append(SettingsError(f"keys: there is nothing called {name!r:.80} to give a key to.", hint))
            continue
        try:
            fit[name] = ",".join(parse_keys(text))
        except KeyNameError as error:
            hint = "Write keys such as ctrl+x, f10, escape, slash or a, with commas between several."
            errors.append(SettingsError(f"keys.{name}: {error}, in {text!r:.80}.", hint))
    while (clash := _first_clash(fit)) is not None:
        errors.append(clash[0])
        del fit[clash[1]]
    return fit, tuple(errors)


def _owners() -> Iterator[type[DOMNode]]:
    from localspec.tui import screens, widgets
    from localspec.tui.app import LocalspecApp

    yield LocalspecApp
    for package in (screens, widgets):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            members = vars(importlib.import_module(module.name)).values()
            yield from (one for one in members if _is_own(one, module.name))


def _is_own(member: object, module: str) -> bool:
    return isinstance(member, type) and issubclass(member, Widget) and member.__module__ == module


def _action(binding: Binding, owner: type[DOMNode]) -> KeyedAction:
    mode = getattr(owner, "MODE", "")
    if not mode:
        prefix = owner.__module__.rpartition(".")[2].partition("_")[0]
        mode = _PREFIXES.get(prefix, prefix)
    keys = parse_keys(binding.key)
    words = binding.tooltip or binding.description
    return KeyedAction(
        str(binding.id), keys, binding.description, words, binding.action, owner, mode if mode in PLACES else ""
    )


def _with_keys(action: KeyedAction, keys: Mapping[str, str]) -> KeyedAction:
    try:
        return replace(action, keys=parse_keys(keys[action.id])) if action.id in keys else action
    except KeyNameError:
        return action


def _first_clash(keys: Mapping[str, str]) -> tuple[SettingsError, str] | None:
    """Return the first key that would do two things in one place, or would be typed instead, and whose it is."""
    usual = keyed_actions()
    now = remapped(usual, keys)
    for action in now:
        if action.id in keys and _is_typed_over(action) and (typed := next(filter(is_typed, action.keys), "")):
            message = f"keys.{action.id}: {typed} would be typed into a text, and do nothing else."
            return SettingsError(message, "Take a key with ctrl, or one of f1 to f12."), action.id
    for (one, one_usual), (other, other_usual) in combinations(zip(now, usual, strict=True), 2):
        if one.id == other.id or not ({one.id, other.id} & keys.keys()):
            continue
        shared = set(one.keys) & set(other.keys)
        # What shares a key already has one of them yield by design: a list that is in focus, a dialog.
        if shared and not set(one_usual.keys) & set(other_usual.keys) and _meet(one, other):
            key, place = min(shared), (one if one.mode else other).place
            message = f"keys: {key} would be both {one.id} ({one.words}) and {other.id} ({other.words}), {place}."
            return SettingsError(message, "Give one of them another key."), one.id if one.id in keys else other.id
    return None


def _is_typed_over(action: KeyedAction) -> bool:
    """Say whether a text field usually has the focus where an action is wanted."""
    is_app = not issubclass(action.owner, Widget)
    return is_app or (action.mode == "chat" and not action.is_in_dialog and issubclass(action.owner, Screen))


def _meet(one: KeyedAction, other: KeyedAction) -> bool:
    """Say whether two actions are there at the same time."""
    if one.owner is other.owner:
        return True
    if one.is_in_dialog or other.is_in_dialog:
        return False
    if not (one.mode and other.mode):
        return True
    return one.mode == other.mode and (issubclass(one.owner, Screen) != issubclass(other.owner, Screen))
