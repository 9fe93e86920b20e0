"""Settings as texts in fields, and back."""

from __future__ import annotations

import os
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from localspec.session.settings_file import Value
from localspec.settings import Settings
from localspec.tui.settings_words import TITLES, WORDS

UNSET = "unset"
"""Stands for no value in a list of choices."""

Key = tuple[str, str]
"""Group and name."""


@dataclass(frozen=True, slots=True)
class SettingField:
    """One setting."""

    key: Key
    words: str
    choices: tuple[str, ...]
    """What it can be; empty where it is written freely."""
    kinds: tuple[type, ...]
    """Types of its values."""


def setting_fields() -> Iterator[SettingField]:
    """Yield all settings in the order of their groups' titles. The keys have a screen of their own."""
    groups = [group for group in Settings.model_fields if group != "keys"]
    order = list(TITLES)
    for group in sorted(groups, key=lambda group: order.index(group) if group in order else len(order)):
        annotation: Any = Settings.model_fields[group].annotation
        for name, own in annotation.model_fields.items():
            choices, kinds = _choices(own.annotation)
            yield SettingField((group, name), WORDS.get((group, name), ""), choices, kinds)


def setting_texts(settings: Settings) -> dict[Key, str]:
    """Return every setting as text."""
    return {field.key: _text(getattr(getattr(settings, field.key[0]), field.key[1])) for field in setting_fields()}


def setting_changes(before: Mapping[Key, str], after: Mapping[Key, str]) -> dict[Key, Value]:
    """Return the settings whose text has changed, by value. What is no number stays a text, to be refused in words."""
    fields = {field.key: field for field in setting_fields()}
    return {
        key: _value(fields[key], text.strip())
        for key, text in after.items()
        if text.strip() != before.get(key, "").strip()
    }


def _choices(annotation: Any) -> tuple[tuple[str, ...], tuple[type, ...]]:
    if annotation is bool:
        return ("on", "off"), (bool,)
    if typing.get_origin(annotation) is Literal:
        return tuple(str(value) for value in typing.get_args(annotation)), (str,)
    parts = typing.get_args(annotation)
    if NoneType in parts:
        choices, kinds = _choices(next(part for part in parts if part is not NoneType))
        return ((UNSET, *choices) if choices else ()), kinds
    return (), (annotation if isinstance(annotation, type) else tuple,)


def _text(value: object) -> str:
    match value:
        case None:
            return UNSET
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:.10g}"
        case str():
            return value
        case tuple() | list():
            return os.pathsep.join(str(part) if isinstance(part, Path) else f"{part}" for part in value)
        case _:
            return str(value)


def _value(field: SettingField, text: str) -> Value:
    kind = field.kinds[0]
    if text == UNSET or (not text and kind is not str):
        return None
    if kind is bool:
        return text == "on"
    if kind is str:
        return text
    if kind in (int, float):
        return _number(kind, text)
    return _folders(text)


def _number(kind: type, text: str) -> Value:
    try:
        return int(text) if kind is int else float(text)
    except ValueError:
        return text


def _folders(text: str) -> Sequence[str]:
    return [part for part in text.split(os.pathsep) if part]
