from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.widgets import Input, Select, Static

from localspec.errors import LocalspecError, SettingsError
from localspec.session.figures import bytes_text, speed_text
from localspec.session.settings_file import change_settings, overridden_settings
from localspec.settings import Settings, load_settings
from localspec.tui.app import LocalspecApp
from localspec.tui.configured import theme_in_force
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.services import AppServices
from localspec.tui.settings_fields import setting_changes, setting_fields, setting_texts
from localspec.tui.settings_words import TITLES, WORDS
from localspec.units import Units, use_units
from tests.tui.looking import notices

pytestmark = pytest.mark.slow

WRITTEN = """# mine
[context]   # long texts
n_ctx = 2048

[draft]
# as measured
n_max = 6
"""


@pytest.fixture(autouse=True)
def usual_units() -> Iterator[None]:
    yield
    use_units(Units())


def test_every_setting_has_a_title_and_words() -> None:
    fields = list(setting_fields())
    assert {field.key for field in fields} == set(WORDS)
    assert {field.key[0] for field in fields} == set(TITLES)


def test_words_fit_beside_their_fields_in_80_columns() -> None:
    wide = {("app", "theme"): 29, ("models", "folders"): 29}
    assert not [words for key, words in WORDS.items() if len(words) > wide.get(key, 37)]


def test_unchanged_texts_are_no_changes() -> None:
    texts = setting_texts(Settings())
    assert setting_changes(texts, texts) == {}


def test_changed_texts_have_the_types_of_their_settings() -> None:
    texts = setting_texts(Settings())
    new = {
        ("draft", "n_max"): "8",
        ("sampling", "temperature"): "0.5",
        ("context", "flash_attn"): "off",
        ("models", "folders"): "/a:/b",
        ("draft", "type_k"): "q8_0",
        ("bench", "pairs"): "many",
        ("memory", "reserve_gib"): "",
    }
    assert setting_changes(texts, new) == {
        ("draft", "n_max"): 8,
        ("sampling", "temperature"): 0.5,
        ("context", "flash_attn"): False,
        ("models", "folders"): ["/a", "/b"],
        ("draft", "type_k"): "q8_0",
        ("bench", "pairs"): "many",
        ("memory", "reserve_gib"): None,
    }


def test_writing_keeps_comments_and_order(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(WRITTEN)
    settings = change_settings(file, {("draft", "n_max"): 5, ("bench", "pairs"): 7})
    assert file.read_text() == WRITTEN.replace("n_max = 6", "n_max = 5") + "\n[bench]\npairs = 7\n"
    assert (settings.draft.n_max, settings.bench.pairs, settings.context.n_ctx) == (5, 7, 2048)


def test_a_setting_that_is_taken_out_has_its_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(WRITTEN)
    assert change_settings(file, {("draft", "n_max"): None}).draft.n_max == Settings().draft.n_max
    assert "n_max" not in file.read_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({("draft", "n_max"): 99}, "n_max is 99"),
        ({("draft", "n_max"): "many"}, "draft.n_max"),
        ({("context", "type_v"): "q8_0", ("context", "flash_attn"): False}, "flash_attn off"),
        ({("models", "folders"): ["here"]}, "whole path"),
    ],
)
def test_what_is_refused_leaves_the_file(tmp_path: Path, changes: dict[tuple[str, str], object], words: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(WRITTEN)
    with pytest.raises(SettingsError) as caught:
        change_settings(file, changes)  # type: ignore[arg-type]
    assert words in caught.value.message
    assert ".part" not in caught.value.message
    assert file.read_text() == WRITTEN
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_is_no_toml_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(b"[draft\n")
    with pytest.raises(LocalspecError, match="not valid TOML"):
        change_settings(file, {("draft", "n_max"): 5})
    assert file.read_bytes() == b"[draft\n"


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text(WRITTEN)
    (tmp_path / "settings.toml").symlink_to(tmp_path / "real.toml")
    change_settings(tmp_path / "settings.toml", {("draft", "n_max"): 5})
    assert (tmp_path / "settings.toml").is_symlink()
    assert "n_max = 5" in (tmp_path / "real.toml").read_text()


def test_keys_are_written_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('[keys]  # mine\nchat.stop = "f10"\n"chat.copy" = "f11"\n')
    change_settings(file, {("keys", "chat.stop"): "f12", ("keys", "chat.copy"): None, ("keys", "app.help"): "f8"})
    assert file.read_text() == '[keys]  # mine\nchat.stop = "f12"\n"app.help" = "f8"\n'
    change_settings(file, {("keys", "chat.stop"): None})
    assert load_settings(file=file).keys == {"app.help": "f8"}


def test_the_environment_is_above() -> None:
    keys = {"LOCALSPEC_KEYS": '{"chat.stop": "f10"}'}
    assert overridden_settings(keys) == {("keys", "chat.stop"): "LOCALSPEC_KEYS"}
    assert overridden_settings({"LOCALSPEC_KEYS": "nonsense"}) == {}
    assert overridden_settings({"localspec_draft__n_max": "5", "OTHER": "1"}) == {
        ("draft", "n_max"): "localspec_draft__n_max"
    }


async def test_a_value_is_written_and_put_on_the_bench(app: LocalspecApp, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(SettingsScreen(file))
        app.screen.query_one("#draft-n_max", Input).value = "7"
        app.screen.query_one("#context-flash_attn", Select).value = "off"
        await pilot.press("ctrl+s")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert not isinstance(app.screen, SettingsScreen)
        assert app.services.settings.draft.n_max == 7
        assert app.workbench.speculation.n_max == 7
        assert app.workbench.context.flash_attn is False
    assert file.read_text() == "[draft]\nn_max = 7\n\n[context]\nflash_attn = false\n"


async def test_a_wrong_value_is_refused_in_words(app: LocalspecApp, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    async with app.run_test(size=(60, 20)) as pilot:
        await app.push_screen(SettingsScreen(file))
        app.screen.query_one("#draft-n_max", Input).value = "[/]"
        await pilot.press("ctrl+s")
        await app.screen.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, SettingsScreen)
        assert "[/]" in str(app.screen.query_one("#settings-refusal", Static).content)
        await pilot.press("escape", "escape")
        await pilot.pause()
        assert not isinstance(app.screen, SettingsScreen)
    assert not file.exists()


async def test_what_the_environment_says_cannot_be_edited(
    app: LocalspecApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSPEC_DRAFT__N_MAX", "3")
    async with app.run_test(size=(80, 24)):
        await app.push_screen(SettingsScreen(tmp_path / "settings.toml"))
        assert app.screen.query_one("#draft-n_max", Input).disabled
        assert ("draft", "n_max") not in app.screen.written()  # type: ignore[attr-defined]


async def test_a_theme_shows_at_once_and_is_kept_when_saved(app: LocalspecApp, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(SettingsScreen(file))
        app.screen.query_one("#app-theme", Select).value = "textual-light"
        await pilot.pause()
        assert app.theme == "textual-light"
        await pilot.press("escape")
        await pilot.pause()
        assert "is not saved" in str(app.screen.query_one("#settings-refusal", Static).content)
        await pilot.press("escape")
        await pilot.pause()
        assert app.theme == "textual-dark"
        await app.push_screen(SettingsScreen(file))
        app.screen.query_one("#app-theme", Select).value = "nord"
        await pilot.press("ctrl+s")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert (app.theme, app.services.settings.app.theme) == ("nord", "nord")
    assert file.read_text() == '[app]\ntheme = "nord"\n'


async def test_settings_open_once(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f9", "f9")
        await pilot.pause()
        assert [type(screen) for screen in app.screen_stack].count(SettingsScreen) == 1


async def test_units_change_what_is_shown_at_once(app: LocalspecApp, tmp_path: Path) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(SettingsScreen(tmp_path / "settings.toml"))
        app.screen.query_one("#units-memory", Select).value = "GB"
        app.screen.query_one("#units-speed", Select).value = "ms/token"
        await pilot.press("ctrl+s")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert (bytes_text(1_500_000_000), speed_text(100.0)) == ("1.5 GB", "10.0 ms/token")


async def test_a_theme_from_the_palette_is_kept(
    services: AppServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALSPEC_CONFIG", str(tmp_path))
    (tmp_path / "app.json").write_text("{}")
    (tmp_path / "settings.toml").write_text('# mine\n[app]\ntheme = "gruvbox"  # warm\n')
    app = LocalspecApp(replace(services, settings=load_settings(), memory_file=lambda: tmp_path / "app.json"))
    async with app.run_test() as pilot:
        assert app.theme == "gruvbox"
        app.theme = "nord"
        await pilot.pause()
        await app.workers.wait_for_complete()
        assert app.services.settings.app.theme == "nord"
        monkeypatch.setenv("LOCALSPEC_APP__THEME", "dracula")
        app.theme = "monokai"
        await pilot.pause()
        await app.workers.wait_for_complete()
        assert app.theme == "monokai"
        assert "LOCALSPEC_APP__THEME" in notices(app)
    assert (tmp_path / "settings.toml").read_text() == '# mine\n[app]\ntheme = "nord"  # warm\n'


@pytest.mark.parametrize("name", ["[/]", "[type=x, v={'a[0]'}]", "\x1b[31mred", "x" * 100])
async def test_a_theme_that_does_not_exist_is_said(services: AppServices, tmp_path: Path, name: str) -> None:
    app = LocalspecApp(replace(services, settings=Settings.model_validate({"app": {"theme": name}})))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert app.theme == "textual-dark"
        assert "there is no theme" in notices(app)
        await app.push_screen(SettingsScreen(tmp_path / "settings.toml"))
        assert app.screen.query_one("#app-theme", Select).value == "auto"


@pytest.mark.parametrize(
    ("colours", "theme"),
    [
        (None, "textual-dark"),
        ("", "textual-dark"),
        ("15;0", "textual-dark"),
        ("0;15", "textual-light"),
        ("0;default;7", "textual-light"),
        ("0;default", "textual-dark"),
    ],
)
def test_auto_is_as_the_terminal_says(colours: str | None, theme: str) -> None:
    environ = {} if colours is None else {"COLORFGBG": colours}
    assert theme_in_force("auto", {"textual-dark", "textual-light", "nord"}, environ) == theme
    assert theme_in_force("nord", {"textual-dark", "textual-light", "nord"}, environ) == "nord"
