"""The terminal app. It holds what all screens share; everything else is a screen's own business."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import constants, work
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.reactive import var
from textual.screen import Screen
from textual.timer import Timer

from localspec.errors import LocalspecError
from localspec.session.figures import GIB
from localspec.settings import Settings
from localspec.tui.bench_settings import bench_of, carried_over
from localspec.tui.configured import ConfiguredApp
from localspec.tui.download_queue import DownloadQueue, Transfers
from localspec.tui.engine_room import EngineRoom
from localspec.tui.garbage import GarbageSearch
from localspec.tui.modes import MODES, app_commands
from localspec.tui.plain import plain
from localspec.tui.services import AppServices, import_engine
from localspec.tui.state import EngineState, Launch, Workbench
from localspec.tui.terminal_check import check_terminal

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.driver import Driver
    from textual.notifications import SeverityLevel

    from localspec.catalog.found_model import FoundModel
    from localspec.tui.memory import Remembered

_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")

_LOOK_S = 1.0
"""Between two looks at whether the engine lives."""

_REMEMBER_S = 0.5
"""Choices are written when nothing has changed for so long."""


class LocalspecApp(ConfiguredApp):
    """Models, fit, chat, compare, runs: one mode each, and one workbench for all."""

    TITLE = "localspec"
    CSS_PATH = "app.tcss"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {**MODES}
    DEFAULT_MODE = "models"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {app_commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,alt+1", "switch_mode('models')", "Models", id="mode.models", tooltip="Models here and on the Hub"),
        Binding("f3,alt+2", "switch_mode('fit')", "Fit", id="mode.fit", tooltip="Does it fit into memory?"),
        Binding("f4,alt+3", "switch_mode('chat')", "Chat", id="mode.chat", tooltip="Chat with the target"),
        Binding("f5,alt+4", "switch_mode('compare')", "Compare", id="mode.compare", tooltip="Off against on, paired"),
        Binding("f6,alt+5", "switch_mode('runs')", "Runs", id="mode.runs", tooltip="What was measured"),
        Binding("f1", "help", "Help", id="app.help", tooltip="Keys of this screen"),
        Binding("f9,ctrl+comma", "settings", "Settings", id="app.settings", tooltip="Everything in settings.toml"),
        Binding(
            "ctrl+g",
            "compare_now",
            "Compare now",
            id="app.compare",
            tooltip="Measure off against on with these models and settings",
            show=False,
        ),
        Binding("f12", "unload", "Unload", id="app.unload", tooltip="Give back the models' memory", show=False),
        Binding("ctrl+q", "quit", "Quit", id="app.quit", tooltip="End localspec and its engine", priority=True),
        Binding(
            "ctrl+z",
            "suspend_process",
            "Suspend",
            id="app.suspend",
            tooltip="Stop, and give the terminal back to the shell; fg goes on",
            show=False,
        ),
        Binding(
            "ctrl+p",
            "command_palette",
            "Palette",
            id="app.palette",
            tooltip="Find anything by its name",
            priority=True,
            show=False,
        ),
    ]

    # Nothing of it is drawn by the app itself: a reactive would have everything drawn anew with each change.
    workbench: var[Workbench] = var(Workbench)
    """The models and settings that all screens work with."""
    engine_state: var[EngineState] = var(EngineState)
    """What the engine has and does."""
    transfers: var[Transfers] = var(())
    """The downloads, whoever started them."""

    def __init__(self, services: AppServices | None = None, launch: Launch | None = None) -> None:
        """Prepare the app; no engine starts before it is needed.

        Args:
            services: makers of engine, Hub and database; None for the real ones.
            launch: how it was started.
        """
        self.services = services or AppServices()
        self.launch = launch or Launch()
        remembered = self._recall()
        screen = self.launch.screen or ("" if remembered is None else remembered.screen)
        if screen in self.MODES:
            # Before Textual looks at it; on any other way the first screen would be made for nothing.
            self.DEFAULT_MODE = screen  # type: ignore[misc]
        super().__init__(self.services)
        self.room = EngineRoom(
            self.services.make_engine,
            self._on_engine_state,
            round(self.services.settings.memory.reserve_gib * GIB),
            self.services.open_learnt,
        )
        self.downloads = DownloadQueue(self.services.open_hub, self._on_transfers)
        self._remembering: Timer | None = None
        self._garbage = GarbageSearch()
        self._ending: asyncio.Task[None] | None = None
        self.is_chat_unkept: Callable[[], bool] = lambda: False
        """Says at the very end whether something of the chat is not on record."""
        self.failure: Exception | None = None
        """What it died of, if it did."""
        self.set_reactive(LocalspecApp.workbench, self._first_bench(remembered))

    def get_driver_class(self) -> type[Driver]:
        """Return what draws: Textual's own driver, or where terminals hang up, the one that hears of it."""
        if sys.platform == "win32" or constants.DRIVER:
            return super().get_driver_class()
        from localspec.tui.terminal import TerminalDriver

        return TerminalDriver

    def action_suspend_process(self) -> None:
        """Stop, with all that the shell takes for the same job, until the shell has it go on."""
        if sys.platform != "win32":
            from localspec.tui.terminal import TerminalDriver

            if isinstance(self._driver, TerminalDriver):
                self._driver.stop_process(0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done here."""
        if action == "suspend_process":
            return self._driver is not None and self._driver.can_suspend
        return super().check_action(action, parameters)

    # From one start to the next.

    def _memory_file(self) -> Path | None:
        try:
            return None if self.services.memory_file is None else self.services.memory_file()
        except LocalspecError:
            # Without a data folder the app works, and forgets.
            return None

    def _recall(self) -> Remembered | None:
        from localspec.tui.memory import read_remembered

        path = self._memory_file()
        return None if path is None else read_remembered(path)

    def _first_bench(self, remembered: Remembered | None) -> Workbench:
        if self.launch.workbench is not None:
            return self.launch.workbench
        if remembered is None:
            return bench_of(self.services.settings)
        from localspec.session.settings_file import overridden_settings
        from localspec.tui.memory import recall

        return recall(remembered, self.services.settings, overridden_settings())

    def _remember_soon(self) -> None:
        if self.services.memory_file is None or not self.is_running:
            return
        if self._remembering is not None:
            self._remembering.stop()
        self._remembering = self.set_timer(_REMEMBER_S, self._remember)

    def _remember(self) -> None:
        """Write what was chosen: a kilobyte, so that no thread is needed."""
        from localspec.tui.memory import remember, write_remembered

        path = self._memory_file()
        if path is not None:
            # Nothing is said of a failure: it would be said again at every choice.
            with suppress(LocalspecError):
                write_remembered(path, remember(self.workbench, self.services.settings, self.current_mode))

    def watch_workbench(self) -> None:
        """Remember what is chosen."""
        self._remember_soon()

    def watch_engine_state(self, before: EngineState, state: EngineState) -> None:
        """Let nothing stand still while the engine is at work."""
        if bool(before.busy) != bool(state.busy) and not self.is_headless:
            (self._garbage.rest if state.busy else self._garbage.go_on)()

    def _on_engine_state(self, state: EngineState) -> None:
        self.engine_state = state

    def _on_transfers(self, transfers: Transfers) -> None:
        self.transfers = transfers

    # Beginning and ending.

    def on_mount(self) -> None:
        """Hear of the wish to end from outside, and begin what the start asks for."""
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for name in _SIGNALS:
                if hasattr(signal, name):
                    with suppress(NotImplementedError, RuntimeError, ValueError):
                        loop.add_signal_handler(getattr(signal, name), self.end, 128 + getattr(signal, name))
        self.set_interval(_LOOK_S, self.room.look)
        if self.launch.is_demo:
            self.prepare_demo()
        elif self.launch.workbench is None and (path := self._memory_file()) is not None and not path.exists():
            self.call_after_refresh(self.action_welcome, is_first=True)

    def first_painted(self) -> None:
        """Collect garbage again once a screen stands; what the start has made stays, and is never searched for any."""
        if not gc.isenabled():
            gc.freeze()
            gc.enable()

    async def prepare_engines(self) -> None:
        """Import what engines need, without the screen standing still meanwhile."""
        await asyncio.to_thread(import_engine)

    async def on_unmount(self) -> None:
        """Stop downloads and engines, however the app is left; what has come is kept."""
        if self.services.memory_file is not None:
            self._remember()
        await asyncio.gather(self.downloads.close(), self.room.close())

    def _handle_exception(self, error: Exception) -> None:
        # A screen that was still being built when the app was left misses what has been taken down around it.
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # Textual would print the traceback over the screen; the command line has a better place for it.
        self.failure = self._exception
        self._close_messages_no_wait()

    def end(self, code: int = 0) -> None:
        """End the engine processes, then the app with an exit code; once, however often it is asked for."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(code), name="end")

    async def _end(self, code: int) -> None:
        try:
            await self.room.close()
        finally:
            self.exit(code)

    async def action_quit(self) -> None:
        """End the engine processes, then the app."""
        self.end()

    @work(exclusive=True, group="demo", exit_on_error=False)
    async def prepare_demo(self) -> None:
        """Make the demo's models, choose them, and go to the chat."""
        from localspec.tui.first_start import after_demo
        from localspec.tui.screens.demo import DemoScreen
        from localspec.tui.screens.models import ModelsScreen

        pair = await self.push_screen_wait(DemoScreen())
        if pair is None:
            return
        target, draft = pair
        speculation = replace(self.workbench.speculation, method="draft")
        self.workbench = replace(self.workbench, target=target, draft=draft, speculation=speculation)
        for screen in [screen for stack in self._screen_stacks.values() for screen in stack]:
            if isinstance(screen, ModelsScreen):
                screen.look()
        await self.switch_mode("chat")
        self.notify(after_demo(), timeout=15, markup=False)

    @work(exclusive=True, group="welcome")
    async def action_welcome(self, is_first: bool = False) -> None:
        """Show what a newcomer can begin with."""
        from localspec.tui.first_start import welcome

        await welcome(self, is_first)

    # What all screens offer.

    async def action_compare_now(self) -> None:
        """Go to the comparison, and begin it."""
        await self.switch_mode("compare")
        await self.run_action("run", self.screen)

    async def action_tune(self) -> None:
        """Go to the search for the best settings."""
        from localspec.tui.screens.tune import TuneScreen

        await self.switch_mode("compare")
        if not any(isinstance(screen, TuneScreen) for screen in self.screen_stack):
            await self.push_screen(TuneScreen())

    def take_settings(self, settings: Settings) -> None:
        """Put other settings in force, and on the workbench what has changed in them."""
        before = self.services.settings
        self.follow_settings(settings)
        self.workbench = carried_over(self.workbench, before, settings)

    def action_help(self) -> None:
        """Show the keys of this screen."""
        from localspec.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def action_settings(self) -> None:
        """Open the settings, unless they are open."""
        from localspec.tui.screens.settings import SettingsScreen

        if not isinstance(self.screen, SettingsScreen):
            self.push_screen(SettingsScreen())

    @work(exclusive=True, group="choice", exit_on_error=False)
    async def choose_target(self, found: FoundModel) -> None:
        """Take a model as the target; a draft that is no pair with it is let go."""
        from localspec.session.library import read_library
        from localspec.tui.model_choice import choose_target

        try:
            (entry,) = await read_library(self.room.probe, [found])
            chosen = await choose_target(self.room.probe, self.workbench, entry)
        except LocalspecError as error:
            self.show_failure(error)
            return
        self.workbench = chosen.applied_to(self.workbench)
        severity: SeverityLevel = "warning" if chosen.is_doubtful else "information"
        self.notify(str(plain(chosen.words)), severity=severity, markup=False)

    @work(exclusive=True, group="unload", exit_on_error=False)
    async def action_unload(self) -> None:
        """Give back what the models take of the memory."""
        if self.engine_state.loaded is None and self.room.is_free:
            self.notify("No models are loaded.", markup=False)
            return
        try:
            await self.room.unload()
        except LocalspecError as error:
            self.show_failure(error)
        else:
            self.notify("The models are unloaded.", markup=False)


def run_app(services: AppServices | None = None, launch: Launch | None = None) -> int:
    """Run the app until it is left, and return its exit code. What it died of is raised when the screen is back.

    Raises:
        UsageError: it cannot be drawn on this terminal.
    """
    check_terminal(sys.__stderr__, os.environ)
    app = LocalspecApp(services, launch)
    code = app.run()
    if app.is_chat_unkept() and sys.stderr is not None:
        print("The chat could not be kept, at least not all of it.", file=sys.stderr)
    if app.failure is not None:
        raise app.failure
    return code if isinstance(code, int) else 0
