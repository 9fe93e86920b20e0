"""What is loaded and made until the first screen is seen: as little as can be, since a person waits for it."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from localspec import entry
from localspec.errors import SettingsError
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices
from localspec.tui.state import Launch
from tests.scripted_engine import EchoEngine

ROOT = Path(__file__).parents[2]

START = """
import asyncio, os, sys
from textual._compositor import Compositor
from localspec.settings import load_settings
from localspec.tui.app import LocalspecApp
from localspec.tui.services import AppServices, memory_file
from localspec.tui.state import Launch

draw = Compositor.render_update

def first(*given, **named):
    draw(*given, **named)
    print("threads", len(app.screen.workers._workers))
    print(*sorted(sys.modules), sep="\\n", flush=True)
    os._exit(0)

Compositor.render_update = first
app = LocalspecApp(AppServices(load_settings(), memory_file=memory_file), Launch(screen=sys.argv[1]))

async def main():
    async with app.run_test(size=(120, 40)):
        pass

asyncio.run(main())
"""

NOT_YET = (
    *("click", "huggingface_hub", "jinja2", "llama_cpp", "markdown_it", "matplotlib", "numpy", "psutil"),
    *("tomlkit", "localspec.cli", "localspec.engine.client", "localspec.engine.events", "localspec.engine.requests"),
    *("localspec.engine.wire", "localspec.hardware.host", "localspec.planning", "localspec.store.database"),
    "sqlite3",
)
SCREENS = ("models", "fit", "chat", "compare", "runs")


IMPORT_ALL = """
import importlib, pkgutil, sys
from localspec.tui import screens

for found in pkgutil.iter_modules(screens.__path__, screens.__name__ + "."):
    if found.name.endswith(".runs_export"):
        continue
    importlib.import_module(found.name)
    if heavy := set(sys.argv[1:]) & set(sys.modules):
        print(found.name, *sorted(heavy))
        break
"""
HEAVY = ("huggingface_hub", "llama_cpp", "markdown_it", "numpy", "psutil", "sqlite3")
"""What takes long to import: a screen does so when it is needed, in a thread. Exports are nothing without it."""


@pytest.mark.parametrize("screen", SCREENS)
def test_the_first_screen_needs_little_and_no_other_screen(screen: str, tmp_path: Path) -> None:
    environment = {"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", START, screen]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    said, *loaded = done.stdout.splitlines()
    # Scans, imports in threads and processes start after it.
    assert said == "threads 0"
    assert f"localspec.tui.screens.{screen}" in loaded
    # Fit is about plans; everything else of it comes later.
    not_yet = [other for other in NOT_YET if (screen, other) != ("fit", "localspec.planning")]
    assert [name for name in loaded for other in not_yet if name == other or name.startswith(f"{other}.")] == []
    others = {f"localspec.tui.screens.{other}" for other in SCREENS if other != screen}
    assert not others & set(loaded)


@pytest.mark.slow
def test_no_screen_or_dialog_imports_anything_heavy_with_itself(tmp_path: Path) -> None:
    environment = {"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", IMPORT_ALL, *HEAVY]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Bare `localspec` opens the app without a command line, and failures are still told by it.


class Terminal:
    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


def be_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a fixture: pytest takes the streams again before the test itself."""
    monkeypatch.setattr(sys, "argv", ["localspec"])
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())


def test_localspec_alone_opens_the_app_and_gives_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    be_bare(monkeypatch)
    monkeypatch.setattr(entry, "open_app", lambda is_demo, replay: 7 if (is_demo, replay) == (False, None) else 1)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 7


def test_what_hinders_the_start_is_told_as_the_command_line_does(monkeypatch: pytest.MonkeyPatch) -> None:
    be_bare(monkeypatch)
    said: list[str] = []

    def fail(is_demo: bool, replay: Path | None) -> int:
        raise SettingsError("n_max is 99.", "Set it to 1 to 32.")

    monkeypatch.setattr(entry, "open_app", fail)
    monkeypatch.setattr("localspec.cli.failures.say_failure", lambda error: said.append(error.message))
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert (ended.value.code, said) == (2, ["n_max is 99."])


@pytest.mark.parametrize("variable", ["", "bash_complete"])
def test_a_word_or_a_completion_goes_to_the_command_line(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    be_bare(monkeypatch)
    assert entry._is_bare()
    if variable:
        monkeypatch.setenv("_LOCALSPEC_COMPLETE", variable)
    else:
        monkeypatch.setattr(sys, "argv", ["localspec", "doctor"])
    assert not entry._is_bare()


# The collector of garbage rests until then, and works from then on.


async def test_garbage_is_collected_from_the_first_screen_on(tmp_path: Path) -> None:
    app = LocalspecApp(AppServices(make_engine=EchoEngine), Launch(screen="compare"))
    num_before = gc.get_freeze_count()
    gc.disable()
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert gc.isenabled()
            assert gc.get_freeze_count() > num_before
    finally:
        gc.unfreeze()
        gc.enable()


async def test_the_first_layout_has_the_classes_of_its_size() -> None:
    for size, expected in (((120, 40), {"-wide", "-tall"}), ((60, 20), {"-narrow", "-short"})):
        app = LocalspecApp(AppServices(make_engine=EchoEngine), Launch(screen="compare"))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            assert {name for name in app.screen.classes if name in {"-wide", "-narrow", "-tall", "-short"}} == expected
            screen = app.screen
            # No layout is right by the classes of another size.
            await pilot.resize_terminal(90, 22)
            await pilot.pause()
            assert "-short" in screen.classes and "-tall" not in screen.classes
