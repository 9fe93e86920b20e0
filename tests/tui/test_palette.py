from __future__ import annotations

from pathlib import Path

import pytest
from textual.command import CommandPalette, DiscoveryHit, Hit
from textual.content import Content
from textual.widgets import Static

from localspec.catalog.found_model import FoundModel
from localspec.tui.app import LocalspecApp
from localspec.tui.key_map import keyed_actions
from localspec.tui.palette import AppCommands
from localspec.tui.screens.compare_text import CompareText
from localspec.tui.screens.help import HelpScreen
from localspec.tui.state import ChosenModel, Workbench
from tests.candidate_kit import entry
from tests.tui.looking import notices

pytestmark = pytest.mark.slow

HOSTILE = ("[/]", "[/path]", "[bold", "[type=x, v={'a[0]'}]", "\x1b[31mred", "\u202eflipped", "x" * 10_000)


def have_models(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have these models on this machine."""
    found: tuple[FoundModel, ...] = tuple(entry(name, None).found for name in names)
    monkeypatch.setattr("localspec.session.library.local_models", lambda settings: found)


async def commands_of(app: LocalspecApp) -> AppCommands:
    commands = AppCommands(app.screen)
    await commands.startup()
    return commands


async def test_everything_that_matters_is_offered_at_once(app: LocalspecApp) -> None:
    async with app.run_test():
        hits = [hit async for hit in (await commands_of(app)).discover()]
    titles = {hit.text for hit in hits if isinstance(hit, DiscoveryHit)}
    wanted = {"Go to Compare", "Load the models", "Unload the models", "New chat", "Settings", "Theme"}
    assert wanted | {"Speculation off", "Start the comparison", "Quit localspec"} <= titles


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_name_is_found_and_stays_text(
    app: LocalspecApp, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    have_models(monkeypatch, name)
    async with app.run_test(size=(80, 24)) as pilot:
        hits = [hit async for hit in (await commands_of(app)).search("target")]
        (hit,) = [hit for hit in hits if isinstance(hit, Hit) and (hit.text or "").startswith("Target ")]
        assert isinstance(hit.match_display, Content)
        assert "\x1b" not in hit.match_display.plain
        await pilot.press("ctrl+p", *"target")
        await pilot.pause(0.2)
        assert isinstance(app.screen, CommandPalette)


async def test_typing_and_enter_carry_out_a_command(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+p", *"go to runs")
        await pilot.pause(0.3)
        await pilot.press("enter")
        await pilot.pause(0.3)
        assert app.current_mode == "runs"


async def test_everything_with_a_key_is_found_with_it(app: LocalspecApp) -> None:
    reached: set[str] = set()
    async with app.run_test():
        commands = await commands_of(app)
        for command in commands._commands():
            hits = [hit async for hit in commands.search(command.title) if isinstance(hit, Hit)]
            (hit,) = [hit for hit in hits if hit.text == command.title]
            if command.id:
                reached.add(command.id)
                assert isinstance(hit.match_display, Content)
                assert hit.match_display.plain.removeprefix(command.title).strip()
    # These have to be opened first.
    opened = ("hub.", "tune.", "probe.")
    wanted = {action.id for action in keyed_actions() if not action.is_in_dialog and not action.id.startswith(opened)}
    assert wanted - reached == {"app.palette", "fit.up", "fit.down"}


async def test_keys_of_the_settings_stand_beside_the_commands(app: LocalspecApp) -> None:
    async with app.run_test():
        app.key_map = {"chat.copy": "ctrl+u"}
        hits = [hit async for hit in (await commands_of(app)).search("copy the last answer") if isinstance(hit, Hit)]
        assert any(str(hit.match_display) == "Chat: copy the last answer  ^u" for hit in hits)


async def test_an_action_of_another_screen_is_carried_out_there(app: LocalspecApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        await run(app, "Compare: workloads, or a prompt of your own")
        await pilot.pause(0.2)
        assert app.current_mode == "compare"
        assert isinstance(app.screen, CompareText)
        await pilot.press("escape")
        await run(app, "Fit: to the next knob")
        await pilot.pause()
        assert app.current_mode == "fit"


async def test_what_is_not_possible_is_said(app: LocalspecApp) -> None:
    async with app.run_test() as pilot:
        await run(app, "Compare: keep an arm of this result as a profile")
        await pilot.pause()
        assert "not possible now" in notices(app)


async def test_the_screens_own_actions_are_offered_at_once(app: LocalspecApp) -> None:
    async with app.run_test() as pilot:
        await pilot.press("f5")
        hits = [hit async for hit in (await commands_of(app)).discover() if isinstance(hit, DiscoveryHit)]
        titles = {hit.text for hit in hits}
        assert "Compare: how the left arm drafts" in titles
        assert "Chat: copy the last answer" not in titles


async def run(app: LocalspecApp, title: str) -> None:
    hits = [hit async for hit in (await commands_of(app)).search(title)]
    result = next(hit for hit in hits if isinstance(hit, Hit) and hit.text == title).command()
    if hasattr(result, "__await__"):
        await result


async def test_a_method_is_chosen(app: LocalspecApp) -> None:
    async with app.run_test():
        await run(app, "Draft with n-grams")
        methods = [app.workbench.speculation.method]
        for title in ("Speculation off", "Draft with the draft model"):
            await run(app, title)
            methods.append(app.workbench.speculation.method)
        assert methods == ["ngram", "off", "off"]


async def test_loading_goes_to_the_chat_and_loads(app: LocalspecApp, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    async with app.run_test() as pilot:
        app.workbench = Workbench(target=ChosenModel("model", tmp_path / "model.gguf"))
        await run(app, "Load the models")
        for _ in range(100):
            if app.engine_state.loaded is not None:
                break
            await pilot.pause(0.05)
        assert app.current_mode == "chat"
        assert app.engine_state.loaded is not None


async def test_a_comparison_without_models_says_what_is_missing(app: LocalspecApp) -> None:
    async with app.run_test() as pilot:
        await run(app, "Start the comparison")
        await pilot.pause()
        assert app.current_mode == "compare"
        assert "No target model" in notices(app)


async def test_help_is_made_of_the_bindings(app: LocalspecApp) -> None:
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("f4", "f1")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, HelpScreen)
        text = "\n".join(str(part.content) for part in screen.query(Static))
        assert "Answer again, with another seed" in text
        assert "End localspec and its engine" in text
        await pilot.press("f1")
        await pilot.pause()
        assert app.current_mode == "chat"
        assert not isinstance(app.screen, HelpScreen)
