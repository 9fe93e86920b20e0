"""The terminal app. It holds what all screens share; everything else is a screen's own business."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.screen import Screen

from localspec.errors import LocalspecError
from localspec.tui.download_queue import DownloadQueue, Transfers
from localspec.tui.engine_room import EngineRoom
from localspec.tui.plain import plain
from localspec.tui.services import AppServices
from localspec.tui.state import EngineState, Launch, Workbench


def _models() -> Screen[None]:
    from localspec.tui.screens.models import ModelsScreen

    return ModelsScreen()


def _fit() -> Screen[None]:
    from localspec.tui.screens.fit import FitScreen

    return FitScreen()


def _chat() -> Screen[None]:
    from localspec.tui.screens.chat import ChatScreen

    return ChatScreen()


def _compare() -> Screen[None]:
    from localspec.tui.screens.compare import CompareScreen

    return CompareScreen()


def _runs() -> Screen[None]:
    from localspec.tui.screens.runs import RunsScreen

    return RunsScreen()


class LocalspecApp(App[int]):
    """Models, fit, chat, compare, runs: one mode each, and one workbench for all."""

    TITLE = "localspec"
    CSS_PATH = "app.tcss"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {
        "models": _models,
        "fit": _fit,
        "chat": _chat,
        "compare": _compare,
        "runs": _runs,
    }
    DEFAULT_MODE = "models"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2,alt+1", "switch_mode('models')", "Models", id="mode.models", tooltip="Models here and on the Hub"),
        Binding("f3,alt+2", "switch_mode('fit')", "Fit", id="mode.fit", tooltip="Does it fit into memory?"),
        Binding("f4,alt+3", "switch_mode('chat')", "Chat", id="mode.chat", tooltip="Chat with the target"),
        Binding("f5,alt+4", "switch_mode('compare')", "Compare", id="mode.compare", tooltip="Off against on, paired"),
        Binding("f6,alt+5", "switch_mode('runs')", "Runs", id="mode.runs", tooltip="What was measured"),
        Binding("f1", "show_help_panel", "Help", id="app.help", tooltip="Keys of this screen"),
        Binding("ctrl+q", "quit", "Quit", id="app.quit", tooltip="End localspec and its engine", priority=True),
    ]

    workbench: reactive[Workbench] = reactive(Workbench)
    """The models and settings that all screens work with."""
    engine_state: reactive[EngineState] = reactive(EngineState)
    """What the engine has and does."""
    transfers: reactive[Transfers] = reactive(())
    """The downloads, whoever started them."""

    def __init__(self, services: AppServices | None = None, launch: Launch | None = None) -> None:
        """Prepare the app; no engine starts before it is needed.

        Args:
            services: makers of engine, Hub and database; None for the real ones.
            launch: how it was started.
        """
        super().__init__()
        self.services = services or AppServices()
        self.launch = launch or Launch()
        self.room = EngineRoom(self.services.make_engine, self._on_engine_state)
        self.downloads = DownloadQueue(self.services.open_hub, self._on_transfers)

    def _on_engine_state(self, state: EngineState) -> None:
        self.engine_state = state

    def _on_transfers(self, transfers: Transfers) -> None:
        self.transfers = transfers

    async def on_unmount(self) -> None:
        """Stop the downloads, however the app is left; what has come is kept."""
        await self.downloads.close()

    def show_failure(self, error: LocalspecError) -> None:
        """Say what went wrong, and what to do about it."""
        text = error.message if not error.hint else f"{error.message}\n{error.hint}"
        self.notify(str(plain(text)), severity="error", timeout=10, markup=False)

    async def action_quit(self) -> None:
        """End the engine processes, then the app."""
        await self.room.close()
        self.exit(0)


def run_app(services: AppServices | None = None, launch: Launch | None = None) -> int:
    """Run the app until it is left, and return its exit code."""
    code = LocalspecApp(services, launch).run()
    return code if isinstance(code, int) else 0
