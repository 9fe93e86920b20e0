"""The demo's models in the making: copies of one embedded model, made once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import ProgressBar, Static

from localspec.errors import LocalspecError
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line
from localspec.tui.state import ChosenModel

if TYPE_CHECKING:
    from localspec.session.demo import PreparationProgress
    from localspec.tui.app import LocalspecApp

Pair = tuple[ChosenModel, ChosenModel]
"""Target and draft."""


class DemoScreen(ModalScreen[Pair | None]):
    """Gives the demo's target and draft, or None if that was stopped or failed."""

    CSS_PATH = "demo.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "stop", "Stop", id="demo.stop", tooltip="Make no demo models now"),
    ]

    class Progressed(Message):
        """More of a copy is made."""

        def __init__(self, step: PreparationProgress) -> None:
            """Take how far it is."""
            super().__init__()
            self.step = step

        def can_replace(self, message: Message) -> bool:
            """Take the place of an older one."""
            return isinstance(message, DemoScreen.Progressed)

    def compose(self) -> ComposeResult:
        """Yield what is done, and how far it is."""
        panel = Vertical(id="demo", classes="panel")
        panel.border_title = "Demo"
        with panel:
            yield Static("preparing the demo models …", id="demo-step", markup=False)
            yield ProgressBar(show_eta=False, id="demo-bar")
            yield Static(
                keyed("They are made once of a small embedded model, and nothing is downloaded; {demo.stop} stops."),
                classes="muted",
                markup=False,
            )

    def on_mount(self) -> None:
        """Begin."""
        self.prepare()

    @work(exclusive=True, group="demo", exit_on_error=False)
    async def prepare(self) -> None:
        """Make the copies that are not there."""
        from localspec.session.demo import prepare_demo_models

        host = cast("LocalspecApp", self.app)
        try:
            models = await prepare_demo_models(host.room.probe, self._publish)
            names = await asyncio.to_thread(self._names, host)
        except LocalspecError as error:
            host.show_failure(error)
            self.dismiss(None)
            return
        target, draft = (ChosenModel(names.get(path, path.stem), path) for path in (models.target, models.draft))
        self.dismiss((target, draft))

    def _publish(self, step: PreparationProgress) -> None:
        self.post_message(self.Progressed(step))

    def _names(self, host: LocalspecApp) -> dict[Path, str]:
        """Return what the library calls the models that are here. Blocks."""
        from localspec.session.library import local_models

        return {model.path: model.name for model in local_models(host.services.settings)}

    @on(Progressed)
    def _show(self, message: Progressed) -> None:
        message.stop()
        step = message.step
        self.query_one("#demo-step", Static).update(plain_line(f"making {step.title} …"))
        self.query_one(ProgressBar).update(total=step.num_total or None, progress=step.num_done)

    def action_stop(self) -> None:
        """Stop; a copy that is not whole is not kept."""
        self.workers.cancel_group(self, "demo")
        self.dismiss(None)
