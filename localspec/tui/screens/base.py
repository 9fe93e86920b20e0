"""What every screen of the app has: the bar of screens above, the status line and the keys below."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from textual.app import ComposeResult
from textual.reactive import var
from textual.screen import Screen
from textual.worker import Worker

from localspec.tui.state import EngineState, Workbench
from localspec.tui.widgets.key_line import KeyLine
from localspec.tui.widgets.status_line import StatusLine
from localspec.tui.widgets.top_bar import TopBar

if TYPE_CHECKING:
    from localspec.tui.app import LocalspecApp


def cancel_soon(worker: Worker[None]) -> None:
    """Cancel a worker that tells of its own end: after its first step, for before that none of it would run."""
    asyncio.get_running_loop().call_soon(worker.cancel)


class ModeScreen(Screen[None]):
    """A screen of one mode. Subclasses name their mode and yield their body in `compose_body`."""

    MODE = ""
    """Key in the app's modes."""

    workbench: var[Workbench] = var(Workbench)
    """The app's, followed. Replace the app's by `self.host.workbench = replace(...)`, never this one."""
    engine_state: var[EngineState] = var(EngineState)
    """The app's, followed."""

    @property
    def host(self) -> LocalspecApp:
        """The app, by its own type."""
        return cast("LocalspecApp", self.app)

    def compose(self) -> ComposeResult:
        """Yield the frame around the body."""
        self._fit()
        yield TopBar(self.MODE)
        yield from self.compose_body()
        if self.host.launch.replay is not None:
            from localspec.tui.widgets.tour_line import TourLine

            yield TourLine(self.MODE).data_bind(ModeScreen.engine_state)
        yield StatusLine().data_bind(ModeScreen.workbench, ModeScreen.engine_state)
        yield KeyLine()

    def _fit(self) -> None:
        """Take the classes of the size before there is anything to style: later all of it would be styled again."""
        for length, steps in (
            (self.app.size.width, self.HORIZONTAL_BREAKPOINTS),
            (self.app.size.height, self.VERTICAL_BREAKPOINTS),
        ):
            reached = [name for least, name in sorted(steps or ()) if length >= least]
            self.set_class(bool(reached), *reached[-1:], update=False)

    def on_mount(self) -> None:
        """Follow the app's state."""
        self.watch(self.app, "workbench", self._follow_workbench)
        self.watch(self.app, "engine_state", self._follow_engine_state)
        self.watch(self.app, "key_map", self.show_keys, init=False)
        self.call_after_refresh(self.host.first_painted)

    def _follow_workbench(self, bench: Workbench) -> None:
        self.workbench = bench

    def _follow_engine_state(self, state: EngineState) -> None:
        self.engine_state = state

    def show_keys(self) -> None:
        """Say anew what names keys (see tui/keyed.py): they are others now."""

    def compose_body(self) -> ComposeResult:
        """Yield what is between the bars."""
        yield from ()
