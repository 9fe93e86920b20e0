"""Comparing two kept runs, and measuring one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on, work
from textual.content import Content
from textual.message import Message
from textual.worker import Worker

from localspec.errors import LocalspecError, UsageError
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line
from localspec.tui.runs.changes import run_changes
from localspec.tui.runs.rerunning import RerunStatus, rerun
from localspec.tui.runs.rows import run_row
from localspec.tui.screens.models_question import ModelsQuestion
from localspec.tui.screens.runs_base import RunsBase
from localspec.tui.screens.runs_changes import RunsChanges

if TYPE_CHECKING:
    from localspec.store.values import RunSummary


class RerunMoved(Message):
    """A measurement has gone on."""

    def __init__(self, status: RerunStatus | None) -> None:
        super().__init__()
        self.status = status
        """None at its end."""

    def can_replace(self, message: Message) -> bool:
        """The newest counts."""
        return isinstance(message, RerunMoved)


class RunsMeasuring(RunsBase):
    """The part of the screen that compares and measures."""

    def __init__(self) -> None:
        """Prepare; nothing is measured yet."""
        super().__init__()
        self._rerun: Worker[None] | None = None

    def pair_to_compare(self) -> tuple[int, int] | None:
        """Return the numbers of the runs to compare, the older one first; None if it is not clear which."""
        marked, here = self.run_list.marked, self.run_list.highlighted
        wanted = set(marked[-2:])
        if len(marked) == 1 and here is not None:
            wanted.add(here.id)
        if len(wanted) != 2:
            return None
        before, after = sorted(wanted)
        return before, after

    def action_compare(self) -> None:
        """Show two runs beside each other."""
        pair = self.pair_to_compare()
        if pair is None:
            self.say(keyed("Mark one run with {runs.mark}, go to another one, and press {runs.compare}."))
        else:
            self._compare(*pair)

    def action_rerun(self) -> None:
        """Measure the highlighted run again, if that is wished."""
        run = self.run_list.highlighted
        if run is None:
            return
        if self._is_measuring:
            hint = keyed("Stop it with {runs.back}, or wait.")
            self.host.show_failure(UsageError("A run is being measured again already.", hint))
        elif not self.host.room.is_free:
            busy = self.host.engine_state.busy or "something else"
            self.host.show_failure(UsageError(f"The engine is busy: {busy}.", "Stop that first, or wait."))
        else:
            from localspec.session.rerun import require_plan

            try:
                require_plan(run)
            except UsageError as error:
                self.host.show_failure(error)
                return
            self._rerun = self._measure(run)

    def stop_measuring(self) -> bool:
        """Stop the measurement, and return whether there was one."""
        if self._rerun is None or not self._is_measuring:
            return False
        self._rerun.cancel()
        return True

    @property
    def _is_measuring(self) -> bool:
        return self._rerun is not None and not self._rerun.is_finished

    @work(exclusive=True, group="compare", exit_on_error=False)
    async def _compare(self, before: int, after: int) -> None:
        try:
            runs = [await self.in_thread(self.archive.run, run_id) for run_id in (before, after)]
            changes = await self.in_thread(run_changes, *runs)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.app.push_screen(RunsChanges(changes))

    @work(exclusive=True, group="rerun", exit_on_error=False)
    async def _measure(self, run: RunSummary) -> None:
        if not await self.app.push_screen_wait(ModelsQuestion("Measure again", self._extent(run), "Measure", "Leave")):
            return
        host = self.host
        try:
            self.post_message(RerunMoved(RerunStatus(f"run {run.id} again")))
            stored = await self.in_thread(self.archive.run, run.id)
            end = await rerun(
                host.room,
                stored,
                host.services.settings,
                host.services.open_database,
                self._tell,
                lambda notice: self.say(notice, is_warning=True),
            )
        except LocalspecError as error:
            host.show_failure(error)
            return
        finally:
            self.post_message(RerunMoved(None))
            self.reload()
        if end.failure is not None:
            host.show_failure(end.failure)
        if end.run_id is not None:
            self.run_list.select(end.run_id)
            how = "Stopped early; what was complete is" if end.is_interrupted else "Measured again, and"
            self.say(f"{how} kept as run {end.run_id}.")
            self._compare(run.id, end.run_id)

    def _tell(self, status: RerunStatus) -> None:
        self.post_message(RerunMoved(status))

    @on(RerunMoved)
    def _moved(self, event: RerunMoved) -> None:
        event.stop()
        status = event.status
        if status is None:
            self.show_progress("")
        elif self._is_measuring:
            self.show_progress(status.text, status.fraction, is_stoppable=True)

    def _extent(self, run: RunSummary) -> Content:
        row, details = run_row(run), self.details
        extent = ""
        if details is not None and details.summary.id == run.id and details.num_pairs:
            extent = f"\n{details.num_pairs} pairs of {details.max_tokens} tokens for each workload."
        return Content.assemble(
            f"Run {row.id} again: ",
            plain_line(row.models),
            " on ",
            plain_line(row.workloads),
            ".",
            extent,
            "\nIt is kept as a new run, and compared with this one.",
        )
