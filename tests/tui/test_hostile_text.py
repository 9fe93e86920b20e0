"""Text from models, files, the Hub, users and errors: never markup, never an escape code, never a broken column.

Nothing here is listed by hand: the sources are read for places where Textual would take a text for markup, and every
function that makes rows, every widget and every dialog of the app is given values full of hostile text.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest
from textual.events import Paste
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widget import Widget

import localspec.tui
from localspec.session.plain_text import printable
from localspec.tui import screens, widgets
from localspec.tui.app import LocalspecApp
from localspec.tui.screens.chat import ChatScreen
from localspec.tui.services import AppServices
from localspec.tui.state import Launch
from localspec.tui.widgets.chat_markdown import ChatCode, ChatTable
from localspec.tui.widgets.chat_tail import ChatTail
from localspec.tui.widgets.flowing_lines import FlowingLines
from tests.made_up_values import NotMadeUpError, all_names, arguments_for, made_up, texts_in

TEXTS = {
    "closing": "[/]",
    "path": "[/path]",
    "open": "[bold",
    "attribute": "[type=x, v={'a[0]'}]",
    "link": "[@click=app.quit]x[/]",
    "escape": "\x1b[31mred\x1b]8;;http://example.org\x07link\x9b2J",
    "control": "a\x00b\x07c\rd\x08e\x7f",
    "flipped": "\u202eflipped\u2066 \u200fright to left: \u05e9\u05dc\u05d5\u05dd",
    "zero width": "a\u200bb\u0301\u0308c\ufeffd\u2060",
    "wide": "長い名前のモデル、とても長い",
    "emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ☺️",
    "surrogate": "a\ud800b",
    "lines": "one\ntwo\n\n\tthree",
    "long": "x" * 10_000,
    "long and wide": "界" * 10_000,
    "nothing": "",
}

W = TypeVar("W", bound=Widget)

hostile = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def is_dangerous(text: str) -> bool:
    """Say whether a text holds what a terminal would obey, and not show."""
    return _OBEYED.search(text) is not None


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


# The sources.

OWN_WORDS = {
    "Option(prompt, …)",
    "Option(row.text, …)",
    "RadioButton(label, …)",
    "RadioButton(option, …)",
    "border_subtitle = f'{len(shown)}{of}, {size}' if rows else ''",
    "border_subtitle = kept",
    "border_title = f'Run {event.run_id}'",
    "border_title = f'Run {self._changes.before.id} against run {self._changes.after.id}'",
    "placeholder = keyed('words to look for; {keys.leave} shows all')",
    "placeholder = keyed(_FILTER)",
    "tooltip = f'Give up what offer {key} says'",
    "tooltip = tooltip",
}
"""No literals, but numbers or words of our own, or Content already. Look at one before you add it."""

_LABELLED = {"Button", "Checkbox", "Collapsible", "Option", "RadioButton", "Tab", "TabPane"}
_MARKED = {"border_title", "border_subtitle", "tooltip", "placeholder"}


def suspects(path: Path, makers: set[str]) -> Iterator[str]:
    """Yield what Textual may take for markup."""

    def is_safe(node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return "[" not in str(value)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in makers or ast.unparse(node.func).startswith(("Content", "Text"))
            case ast.IfExp(body=body, orelse=orelse):
                return is_safe(body) and is_safe(orelse)
        return False

    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            first = node.args[0] if node.args else None
            is_plain = "markup" in given and ast.unparse(given["markup"]) == "False"
            if name in ("Static", "Label") and not is_plain and not (first is not None and is_safe(first)):
                yield f"{name}({'' if first is None else ast.unparse(first)}, …)"
            is_marked = (name == "notify" and not is_plain) or name in _LABELLED
            if is_marked and first is not None and not is_safe(first):
                yield f"{name}({ast.unparse(first)}, …)"
            if name == "from_markup":
                yield ast.unparse(node)
            yield from (
                f"{key} = {ast.unparse(value)}" for key, value in given.items() if key in _MARKED and not is_safe(value)
            )
        elif isinstance(node, ast.Attribute) and node.attr == "markup":
            # What Textual escapes it cannot always read again: `[type=x, v={'a[0]'}]` ends the app.
            yield ast.unparse(node)
        elif isinstance(node, ast.Assign):
            yield from (
                f"{target.attr} = {ast.unparse(node.value)}"
                for target in node.targets
                if isinstance(target, ast.Attribute) and target.attr in _MARKED and not is_safe(node.value)
            )


def test_no_text_is_given_to_textual_as_markup() -> None:
    paths = list(Path(localspec.tui.__path__[0]).rglob("*.py"))
    makers = {
        node.name
        for path in paths
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.returns is not None and ast.unparse(node.returns) == "Content"
    }
    found = {f"{path.name}: {suspect}" for path in paths for suspect in suspects(path, makers)}
    assert {suspect for suspect in found if suspect.partition(": ")[2] not in OWN_WORDS} == set()


# Functions that make texts and rows.

_SHOWN = re.compile(r"\b(Content|Text|Option)\b")
"""Results that are shown as they are; texts are made safe by who shows them."""

_TAKES_SAFE_TEXT = {
    "chat_drafting._row",
    "chat_figures._row",
    "figure_table._padded",
    "fit_bars._cut",
    "fit_bars.coloured",
    "fit_bars.flow",
    "fit_bars.plain_indented",
    "flowing_lines.wrapped",
}
"""Steps within a widget, after its text was made safe or where it is our own."""


def name_of(function: Callable[..., object]) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}"


@cache
def row_makers() -> tuple[Callable[..., object], ...]:
    """Return the functions of the app that make texts or rows of them, and can be called with made-up values."""
    found = []
    for module in modules_of(localspec.tui):
        for function in vars(module).values():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            result = str(function.__annotations__.get("return", ""))
            if inspect.iscoroutinefunction(function) or not ("str" in result or _SHOWN.search(result)):
                continue
            if name_of(function) in _TAKES_SAFE_TEXT:
                continue
            try:
                outcome = function(**arguments_for(function, "plain"))
                if inspect.isgenerator(outcome):
                    list(outcome)
            except Exception:
                # It asks for what made-up values are not: a known name, a key, a number in words.
                continue
            found.append(function)
    return tuple(found)


def test_most_functions_can_be_called_with_made_up_values() -> None:
    names = set(map(name_of, row_makers()))
    assert len(names) > 100
    assert {
        "chat_words.welcome_text",
        "compare_card.card_content",
        "figure_table.table_lines",
        "hub_details.hub_lines",
        "models_details.details_content",
        "models_drafts.candidate_content",
        "status_line.status_parts",
    } <= names


@hostile
def test_rows_hold_nothing_that_a_terminal_obeys(text: str) -> None:
    for function in row_makers():
        outcome = function(**arguments_for(function, text))
        result = str(function.__annotations__["return"])
        made = list(outcome) if inspect.isgenerator(outcome) else outcome
        if _SHOWN.search(result):
            for part in texts_in(made):
                assert not is_dangerous(part), name_of(function)


# Widgets and dialogs.


def classes_of(package: ModuleType, kind: type[W]) -> tuple[type[W], ...]:
    return tuple(
        member
        for module in modules_of(package)
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, kind) and member.__module__ == module.__name__
    )


def own_arguments(kind: type, text: str) -> dict[str, Any]:
    """Return arguments for a class of the app; what is Textual's own is left at its default."""
    initialiser: Any = kind.__init__  # type: ignore[misc]
    if not initialiser.__module__.startswith("localspec"):
        return {}
    known = inspect.signature(initialiser).parameters
    wanted = [name for name, one in known.items() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
    made = arguments_for(initialiser, text)
    made["id"] = "made-up"
    return {name: made[name] for name in wanted if name in made and name != "classes"}


async def fill(widget: Widget, text: str) -> None:
    """Give all that a widget shows a made-up value, and call what shows more."""
    kind = type(widget)
    names = {**all_names(), **vars(sys.modules[kind.__module__])}
    for name, annotation in inspect.get_annotations(kind).items():
        head, _, rest = str(annotation).partition("[")
        if head in ("reactive", "var"):
            setattr(widget, name, made_up(eval(rest[:-1], names), text))
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and (name.startswith("show") or name in ("put", "put_words")):
            done = method(widget, **arguments_for(method, text))
            if inspect.isawaitable(done):
                await done


def check_screen(app: LocalspecApp, width: int, what: str) -> None:
    for strip in app.screen._compositor.render_strips():
        line = "".join(segment.text for segment in strip)
        assert not is_dangerous(line), what
        assert "\n" not in line, what
        assert strip.cell_length == width, what


MIXED = {
    "markup": " ".join(TEXTS[name] for name in ("closing", "path", "open", "attribute", "link")),
    "obeyed": " ".join(TEXTS[name] for name in ("escape", "control", "flipped", "surrogate")),
    "wide": " ".join(TEXTS[name] for name in ("wide", "emoji", "zero width", "lines")),
    "long": TEXTS["long"] + TEXTS["long and wide"],
    "nothing": "",
}

mixed = pytest.mark.parametrize("text", MIXED.values(), ids=MIXED.keys())


@pytest.mark.slow
@mixed
async def test_every_widget_shows_any_text(app: LocalspecApp, text: str) -> None:
    async with app.run_test(size=(60, 20)) as pilot:
        await app.push_screen(_Stage())
        for kind in classes_of(widgets, Widget):
            if issubclass(kind, ModalScreen) or kind in _PARTS:
                continue
            widget = kind(**own_arguments(kind, text))
            await app.screen.mount(widget)
            await fill(widget, text)
            await settle(pilot)
            check_screen(app, 60, kind.__name__)
            await widget.remove()


_PARTS = (ChatCode, ChatTable, ChatTail, FlowingLines)
"""Made by others, and given what is safe already."""


class _Stage(ModalScreen[None]):
    CSS = "_Stage { overflow: hidden; }"


@pytest.mark.slow
@mixed
async def test_every_dialog_shows_any_text(app: LocalspecApp, text: str) -> None:
    shown: list[str] = []
    async with app.run_test(size=(60, 20)) as pilot:
        for kind in (*classes_of(screens, ModalScreen), *classes_of(widgets, ModalScreen)):
            try:
                dialog = kind(**own_arguments(kind, text))
            except NotMadeUpError:
                continue
            await app.push_screen(dialog)
            await settle(pilot)
            check_screen(app, 60, kind.__name__)
            shown.append(kind.__name__)
            while len(app.screen_stack) > 1:
                app.pop_screen()
            await pilot.pause()
    # Others want more than values, and their own tests give them hostile text.
    assert len(shown) > 15


async def settle(pilot: Pilot[int]) -> None:
    for _ in range(3):
        await pilot.pause()


# What comes in by pasting.


@pytest.mark.slow
@mixed
async def test_nothing_dangerous_is_pasted(services: AppServices, text: str) -> None:
    app = LocalspecApp(services, Launch(screen="chat"))
    async with app.run_test(size=(60, 20)) as pilot:
        app.post_message(Paste(text))
        await settle(pilot)
        chat = app.screen
        assert isinstance(chat, ChatScreen)
        assert chat.prompt.text == printable(text)
        check_screen(app, 60, "pasted")
        app.copy_to_clipboard(text)
        await pilot.press("ctrl+v")
        await settle(pilot)
        assert not is_dangerous(chat.prompt.text)
        check_screen(app, 60, "from the clipboard")
        await pilot.press("f2", "slash")
        app.post_message(Paste(text))
        await settle(pilot)
        check_screen(app, 60, "into a filter")
