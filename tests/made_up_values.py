"""Values of any annotated type, with one text wherever a text can be: to see what a text does to code that shows it."""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import enum
import functools
import importlib
import pkgutil
import sys
import types
import typing
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel
from textual.content import Content

from localspec.errors import LocalspecError
from localspec.session.plain_text import printable
from localspec.tui.runs.details import Figures

OWN = {"mark": "*", "style": "bold"}
"""Fields by name that never hold foreign text."""

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


SIMPLE: dict[Any, Any] = {bool: True, int: 2, float: 0.5, bytes: b"x", datetime: MOMENT}


class NotMadeUpError(Exception):
    """There is no making up a value of that type."""


def made_up(annotation: Any, text: str) -> Any:
    """Return a value of a type; numbers are small, collections have one element and choices their first.

    Raises:
        NotMadeUpError: it is not known how.
    """
    if annotation is Any or annotation is object or annotation is str:
        return text
    if annotation is None or annotation is type(None):
        return None
    if annotation is Content:
        # It is made from text that was made safe.
        return Content(printable(text))
    if annotation in SIMPLE:
        return SIMPLE[annotation]
    if annotation in (Path, PurePath):
        return Path("/models") / text.replace("\0", "")[:200]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is not None:
        return _generic(origin, arguments, text)
    if annotation is Figures:
        # As many cells as columns, and a label.
        return Figures((text,), ((text, text),))
    if isinstance(annotation, type):
        return _of_class(annotation, text)
    raise NotMadeUpError(str(annotation))


def arguments_for(function: Any, text: str) -> dict[str, Any]:
    """Return arguments for an annotated function or method, by name.

    Raises:
        NotMadeUpError: one of them cannot be made up.
    """
    hints = _hints_of_function(function)
    return {name: made_up(hint, text) for name, hint in hints.items() if name != "return"}


@functools.cache
def all_names() -> dict[str, Any]:
    """Return all classes and types of the package by name: some are imported for type checkers only."""
    names: dict[str, Any] = {"Any": Any}
    for package in ("catalog", "planning", "engine", "metrics", "store", "session", "tui"):
        root = importlib.import_module(f"localspec.{package}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            if ".llama" not in module.name and not module.name.endswith((".worker", "worker_log")):
                names.update(
                    (name, member)
                    for name, member in vars(importlib.import_module(module.name)).items()
                    if name[0].isupper()
                )
    return names


def texts_in(value: Any, depth: int = 6) -> list[str]:
    """Return every text in a value, whatever it lies in."""
    if isinstance(value, str):
        return [value]
    if depth == 0 or value is None or isinstance(value, int | float | bytes | Path):
        return []
    if isinstance(plain := getattr(value, "plain", None), str):
        return [plain]
    parts: abc.Iterable[Any] = ()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
    elif isinstance(value, abc.Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = value
    return [text for part in parts for text in texts_in(part, depth - 1)]


@functools.cache
def _hints_of_function(function: Any) -> dict[str, Any]:
    return typing.get_type_hints(function, {**all_names(), **function.__globals__})


@functools.cache
def _hints_of(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind, {**all_names(), **vars(sys.modules[kind.__module__])})


def _generic(origin: Any, arguments: tuple[Any, ...], text: str) -> Any:
    if origin in (typing.Union, types.UnionType):
        # None is the less telling one.
        return made_up(next((one for one in arguments if one is not type(None)), type(None)), text)
    if origin is Literal:
        return arguments[0]
    if origin is typing.Annotated:
        return made_up(arguments[0], text)
    if origin is tuple:
        if not arguments or arguments[-1] is Ellipsis:
            return tuple(made_up(one, text) for one in arguments[:1])
        return tuple(made_up(one, text) for one in arguments)
    if origin is type:
        return arguments[0]
    if issubclass(origin, abc.Mapping):
        if typing.get_origin(arguments[0]) is Literal:
            return {key: made_up(arguments[1], text) for key in typing.get_args(arguments[0])}
        return {made_up(arguments[0], text): made_up(arguments[1], text)}
    if issubclass(origin, set | frozenset):
        return frozenset({made_up(arguments[0], text)})
    if origin is abc.Callable:
        result = arguments[1] if len(arguments) > 1 else None
        return lambda *_: made_up(result, text)
    if issubclass(origin, abc.Iterator):
        return iter([made_up(arguments[0], text)])
    if issubclass(origin, abc.Iterable):
        return [made_up(arguments[0], text)]
    raise NotMadeUpError(str(origin))


def _of_class(kind: type, text: str) -> Any:
    if issubclass(kind, enum.Enum):
        return next(iter(kind))
    if dataclasses.is_dataclass(kind):
        hints = _hints_of(kind)
        fields = [field for field in dataclasses.fields(kind) if field.init]
        return kind(**{field.name: OWN.get(field.name) or made_up(hints[field.name], text) for field in fields})
    if issubclass(kind, BaseModel):
        hints = _hints_of(kind)
        return kind.model_construct(**{name: made_up(hints[name], text) for name in kind.model_fields})
    if issubclass(kind, LocalspecError):
        return kind(text, text)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints_of(kind)
        return kind(*(made_up(hints[name], text) for name in kind._fields))
    raise NotMadeUpError(str(kind))
