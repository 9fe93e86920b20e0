"""What every screen shares, as pictures: settings, help, keys, commands, the demo in the making, a dead engine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from localspec.session.demo import DemoModels, PreparationProgress
from localspec.tui.first_start import Beginnings
from localspec.tui.screens.keys import KeysScreen
from localspec.tui.screens.settings import SettingsScreen
from localspec.tui.screens.welcome import WelcomeScreen
from localspec.tui.state import EngineState, Launch
from tests.replay_scenes import Look
from tests.scripted_engine import EchoEngine
from tests.tui.snapshot_kit import LARGE, SMALL, keep_still, looks, shown


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_settings(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, Launch(screen="compare")) as (app, pilot):
        await app.push_screen(SettingsScreen(Path("/home/somebody/.config/localspec/settings.toml")))
        await keep_still("settings", look, pilot)


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_welcome(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Beginnings(num_models=3, folders=("~/.cache/huggingface/hub", "/srv/gguf"))
    monkeypatch.setattr("localspec.tui.screens.welcome.look_around", lambda settings: here)
    async with shown(look, EchoEngine, tmp_path, Launch(screen="compare")) as (app, pilot):
        app.push_screen(WelcomeScreen())
        await keep_still("welcome", look, pilot, lambda: "3 found" in text_of(app))


@looks(SMALL)
async def test_the_keys(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, Launch(screen="compare")) as (app, pilot):
        screen = KeysScreen(Path("/home/somebody/.config/localspec/settings.toml"))
        await app.push_screen(screen)
        await keep_still("keys", look, pilot, lambda: screen.listed.option_count > 1)


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_help(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, Launch(screen="chat")) as (_, pilot):
        await pilot.press("f1")
        await keep_still("help", look, pilot)


@looks(SMALL, LARGE, quick=SMALL)
async def test_the_command_palette(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localspec.session.library.local_models", lambda settings: ())
    async with shown(look, EchoEngine, tmp_path, Launch(screen="compare")) as (app, pilot):
        await pilot.press("ctrl+p")
        await keep_still("palette", look, pilot, lambda: "Go to" in text_of(app))


@looks(SMALL)
async def test_the_demo_in_the_making(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare(engine: object, on_progress: object) -> DemoModels:
        assert callable(on_progress)
        on_progress(PreparationProgress("SmolLM2-135M F16", 120, 272))
        await asyncio.sleep(60)
        raise AssertionError

    monkeypatch.setattr("localspec.session.demo.prepare_demo_models", prepare)
    async with shown(look, EchoEngine, tmp_path, Launch(is_demo=True, screen="compare")) as (app, pilot):
        await keep_still("demo", look, pilot, lambda: "SmolLM2" in text_of(app))


@looks(SMALL, Look(60, 20, "light"))
async def test_an_engine_that_died(look: Look, tmp_path: Path) -> None:
    async with shown(look, EchoEngine, tmp_path, Launch(screen="chat")) as (app, pilot):
        app.engine_state = EngineState(failure="The engine was killed; the machine may be short of memory.")
        await keep_still("engine-died", look, pilot)


def text_of(app: object) -> str:
    strips = app.screen._compositor.render_strips()  # type: ignore[attr-defined]
    return "\n".join(strip.text for strip in strips)
