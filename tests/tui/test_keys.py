"""Keys: how they are written, what has one, and which the settings may give."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual._xterm_parser import XTermParser
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from localspec.settings import Settings, load_settings
from localspec.tui.app import LocalspecApp
from localspec.tui.key_choice import KeyChoice, key_rows
from localspec.tui.key_map import check_keys, keyed_actions
from localspec.tui.key_names import KeyNameError, is_typed, key_text, parse_keys
from localspec.tui.screens.chat_settings import ChatSettings
from localspec.tui.screens.help import HelpScreen
from localspec.tui.screens.keys import KeysScreen
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.services import AppServices
from localspec.tui.state import Launch
from localspec.tui.widgets.chat_prompt import ChatPrompt
from localspec.tui.widgets.key_line import KeyLine
from localspec.tui.widgets.top_bar import ScreenTab
from tests.tui.looking import notices

HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred", "\u202eflipped", "x" * 10_000)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ctrl+x, F10", ("ctrl+x", "f10")),
        ("Esc,/,?", ("escape", "slash", "question_mark")),
        ("CTRL+S", ("ctrl+s",)),
        ("shift+a", ("A",)),
        ("shift+ctrl+left", ("ctrl+shift+left",)),
        ("a,a", ("a",)),
        ("ä,¡", ("ä", "¡")),
        ("inverted_exclamation_mark", ("¡",)),
        ("plus,comma,space", ("plus", "comma", "space")),
    ],
)
def test_keys_are_written_in_several_ways(text: str, keys: tuple[str, ...]) -> None:
    assert parse_keys(text) == keys


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no key is named"),
        ("alt+f", "ctrl+right"),
        ("a,", "missing"),
        ("ctrl++", "called plus"),
        ("+", "called plus"),
        ("strg+x", "strg"),
        ("f99", "f99"),
        ("ctrl+", "no key"),
        ("\x1b", "no key"),
        *((text, "no") for text in HOSTILE),
    ],
)
def test_what_is_no_key_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(KeyNameError, match=re.escape(why)) as caught:
        parse_keys(text)
    assert len(str(caught.value)) < 200


@given(text=st.text(max_size=20))
def test_any_text_is_keys_or_refused(text: str) -> None:
    try:
        keys = parse_keys(text)
    except KeyNameError:
        return
    assert parse_keys(",".join(keys)) == keys


def test_a_text_field_takes_what_is_typed() -> None:
    assert [is_typed(key) for key in ("a", "slash", "space", "ctrl+a", "f1", "enter")] == [True] * 3 + [False] * 3


def test_every_key_of_the_app_has_a_name_of_its_own_and_words() -> None:
    actions = keyed_actions()
    assert len(actions) > 100
    counts = Counter(action.id for action in actions)
    assert {name for name, count in counts.items() if count > 1} <= {"fit.dialog.back", *_MODES}
    assert [action.id for action in actions if not action.words or not action.name] == []
    assert [action.id for action in actions if not re.fullmatch(r"[a-z_]+(\.[a-z_0-9]+)+", action.id)] == []


_MODES = {f"mode.{mode}" for mode in ("models", "fit", "chat", "compare", "runs")}


def test_no_name_is_the_beginning_of_another() -> None:
    # In TOML chat.stop without quotes is a table, which cannot be a key as well.
    names = {action.id for action in keyed_actions()}
    assert [name for name in names if any(other.startswith(f"{name}.") for other in names)] == []


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"chat.stpo": "f10"}, "'chat.stpo'"),
        ({"chat.stop": "hyperspace"}, "keys.chat.stop: there is no key"),
        ({"chat.stop": "ctrl+y"}, "both chat.stop (Stop the answer, and keep what came) and chat.copy"),
        ({"app.help": "f2"}, "mode.models"),
        ({"models.hub": "f1"}, "app.help"),
        ({"runs.filter": "c"}, "runs.compare"),
        ({"chat.copy": "y"}, "typed into a text"),
        ({"app.quit": "q"}, "typed into a text"),
        *(({name: "f10"}, "nothing called") for name in HOSTILE),
    ],
)
def test_keys_that_cannot_be_are_named(keys: Mapping[str, str], words: str) -> None:
    fit, errors = check_keys({**keys, "runs.mark": "m"})
    assert fit == {"runs.mark": "m"}
    assert len(errors) == 1
    assert words in errors[0].message
    assert len(errors[0].message) < 300
    assert errors[0].hint


@pytest.mark.parametrize(
    "keys",
    [
        {"chat.copy": "ctrl+e", "chat.edit": "ctrl+y"},
        {"chats.leave": "f10", "chat.stop": "f10"},
        {"runs.rerun": "t", "compare.run": "m"},
        {"models.stop": "escape,f10"},
        {"xray.leave": "x"},
    ],
)
def test_keys_that_can_be_are_taken(keys: Mapping[str, str]) -> None:
    assert check_keys(keys) == (keys, ())


def test_a_choice_takes_a_key_or_says_why_not() -> None:
    choice = KeyChoice(keyed_actions(), {"gone.away": "x"})
    taken, refusal = choice.given("chat.copy", "ctrl+u")
    assert refusal is None
    assert taken.changes({"gone.away": "x"}) == {"chat.copy": "ctrl+u"}
    same, refusal = taken.given("chat.edit", "ctrl+u")
    assert same is taken
    assert refusal is not None and "chat.copy" in refusal.message
    usual, _ = taken.given("chat.copy", "")
    assert usual.changes({"chat.copy": "ctrl+u"}) == {"chat.copy": None, "gone.away": "x"}
    again, _ = taken.given("chat.copy", "ctrl+y")
    assert "chat.copy" not in again.keys


def test_the_list_is_found_by_words() -> None:
    choice = KeyChoice(keyed_actions(), {"chat.copy": "ctrl+u"})
    rows = key_rows(choice, "chat COPY answer")
    assert [row.id for row in rows] == ["", "chat.copy"]
    assert rows[1].text.plain.split()[:2] == ["*", "^u"]
    for words in HOSTILE:
        assert [row.id for row in key_rows(choice, words)] == [""]
    ids = [row.id for row in key_rows(choice, "") if row.id]
    assert len(ids) == len(set(ids)) > 100


def test_a_key_is_shown_shortly() -> None:
    assert key_text({}, "mode.chat", "f4,alt+3") == "f4"
    assert key_text({"mode.chat": "ctrl+comma,x"}, "mode.chat", "f4") == "^,"
    assert key_text({"mode.chat": "alt+shift+left"}, "mode.chat", "f4") == "alt+shift+←"


# In the app.


def with_keys(services: AppServices, keys: Mapping[str, str]) -> AppServices:
    return replace(services, settings=Settings(keys=dict(keys)))


async def settled(app: LocalspecApp, pilot: Pilot[int]) -> None:
    await pilot.pause()
    await app.workers.wait_for_complete([worker for worker in app.workers if worker.group in ("keys", "save")])
    await pilot.pause()


@pytest.mark.slow
async def test_keys_of_the_settings_are_in_force_and_shown(services: AppServices) -> None:
    app = LocalspecApp(with_keys(services, {"mode.runs": "f10", "app.help": "ctrl+u", "chat.stpo": "x"}))
    async with app.run_test(size=(100, 40)) as pilot:
        await settled(app, pilot)
        assert "'chat.stpo'" in notices(app)
        await pilot.press("f6")
        assert app.current_mode == "models"
        await pilot.press("f10")
        await pilot.pause()
        assert app.current_mode == "runs"
        assert [tab.render().plain for tab in app.screen.query(ScreenTab)][-1] == "F10 Runs"  # type: ignore[union-attr]
        await pilot.press("ctrl+u")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = "\n".join(str(part.content) for part in app.screen.query(Static))
        assert re.search(r"f10 +What was measured", text)
        assert re.search(r"\^u +Keys of this screen", text)


def heard(text: str) -> list[str]:
    """Return the keys that a terminal's text is, a moment after nothing has followed it."""
    parser = XTermParser()
    keys = [event.key for event in parser.feed(text) if isinstance(event, Key)]
    time.sleep(0.15)
    return keys + [event.key for event in parser.tick() if isinstance(event, Key)]


@pytest.mark.slow
async def test_keys_with_alt_are_keys_and_write_nothing(services: AppServices) -> None:
    app = LocalspecApp(with_keys(services, {"chat.settings": "alt+s"}), Launch(screen="chat"))
    async with app.run_test(size=(100, 40)) as pilot:
        await settled(app, pilot)
        assert heard("\x1b1") == ["alt+1"]
        assert heard("\x1bs") == ["alt+s"]
        prompt = app.screen.query_one(ChatPrompt)
        for key in ("alt+x", "alt+s"):
            app.post_message(Key(key, key[-1]))
            await pilot.pause()
        assert isinstance(app.screen, ChatSettings)
        assert prompt.text == ""
        await pilot.press("escape")
        app.post_message(Key("alt+1", "1"))
        await pilot.pause()
        assert app.current_mode == "models"


@pytest.mark.slow
async def test_other_keys_stand_where_the_usual_ones_would(services: AppServices) -> None:
    lines = []
    for keys in ({}, {"chat.settings": "f11", "app.palette": "alt+p", "app.quit": "ctrl+w"}):
        app = LocalspecApp(with_keys(services, keys), Launch(screen="chat"))
        async with app.run_test(size=(140, 40)) as pilot:
            await settled(app, pilot)
            lines.append([shown.words for shown in app.screen.query_one(KeyLine).keys])
    assert lines[0] == lines[1]
    assert lines[0][0] == "Settings"
    assert lines[0][-1] == "Palette"


@pytest.mark.slow
async def test_a_key_is_pressed_and_written(services: AppServices, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('# mine\n[keys]\nmode.fit = "f11"  # by thumb\n', "utf-8")
    app = LocalspecApp(replace(services, settings=load_settings(file=file)))
    async with app.run_test(size=(60, 20)) as pilot:
        await settled(app, pilot)
        await app.push_screen(SettingsScreen(file))
        await pilot.press("ctrl+t")
        await settled(app, pilot)
        screen = app.screen
        assert isinstance(screen, KeysScreen)
        await pilot.press("slash", *"mode.chat", "enter", "enter")
        await pilot.press("f2")
        await pilot.pause()
        assert "mode.models" in str(screen.query_one("#keys-refusal", Static).content)
        await pilot.press("enter", "escape")
        await pilot.press("enter", "f10")
        await pilot.pause()
        assert "mode.models" not in str(screen.query_one("#keys-refusal", Static).content)
        await pilot.press("escape", "ctrl+s")
        await settled(app, pilot)
        assert isinstance(app.screen, SettingsScreen)
        await pilot.press("escape")
        await settled(app, pilot)
        await pilot.press("f10")
        await pilot.pause()
        assert app.current_mode == "chat"
    assert file.read_text("utf-8") == '# mine\n[keys]\nmode.fit = "f11"  # by thumb\n"mode.chat" = "f10"\n'


@pytest.mark.slow
async def test_a_usual_key_comes_back(services: AppServices, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('# mine\n[keys]\nmode.fit = "f11"  # by thumb\nmode.chat = "f10"\n', "utf-8")
    app = LocalspecApp(replace(services, settings=load_settings(file=file)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await app.push_screen(KeysScreen(file))
        await settled(app, pilot)
        await pilot.press("slash", *"mode.fit", "enter", "delete", "escape", "ctrl+s")
        await settled(app, pilot)
        assert app.key_map == {"mode.chat": "f10"}
        await pilot.press("f3")
        await pilot.pause()
        assert app.current_mode == "fit"
    assert file.read_text("utf-8") == '# mine\n[keys]\nmode.chat = "f10"\n'


@pytest.mark.slow
async def test_keys_of_the_environment_cannot_be_changed(
    services: AppServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSPEC_KEYS", '{"mode.fit": "f11"}')
    app = LocalspecApp(replace(services, settings=load_settings(file=tmp_path / "none.toml")))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(app, pilot)
        await app.push_screen(KeysScreen(tmp_path / "none.toml"))
        await settled(app, pilot)
        await pilot.press("slash", *"mode.fit", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, KeysScreen)
        assert "LOCALSPEC_KEYS" in str(app.screen.query_one("#keys-refusal", Static).content)


@pytest.mark.slow
@pytest.mark.parametrize("words", HOSTILE[:4])
async def test_any_words_can_be_looked_for(app: LocalspecApp, tmp_path: Path, words: str) -> None:
    async with app.run_test(size=(60, 20)) as pilot:
        await app.push_screen(KeysScreen(tmp_path / "[bold]" / "settings.toml"))
        await settled(app, pilot)
        app.screen.query_one("#keys-search", Input).value = words
        await pilot.pause()
        assert app.screen.query_one("#keys-list").display


@pytest.mark.slow
async def test_help_leads_to_the_keys(services: AppServices) -> None:
    app = LocalspecApp(services, Launch(screen="chat"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f1", "k")
        await settled(app, pilot)
        assert isinstance(app.screen, KeysScreen)
        await pilot.press("escape")
        await pilot.pause()
        assert app.current_mode == "chat"
        assert len(app.screen_stack) == 1
