"""Keys as users write them, and as Textual calls them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from contextlib import suppress

from textual.keys import Keys, _character_to_key, format_key

MODIFIERS = ("alt", "ctrl", "hyper", "meta", "shift", "super")
"""In the order in which Textual joins them."""

_SAME = {"esc": "escape", "return": "enter", "del": "delete", "ins": "insert", "pgup": "pageup", "pgdn": "pagedown"}

_SIGNS = frozenset({"backspace", "down", "enter", "left", "right", "up"})
"""What Textual shows as a sign, and prose as a word."""

_TYPED = frozenset(map(_character_to_key, map(chr, range(32, 127))))
"""Names of what a keyboard types, such as `slash`."""

_NAMED = _TYPED | {key.value for key in Keys if "+" not in key.value and not key.value.startswith("<")}


_WORDWISE = {"b": "ctrl+left", "f": "ctrl+right"}
"""What alt with these letters means to a terminal."""


class KeyNameError(ValueError):
    """A text names no key; its message says why."""


def parse_keys(text: str) -> tuple[str, ...]:
    """Return the keys that `ctrl+x, f10` stands for, by Textual's names and each once.

    Raises:
        KeyNameError: one of them is none.
    """
    if not text.strip():
        raise KeyNameError("no key is named; every action has one at least")
    keys = tuple(dict.fromkeys(_key(part.strip()) for part in text.split(",")))
    return keys


def key_text(keys: Mapping[str, str], name: str, usual: str) -> str:
    """Return the first key of an action as it is shown, such as `f4` or `^y`.

    Args:
        keys: in force where they are not the usual ones, by the names of actions.
        name: the action's.
        usual: its usual key.
    """
    *modifiers, key = keys.get(name, usual).partition(",")[0].split("+")
    shown = format_key(key) if key.isprintable() else ""
    others = [modifier for modifier in modifiers if modifier != "ctrl"]
    return "+".join([*others, f"^{shown}" if "ctrl" in modifiers else shown])


def spelt(key: str) -> str:
    """Return a key as prose names it, such as `F4`, `ctrl+y` or `esc`.

    Args:
        key: by Textual's name.
    """
    *modifiers, base = key.split("+")
    if base not in _SIGNS:
        base = format_key(base) if base.isprintable() else ""
    is_numbered = base[:1] == "f" and base[1:].isdigit()
    return "+".join([*modifiers, base.upper() if is_numbered else base])


def is_typed(key: str) -> bool:
    """Say whether a key writes a character, so that a text field that has the focus takes it."""
    return len(key) == 1 or key in _TYPED


def _key(text: str) -> str:
    if not text:
        raise KeyNameError("a key is missing beside a comma; the comma itself is called comma")
    if text == "+" or text.endswith("++"):
        raise KeyNameError("the key + is called plus")
    *modifiers, base = text.split("+")
    modifiers = [modifier.strip().lower() for modifier in modifiers]
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise KeyNameError(f"{modifier or 'nothing'!r} before + is none of {', '.join(MODIFIERS)}")
    name = _base(base.strip(), is_lower="ctrl" in modifiers)
    if "shift" in modifiers and len(name) == len(name.upper()) == 1 and name.isalpha():
        # Terminals send the capital letter, and no more.
        modifiers.remove("shift")
        name = name.upper()
    if modifiers == ["alt"] and name in _WORDWISE:
        raise KeyNameError(f"alt+{name} never arrives: terminals send it as {_WORDWISE[name]}")
    return "+".join((*sorted(set(modifiers)), name))


def _base(text: str, is_lower: bool) -> str:
    if len(text) == 1 and text.isprintable():
        # Beyond ASCII the name is not always found again; Textual takes the character itself.
        return _character_to_key(text.lower() if is_lower else text) if text.isascii() else text
    name = _SAME.get(text.lower(), text.lower())
    if len(name) > 1 and name in _NAMED:
        return name
    with suppress(KeyError, UnicodeEncodeError):
        return unicodedata.lookup(name.replace("_", " "))
    raise KeyNameError(f"there is no key {text!r:.40}")
