"""What is done with kept runs and profiles: reports, exports, saving, deleting, using."""

from __future__ import annotations

import asyncio
import importlib
from functools import partial
from typing import TYPE_CHECKING

from textual import on, work
from textual.content import Content

from localspec.errors import LocalspecError, UsageError
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line
from localspec.tui.runs.bench import bench_of
from localspec.tui.runs.files import repo_finder, write_export, write_report
from localspec.tui.runs.rows import run_row
from localspec.tui.screens.models_question import ModelsQuestion
from localspec.tui.screens.runs_base import RunsBase
from localspec.tui.screens.runs_prompt import RunsPrompt
from localspec.tui.widgets.runs_profiles import RunsProfiles

if TYPE_CHECKING:
    from localspec.store.values import RunSummary
    from localspec.tui.runs.archive import KeptProfile


class RunsErrands(RunsBase):
    """The part of the screen that writes, keeps and removes."""

    def targets(self) -> tuple[RunSummary, ...]:
        """Return the marked runs, or else the highlighted one."""
        wanted, here = self.run_list.marked, self.run_list.highlighted
        if not wanted:
            return () if here is None else (here,)
        return tuple(run for run in self.run_list.runs if run.id in wanted)

    def action_report(self) -> None:
        """Write a page of the marked runs, or of the highlighted one."""
        if runs := self.targets():
            self._write_report(runs)

    def action_open_report(self) -> None:
        """Open the page that was written last."""
        self._open_report()

    def action_export(self) -> None:
        """Write the highlighted run to a file."""
        if (run := self.run_list.highlighted) is not None:
            self._write_export(run)

    def action_save(self) -> None:
        """Keep the highlighted run's settings as a profile."""
        if (run := self.run_list.highlighted) is not None:
            self._save_profile(run)

    def action_delete(self) -> None:
        """Delete the marked runs, or the highlighted one."""
        if runs := self.targets():
            self._delete(runs)

    @on(RunsProfiles.Asked)
    def _profile_asked(self, event: RunsProfiles.Asked) -> None:
        event.stop()
        match event.what:
            case "use":
                self._use(event.profile)
            case "export":
                self._export_profile(event.profile)
            case "rename":
                self._rename(event.profile)
            case _:
                self._forget(event.profile)

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _write_report(self, runs: tuple[RunSummary, ...]) -> None:
        numbers = "-".join(str(run.id) for run in runs[:4])
        text = f"A page with tables and pictures of {_runs_phrase(runs)}, in one HTML file. Where to?"
        reply = await self.app.push_screen_wait(RunsPrompt("Report", text, f"report-run-{numbers}.html", "Write"))
        if reply is None:
            return
        self.show_progress("drawing the report …")
        try:
            stored = [await self.in_thread(self.archive.run, run.id) for run in runs]
            self.report = await asyncio.to_thread(write_report, stored, reply.text)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        finally:
            self.show_progress("")
        self.refresh_bindings()
        way = keyed("{runs.open} on the Runs screen opens it in the browser.")
        self.say(f"Written to {self.report}\n{way}")

    @work(exclusive=True, group="browser", exit_on_error=False)
    async def _open_report(self) -> None:
        import webbrowser

        if self.report is None:
            return
        if not await asyncio.to_thread(webbrowser.open, self.report.as_uri()):
            self.host.show_failure(UsageError("No browser could be opened.", f"Open {self.report} by hand."))

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _write_export(self, run: RunSummary) -> None:
        text = "A name that ends in .csv gets a table with a line for each round, any other the whole document as JSON."
        reply = await self.app.push_screen_wait(RunsPrompt(f"Export run {run.id}", text, f"run-{run.id}.json", "Write"))
        if reply is None:
            return
        try:
            stored = await self.in_thread(self.archive.run, run.id)
            path = await asyncio.to_thread(write_export, stored, reply.text)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.say(f"Written to {path}")

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _save_profile(self, run: RunSummary) -> None:
        details = self.details
        arms = details.arms if details is not None and details.summary.id == run.id else ()
        names = ("the best one", *arms)
        text = f"Models and settings of run {run.id} under a name, and which way of drafting."
        reply = await self.app.push_screen_wait(RunsPrompt("Save as profile", text, "", "Save", names))
        if reply is None:
            return
        arm = names[reply.choice] if reply.choice else ""
        save = partial(
            self.archive.save_profile, reply.text, run.id, arm, repo_of=repo_finder(self.host.services.settings)
        )
        try:
            replaces = await self.in_thread(self.archive.has_profile, reply.text)
            question = Content.assemble("There is a profile ", plain_line(reply.text), " already. Replace it?")
            if replaces and not await self._is_sure("Replace the profile", question, "Replace"):
                return
            profile = await self.in_thread(save, replaces=replaces)
        except LocalspecError as error:
            # The hint may speak of options of the command line.
            hint = "Choose which way of drafting to keep." if "--" in error.hint else error.hint
            self.host.show_failure(UsageError(error.message, hint))
            return
        self.reload()
        way = keyed("{runs.switch} on the Runs screen shows the profiles.")
        self.say(f"Saved as the profile {profile.name}; {way}")

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _delete(self, runs: tuple[RunSummary, ...]) -> None:
        lines = [plain_line(f"run {run.id}, {run_row(run).at}, {run_row(run).models}") for run in runs[:8]]
        if len(runs) > 8:
            lines.append(Content(f"and {len(runs) - 8} more"))
        question = Content("\n").join([*lines, Content("Profiles that stand on them stay.")])
        if not await self._is_sure(f"Delete {_runs_phrase(runs)}", question, "Delete"):
            return
        try:
            await self.in_thread(self.archive.delete_runs, [run.id for run in runs])
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.run_list.marked = ()
        self.reload()
        self.say(f"Deleted {_runs_phrase(runs)}.")

    def _use(self, kept: KeptProfile) -> None:
        if kept.read is None:
            self.host.show_failure(UsageError(kept.failure, "Delete it, and save it anew from a run."))
            return
        try:
            self.host.workbench = bench_of(kept.read, self.host.workbench)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        for note in kept.notes:
            self.say(note, is_warning=True)
        self.say(f"The profile {kept.name} is on the workbench: Chat and Compare use it.")

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _export_profile(self, kept: KeptProfile) -> None:
        if kept.read is None:
            self.host.show_failure(UsageError(kept.failure, "Delete it, and save it anew from a run."))
            return
        # The exporters take a while to load.
        await asyncio.to_thread(importlib.import_module, "localspec.tui.screens.runs_export")
        from localspec.tui.screens.runs_export import RunsExport

        await self.app.push_screen_wait(RunsExport(kept.read, kept.notes))

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _rename(self, kept: KeptProfile) -> None:
        reply = await self.app.push_screen_wait(RunsPrompt("Rename the profile", "Its new name:", kept.name, "Rename"))
        if reply is None:
            return
        try:
            await self.in_thread(self.archive.rename_profile, kept.name, reply.text)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.reload()

    @work(exclusive=True, group="errand", exit_on_error=False)
    async def _forget(self, kept: KeptProfile) -> None:
        question = Content.assemble("Forget ", plain_line(kept.name), "? Its models and its run stay.")
        if not await self._is_sure("Delete the profile", question, "Delete"):
            return
        try:
            await self.in_thread(self.archive.delete_profile, kept.name)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.reload()

    async def _is_sure(self, title: str, question: Content, yes: str) -> bool:
        return await self.app.push_screen_wait(ModelsQuestion(title, question, yes))


def _runs_phrase(runs: tuple[RunSummary, ...]) -> str:
    return f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs"
