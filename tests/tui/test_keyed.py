"""Prose that names keys names those that are in force."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Static

import localspec.tui
from localspec.settings import Settings
from localspec.tui.app import LocalspecApp
from localspec.tui.key_map import check_keys, keyed_actions
from localspec.tui.key_names import parse_keys, spelt
from localspec.tui.keyed import USUAL, keyed, keys_of
from localspec.tui.services import AppServices
from localspec.tui.state import Launch
from localspec.tui.widgets.chat_prompt import ChatPrompt
from tests.tui.looking import notices, screen_text
from tests.tui.waiting import quiet

SOURCE = Path(localspec.tui.__file__).parent

KEYS = {
    "app.settings": "ctrl+u",
    "chat.list": "f11",
    "chat.load": "f12",
    "app.unload": "alt+u",
    "chat.send": "ctrl+x",
    "chat.new_line": "enter",
    "compare.text": "x",
    "compare.run": "m",
    "mode.compare": "alt+c",
    "mode.models": "f10",
    "models.demo": "z",
    "models.hub": "left_square_bracket",
    "runs.save": "w",
    "tune.run": "m",
}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("f4", "F4"),
        ("ctrl+k", "ctrl+k"),
        ("escape", "esc"),
        ("enter", "enter"),
        ("ctrl+shift+left", "ctrl+shift+left"),
        ("slash", "/"),
        ("D", "D"),
        ("ctrl+comma", "ctrl+,"),
    ],
)
def test_keys_are_spelt_as_one_says_them(key: str, text: str) -> None:
    assert spelt(key) == text


def test_without_an_app_keys_are_the_usual_ones() -> None:
    assert keyed("{chat.load} loads, {mode.chat} goes there.") == "ctrl+k loads, F4 goes there."
    assert keys_of("chat.new_line") == ("ctrl+j", "shift+enter", "alt+enter")
    assert keyed("nothing {here} to {x.Y}") == "nothing {here} to {x.Y}"
    with pytest.raises(KeyError):
        keyed("{chat.nothing} does nothing.")


def test_the_usual_keys_are_those_of_the_bindings() -> None:
    bound: dict[str, set[tuple[str, ...]]] = {}
    for action in keyed_actions():
        bound.setdefault(action.id, set()).add(action.keys)
    assert {name: keys for name, keys in USUAL.items() if parse_keys(keys) not in bound.get(name, ())} == {}


# No key stands in prose by itself.

_NAMED = re.compile(
    r"\b(?:ctrl|alt|shift)\+\w|\b[fF](?:[1-9]|1[0-2])\b|(?<![\w-])(?:[Ee]sc|[Ee]nter|[Dd]el|[Tt]ab)(?![\w-])"
    r"|(?<![\w'\"+./{<=-])[b-hj-zB-HJ-Z](?![\w'\"+./}>=-])"
)
_PLACES = re.compile(r"\{[a-z_]+(?:\.[a-z_]+)+\}")
_WORD = re.compile(r"[A-Za-z]{3,}")

_OWN_BUSINESS = {
    # What keys are called, and what may be one.
    "key_names.py",
    "keyed.py",
    "key_map.py",
}
_FIXED = {
    # Textual's own keys of fields, lists and dialogs, which have no name here and cannot be changed.
    "enter opens, {chats.list} leads to more keys, {chats.leave} leaves",
    "enter opens, {chats.delete} deletes, {chats.rename} renames, {chats.leave} leaves",
    "enter keeps the title, {chats.leave} leaves it as it was",
    "Enter writes the chat as Markdown, {save.leave} leaves.",
    "Enter, then the new key; {keys.reset} gives the usual one again, {keys.search} searches.",
    "Press it now. Esc leaves it as it is.",
    "Type a family and a size, such as qwen3 4b, and press Enter. Nothing is asked before that.",
    "Enter fetches both, {hub.target} only the target, {hub.back} neither.",
    "Enter fetches it, {hub.back} does not.",
    "tab to pause or cancel",
    # No keys: arms of a comparison, and a factor.
    "{compare.run} races A and B on these texts, one after the other.",
    "x on this one answer",
}


@functools.cache
def modules() -> Mapping[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


@functools.cache
def prose() -> Sequence[tuple[Path, int, str]]:
    """Return the texts that people may read, with where they are: no docstrings, style sheets and bindings."""
    return [(path, *text) for path, tree in modules().items() for text in _prose_of(tree)]


def _prose_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    left_out: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Binding":
            left_out.update(ast.walk(node))
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DEFAULT_CSS":
            left_out.add(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield node.lineno, node.value


def names_a_key(text: str) -> bool:
    """Say whether a sentence names a key itself."""
    words = _PLACES.sub("", text)
    return len(_WORD.findall(words)) >= 2 and _NAMED.search(words) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Press h to find models",
        "Choose one (F2).",
        "Esc stops it.",
        "or take ctrl+k instead",
        "; r looks again",
        "w puts it there",
    ],
)
def test_a_fixed_key_in_prose_is_found(text: str) -> None:
    assert names_a_key(text)


def test_what_is_said_names_no_key_by_itself() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path, line, text in prose()
        if path.name not in _OWN_BUSINESS and text not in _FIXED and names_a_key(text)
    ]
    assert found == []


def test_what_is_fixed_is_still_said() -> None:
    assert {text for _, _, text in prose()} >= _FIXED


def test_every_key_that_is_spoken_of_is_known() -> None:
    calls = [
        node
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "keyed"
    ]
    texts = [inner.value for call in calls for inner in ast.walk(call) if isinstance(inner, ast.Constant)]
    named = {place[1:-1] for text in texts if isinstance(text, str) for place in _PLACES.findall(text)}
    assert len(calls) > 40 and named <= USUAL.keys() <= {action.id for action in keyed_actions()}


# In the app.


@pytest.fixture(autouse=True)
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCALSPEC_DATA", "LOCALSPEC_CACHE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


def with_keys(services: AppServices, keys: Mapping[str, str], screen: str) -> LocalspecApp:
    return LocalspecApp(replace(services, settings=Settings(keys=dict(keys))), Launch(screen=screen))


def test_the_keys_of_these_tests_can_be_given() -> None:
    assert check_keys(KEYS) == (KEYS, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "said"),
    [
        ("models", ("Press [ to find models", "or z for the embedded", "settings (ctrl+u)")),
        ("fit", ("Models screen (F10, or enter)",)),
        ("chat", ("F10 chooses one, F11 goes on", "ctrl+x sends, enter begins a line")),
        ("compare", (" x Text:", "m ▶ Run", "Models screen (F10)")),
        ("runs", ("Go to Compare (alt+c)",)),
    ],
)
async def test_screens_name_the_keys_in_force_from_the_first_moment(
    services: AppServices, screen: str, said: tuple[str, ...]
) -> None:
    app = with_keys(services, KEYS, screen)
    async with app.run_test(size=(110, 40)) as pilot:
        await quiet(pilot)
        for words in said:
            assert words in screen_text(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("screen", "before", "after"),
    [
        ("models", "Press h to find models", "Press [ to find models"),
        ("fit", "Models screen (F2,", "Models screen (F10,"),
        ("chat", "F2 chooses one", "F10 chooses one"),
        ("chat", "enter sends", "ctrl+x sends"),
        ("compare", " t Text:", " x Text:"),
        ("runs", "Go to Compare (F5)", "Go to Compare (alt+c)"),
    ],
)
async def test_screens_follow_keys_that_are_changed(
    services: AppServices, screen: str, before: str, after: str
) -> None:
    app = with_keys(services, {}, screen)
    async with app.run_test(size=(110, 40)) as pilot:
        await quiet(pilot)
        assert before.lower() in screen_text(app).lower()
        app.use_keys(KEYS)
        await quiet(pilot)
        assert after in screen_text(app)


@pytest.mark.slow
async def test_a_key_that_cannot_be_is_not_named_for_long(services: AppServices) -> None:
    app = with_keys(services, {"models.hub": "g", "models.demo": "hyperspace"}, "models")
    async with app.run_test(size=(110, 40)) as pilot:
        await quiet(pilot)
        assert "Press h to find models" in screen_text(app) and "or g for the embedded" in screen_text(app)
        assert "both models.hub" in notices(app)


@pytest.mark.slow
async def test_a_question_is_sent_by_the_key_that_sends(services: AppServices) -> None:
    app = with_keys(services, KEYS, "chat")
    async with app.run_test(size=(110, 40)) as pilot:
        await quiet(pilot)
        prompt = app.screen.query_one(ChatPrompt)
        await pilot.press("a", "enter", "b")
        assert prompt.text == "a\nb"
        await pilot.press("ctrl+x")
        await pilot.pause()
        assert "No target model is chosen. Choose one on the Models screen (F10)." in notices(app)


@pytest.mark.slow
async def test_profiles_are_made_by_the_key_that_makes_them(services: AppServices) -> None:
    app = with_keys(services, KEYS, "runs")
    async with app.run_test(size=(110, 40)) as pilot:
        await quiet(pilot)
        assert "press w on a run" in str(app.screen.query_one("#no-profiles", Static).content)
        await pilot.press("v")
        await pilot.pause()
        assert "No profiles yet." in screen_text(app)
