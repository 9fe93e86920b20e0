"""What brings models onto this machine and takes them away: downloads, the demo's copies, removal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.content import Content
from textual.reactive import var

from localspec.errors import LocalspecError, UsageError
from localspec.methods import needs_draft
from localspec.session.figures import bytes_text, percent_text
from localspec.tui.download_queue import Transfer, offer_of_partial
from localspec.tui.keyed import keyed
from localspec.tui.model_choice import Chosen
from localspec.tui.model_library import Library
from localspec.tui.model_rows import ModelRow
from localspec.tui.plain import plain_line
from localspec.tui.screens.base import ModeScreen
from localspec.tui.screens.models_question import ModelsQuestion
from localspec.tui.state import ChosenModel
from localspec.tui.widgets.models_downloads import ModelsDownloads

if TYPE_CHECKING:
    from localspec.catalog.hub.partials import Partial
    from localspec.catalog.hub.values import Offer, RepoListing
    from localspec.session.demo import PreparationProgress


class ModelsStock(ModeScreen):
    """The half of the Models screen that changes what is here."""

    library: var[Library] = var(Library, init=False)
    """What is known of the models here."""
    activity: var[str] = var("", init=False)
    """What the screen is busy with besides reading; empty for nothing."""

    @property
    def current(self) -> ModelRow | None:
        """The model under the cursor."""
        raise NotImplementedError

    def look(self) -> object:
        """Read anew what is here."""
        raise NotImplementedError

    def take(self, chosen: Chosen) -> None:
        """Put a choice on the workbench, and say so."""
        self.host.workbench = chosen.applied_to(self.host.workbench)
        words = chosen.words
        if chosen.is_dear:
            words += keyed(" {app.compare} measures whether it pays.")
        self.notify(
            str(plain_line(words)),
            severity="warning" if chosen.is_doubtful else "information",
            markup=False,
        )
        self.look_at_placement()

    @work(exclusive=True, group="placement", exit_on_error=False)
    async def look_at_placement(self) -> None:
        """Warn if the chosen draft would run on a slower device than the target."""
        from localspec.session.draft_placement import slow_draft
        from localspec.session.journal import write_note
        from localspec.session.loading import reserve_bytes

        bench, loaded = self.host.workbench, self.host.engine_state.loaded
        if bench.target is None or bench.draft is None:
            return
        try:
            warning = await slow_draft(
                self.host.room.probe,
                bench.target.path,
                bench.draft.path,
                bench.context,
                bench.draft_context,
                reserve_bytes=reserve_bytes(self.host.services.settings),
                loaded=None if loaded is None else loaded.footprint,
            )
        except LocalspecError as error:
            # Loading and the Fit screen say the same louder, should it matter.
            write_note(f"No placement for {bench.draft.name}: {error.message}")
            return
        if warning and self.host.workbench == bench:
            self.notify(warning, severity="warning", timeout=10, markup=False)

    # Downloads.

    def queue(self, wanted: Sequence[tuple[RepoListing, Offer]]) -> None:
        """Add things to the downloads."""
        for listing, offer in wanted:
            if not self.host.downloads.add(listing, offer):
                text = plain_line(f"{listing.repo}:{offer.quantisation} is in the queue already.")
                self.notify(str(text), markup=False)

    def show_downloads(self) -> None:
        """Show the queue, and parts of files that nothing in the queue goes on with."""
        transfers = self.host.transfers
        queued = {(item.listing.repo, file.path) for item in transfers for file in item.offer.files}
        partials = [one for one in self.library.partials if (one.repo, one.path) not in queued]
        self.query_one(ModelsDownloads).show(transfers, partials)
        self.set_class(bool(transfers or partials), "-downloads")
        self.show_download_keys()

    def show_download_keys(self) -> None:
        """Say how many downloads are here, and how to get at them."""
        transfers = self.host.transfers
        num_done = sum(item.status == "done" for item in transfers)
        count = f"{num_done} of {len(transfers)} here; " if transfers else ""
        is_there = self.query_one(ModelsDownloads).has_focus
        keys = keyed("{downloads.pause} pauses or goes on, {downloads.cancel} cancels")
        words = f"{count}{keys if is_there else 'tab to pause or cancel'}"
        self.query_one("#downloads-panel").border_subtitle = plain_line(words)

    @on(ModelsDownloads.Asked)
    def _asked(self, message: ModelsDownloads.Asked) -> None:
        message.stop()
        item, downloads = message.item, self.host.downloads
        if message.what == "clear":
            downloads.clear_finished()
        elif not isinstance(item, Transfer):
            if message.what == "cancel":
                self.remove_partial(item)
            else:
                self.resume_partial(item)
        elif message.what == "cancel":
            self.cancel_transfer(item)
        elif item.status in ("queued", "running"):
            downloads.pause(item.key)
        elif item.status in ("paused", "failed"):
            downloads.resume(item.key)

    @work(group="transfers", exit_on_error=False)
    async def cancel_transfer(self, item: Transfer) -> None:
        """Take a download out of the queue, and ask whether what has come of it is to go."""
        if item.status == "done":
            await self.host.downloads.cancel(item.key)
            return
        self.host.downloads.pause(item.key)
        has_part = item.progress is not None and item.progress.all_done_bytes > 0
        is_removed = False
        if has_part and item.progress is not None:
            question = ModelsQuestion(
                "Cancel the download?",
                Content.assemble(
                    (str(plain_line(item.label)), "bold"),
                    f"\n{bytes_text(item.progress.all_done_bytes)} have come. They can be kept, to go on later.",
                ),
                yes="Remove them",
                no="Keep them",
            )
            is_removed = await self.app.push_screen_wait(question)
        try:
            await self.host.downloads.cancel(item.key, keeps_partial=not is_removed)
        except LocalspecError as error:
            self.host.show_failure(error)
        self.look()

    @work(group="transfers", exit_on_error=False)
    async def resume_partial(self, partial: Partial) -> None:
        """Go on with a download that was broken off earlier."""
        try:
            hub = await asyncio.to_thread(self.host.services.open_hub)
            try:
                self.queue([await offer_of_partial(hub, partial)])
            finally:
                await hub.close()
        except LocalspecError as error:
            self.host.show_failure(error)

    @work(group="transfers", exit_on_error=False)
    async def remove_partial(self, partial: Partial) -> None:
        """Remove what is left of a download."""
        from localspec.catalog.hub.partials import remove_partial

        text = f"{partial.repo} {partial.path or partial.file.name}"
        question = ModelsQuestion(
            "Remove what is left of a download?",
            Content.assemble((str(plain_line(text)), "bold"), f"\n{bytes_text(partial.have_bytes)} are here."),
            yes="Remove",
        )
        if not await self.app.push_screen_wait(question):
            return
        try:
            await asyncio.to_thread(remove_partial, partial)
        except LocalspecError as error:
            self.host.show_failure(error)
        self.look()

    # The demo.

    def action_demo(self) -> None:
        """Make the demo's copies, and choose them."""
        self.prepare_demo()

    @work(exclusive=True, group="demo", exit_on_error=False)
    async def prepare_demo(self) -> None:
        """Prepare the demo's models with progress, and choose them as target and draft."""
        from localspec.session.demo import prepare_demo_models

        def on_progress(step: PreparationProgress) -> None:
            share = f", {percent_text(step.num_done / step.num_total)}" if step.num_total else ""
            self.activity = f"making {step.title} (once){share}"

        self.activity = "preparing the demo models"
        try:
            models = await prepare_demo_models(self.host.room.probe, on_progress)
            target = await self._named(models.target)
            draft = await self._named(models.draft)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        finally:
            self.activity = ""
        self.take(Chosen(target, draft, "draft", f"Target: {target.name}. Draft: {draft.name}."))
        self.look()

    async def _named(self, path: Path) -> ChosenModel:
        """Return a new file under the name by which the library will list it."""
        from localspec.session.library import local_models

        found = await asyncio.to_thread(local_models, self.host.services.settings)
        name = next((model.name for model in found if model.path == path), path.stem)
        return ChosenModel(name, path)

    # Removal.

    def action_remove(self) -> None:
        """Ask, then remove the highlighted model."""
        if (row := self.current) is not None:
            self.remove_model(row)

    @work(exclusive=True, group="removal", exit_on_error=False)
    async def remove_model(self, row: ModelRow) -> None:
        """Remove a model, if it is localspec's to remove and the user says yes."""
        from localspec.session.removing import check_removable, remove_model

        found = row.entry.found
        try:
            check_removable(found)
            self._require_idle(row)
            question = ModelsQuestion(
                "Remove this model?",
                Content.assemble(
                    (str(plain_line(row.name)), "bold"),
                    f"\n{bytes_text(found.file_bytes)} in ",
                    plain_line(str(found.path.parent)),
                ),
                yes="Remove",
            )
            if not await self.app.push_screen_wait(question):
                return
            self._require_idle(row)
            others = [entry.found for entry in self.library.entries if entry.found != found]
            freed = await asyncio.to_thread(remove_model, found, others)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        bench = self.host.workbench
        if bench.target is not None and bench.target.path == found.path:
            bench = replace(bench, target=None)
        if bench.draft is not None and bench.draft.path == found.path:
            method = bench.speculation.method
            method = "off" if needs_draft((method,)) else method
            bench = replace(bench, draft=None, speculation=replace(bench.speculation, method=method))
        self.host.workbench = bench
        self.notify(str(plain_line(f"{row.name} is removed; {bytes_text(freed)} freed.")), markup=False)
        self.look()

    def _require_idle(self, row: ModelRow) -> None:
        loaded = self.host.engine_state.loaded
        if loaded is None:
            return
        paths = {Path(info.path) for info in (loaded.target, loaded.draft) if info is not None}
        if row.path in paths and not self.host.room.is_free:
            raise UsageError(f"{row.name} is in use.", "Stop what the engine does first.")
