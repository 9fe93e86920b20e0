"""What goes with the highlighted model: its details, what may draft for it, and the choice of both."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on, work
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import DataTable

from localspec.errors import LocalspecError
from localspec.tui.model_choice import Choice, choose_candidate, choose_draft, choose_target
from localspec.tui.model_library import Drafts, find_drafts
from localspec.tui.model_rows import ModelRow
from localspec.tui.screens.models_stock import ModelsStock
from localspec.tui.widgets.models_details import ModelsDetails
from localspec.tui.widgets.models_drafts import ModelsDrafts
from localspec.tui.widgets.models_table import ModelsTable

if TYPE_CHECKING:
    from localspec.session.library import ModelEntry

_SETTLED_S = 0.25
"""A model is looked into when the cursor has rested on it so long."""


class ModelsPairing(ModelsStock):
    """The part of the Models screen that is about one model and its drafts."""

    drafts: var[Drafts] = var(Drafts, init=False)
    """What may draft for the highlighted model."""

    class DraftsFound(Message):
        """More is known of what may draft."""

        def __init__(self, drafts: Drafts) -> None:
            """Take what is known."""
            super().__init__()
            self.drafts = drafts

        def can_replace(self, message: Message) -> bool:
            """A later state makes an earlier one worthless."""
            return isinstance(message, ModelsPairing.DraftsFound)

    def __init__(self) -> None:
        """Prepare the screen; nothing is looked at before it is shown."""
        super().__init__()
        self._settling: Timer | None = None

    @property
    def table(self) -> ModelsTable:
        """The table of models."""
        return self.query_one(ModelsTable)

    @property
    def current(self) -> ModelRow | None:
        """The model under the cursor."""
        return self.table.current

    # The highlighted model.

    @on(DataTable.RowHighlighted, "#table")
    def _highlighted(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self.show_current()

    def show_current(self) -> None:
        """Show the model under the cursor, and look for its drafts once the cursor rests."""
        row = self.current
        self.query_one(ModelsDetails).row = row
        name = "" if row is None else row.name
        if name != self.drafts.target:
            self.workers.cancel_group(self, "drafts")
            self.drafts = Drafts(name)
        self.settle()

    def settle(self) -> None:
        """Look for drafts once the cursor rests."""
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(_SETTLED_S, self._look_for_drafts)

    def _look_for_drafts(self) -> None:
        row = self.current
        if row is not None and not self.library.activity and not self.drafts.candidates:
            self.find_drafts(row.entry, is_on_hub=False)

    @work(exclusive=True, group="drafts", exit_on_error=False)
    async def find_drafts(self, entry: ModelEntry, is_on_hub: bool) -> None:
        """Look for what may draft for a model, on the Hub only if that is wished."""

        def publish(drafts: Drafts) -> None:
            self.post_message(self.DraftsFound(drafts))

        probe = self.host.room.probe
        if not is_on_hub:
            publish(await find_drafts(probe, entry, self.library, publish))
            return
        try:
            publish(replace(self.drafts, activity="asking the Hub"))
            hub = await asyncio.to_thread(self.host.services.open_hub)
        except LocalspecError as error:
            publish(replace(self.drafts, activity=""))
            self.host.show_failure(error)
            return
        try:
            publish(await find_drafts(probe, entry, self.library, publish, hub))
        finally:
            await hub.close()

    @on(DraftsFound)
    def _take_drafts(self, message: DraftsFound) -> None:
        message.stop()
        row = self.current
        if row is not None and row.name == message.drafts.target:
            self.drafts = message.drafts

    def action_search_drafts(self) -> None:
        """Search the Hub for drafts of the highlighted model."""
        if (row := self.current) is not None:
            self.set_class(True, "-drafts")
            self.find_drafts(row.entry, is_on_hub=True)

    # Choosing.

    @on(ModelsTable.Chosen)
    def action_choose_target(self) -> None:
        """Take the highlighted model as the target."""
        if (row := self.current) is not None:
            self.choose(choose_target(self.host.room.probe, self.host.workbench, row.entry))

    def action_choose_draft(self, is_forced: bool = False) -> None:
        """Take the highlighted model as the draft, if the two are a pair or somebody insists."""
        if (row := self.current) is not None:
            self.choose(choose_draft(self.host.room.probe, self.host.workbench, row.entry, is_forced))

    @on(ModelsDrafts.Taken)
    def _take_candidate(self, message: ModelsDrafts.Taken) -> None:
        message.stop()
        row, candidate = self.current, message.candidate
        if row is None:
            return
        if candidate.download is not None and not candidate.refusal:
            self.queue([candidate.download])
            return
        try:
            self.take(choose_candidate(self.host.workbench, row.entry, candidate, self.library))
        except LocalspecError as error:
            self.host.show_failure(error)

    @work(exclusive=True, group="choice", exit_on_error=False)
    async def choose(self, choice: Choice) -> None:
        """Carry out a choice that first asks the engine."""
        try:
            self.take(await choice)
        except LocalspecError as error:
            self.host.show_failure(error)
