"""The screen of what was measured: kept runs and profiles, and all that can be done with them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Center, Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Button, Static, TabbedContent, TabPane

from localspec.errors import LocalspecError
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain_line
from localspec.tui.runs.archive import History, Stamp
from localspec.tui.runs.details import RunDetails, run_details
from localspec.tui.runs.rows import pair_speedups
from localspec.tui.screens.runs_errands import RunsErrands
from localspec.tui.screens.runs_measuring import RunsMeasuring
from localspec.tui.widgets.runs_details import RunsDetails
from localspec.tui.widgets.runs_list import RunsList
from localspec.tui.widgets.runs_profiles import RunsProfiles
from localspec.tui.widgets.runs_progress import RunsProgress

if TYPE_CHECKING:
    from localspec.store.values import RunSummary

POLL_S = 2.0
"""How often it is looked whether somebody else has kept something, while the screen is visible."""

_SETTLE_S = 0.08
"""A run is read when the cursor has rested on it for so long."""

_RUN_ACTIONS = {"mark", "compare", "rerun", "report", "export", "save", "delete"}


class HistoryRead(Message):
    """The lists have been read."""

    def __init__(self, history: History, stamp: Stamp | None) -> None:
        super().__init__()
        self.history = history
        self.stamp = stamp

    def can_replace(self, message: Message) -> bool:
        """The newest counts."""
        return isinstance(message, HistoryRead)


class DetailsRead(Message):
    """A run has been read, or could not be."""

    def __init__(self, run_id: int, details: RunDetails | None, failure: LocalspecError | None) -> None:
        super().__init__()
        self.run_id = run_id
        self.details = details
        self.failure = failure

    def can_replace(self, message: Message) -> bool:
        """The newest counts."""
        return isinstance(message, DetailsRead)


class RunsScreen(RunsErrands, RunsMeasuring):
    """History of measurements with their details, and profiles made of them."""

    MODE = "runs"
    CSS_PATH = "runs.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark", id="runs.mark", tooltip="Mark a run to compare, report or delete"),
        Binding("c", "compare", "Compare", id="runs.compare", tooltip="Two marked runs, or the marked and this one"),
        Binding("r", "rerun", "Rerun", id="runs.rerun", tooltip="Measure the same again"),
        Binding("s", "save", "Save profile", id="runs.save", tooltip="Keep its best settings under a name"),
        Binding("p", "report", "Report", id="runs.report", tooltip="Write a page with pictures"),
        Binding("o", "open_report", "Open report", id="runs.open", tooltip="Open the page in the browser"),
        Binding("x", "export", "Export", id="runs.export", tooltip="Write the run as JSON or CSV"),
        Binding("d,delete", "delete", "Delete", id="runs.delete", tooltip="Delete the run, or the marked ones"),
        Binding("v", "switch_list", "Profiles/runs", id="runs.switch", tooltip="Runs or profiles"),
        Binding("escape", "back", "Back", id="runs.back", tooltip="Stop, go back, or clear", show=False),
    ]

    def __init__(self) -> None:
        """Prepare; nothing is read before the screen is shown."""
        super().__init__()
        self._history = History()
        self._stamp: Stamp | None = None
        self._poll: Timer | None = None
        self._failure_said = ""

    def compose_body(self) -> ComposeResult:
        """Yield the two lists."""
        with TabbedContent(initial="tab-runs", id="lists"):
            with TabPane("Runs", id="tab-runs"):
                with Horizontal(id="history"):
                    yield RunsList()
                    yield RunsDetails(classes="panel")
                with Vertical(id="empty"):
                    yield Static("", id="empty-text", markup=False)
                    with Center():
                        yield Button(_compare_words(), id="to-compare", variant="primary", compact=True)
            with TabPane("Profiles", id="tab-profiles"):
                yield RunsProfiles()
        yield RunsProgress()

    def on_mount(self) -> None:
        """Look again from time to time."""
        self.query_one(RunsDetails).border_title = "Details"
        self.add_class("-empty")
        self._poll = self.set_interval(POLL_S, self._look)

    def show_keys(self) -> None:
        """Say anew what names keys."""
        self.query_one("#to-compare", Button).label = _compare_words()

    @on(events.ScreenResume)
    def _shown(self) -> None:
        if self._poll is not None:
            self._poll.resume()
        # A person sees the screen first; what is in it is read in a thread, and takes more to import.
        self.call_after_refresh(self.reload)

    @on(events.ScreenSuspend)
    def _hidden(self) -> None:
        if self._poll is not None:
            self._poll.pause()

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """The kept runs."""
        return self._history.runs

    @property
    def run_list(self) -> RunsList:
        """The table of runs."""
        return self.query_one(RunsList)

    @property
    def is_on_runs(self) -> bool:
        """Whether the runs are shown, and not the profiles."""
        return self.query_one("#lists", TabbedContent).active != "tab-profiles"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer what can be done now."""
        if action in _RUN_ACTIONS:
            return bool(self.runs) and self.is_on_runs
        if action == "open_report":
            return self.report is not None
        return True

    @work(exclusive=True, group="history", exit_on_error=False)
    async def reload(self) -> None:
        """Read the lists anew."""
        before = self.archive.stamp()
        history = await self.in_thread(self.archive.history)
        after = self.archive.stamp()
        # Reading itself may tidy the file up. Whoever wrote in between is found with the next look.
        is_same = (history.runs, history.profiles) == (self._history.runs, self._history.profiles)
        self.post_message(HistoryRead(history, after if is_same or before is None else before))

    def _look(self) -> None:
        if (stamp := self.archive.stamp()) is not None and stamp != self._stamp:
            self.reload()

    @on(HistoryRead)
    def _history_read(self, event: HistoryRead) -> None:
        history, self._stamp = event.history, event.stamp
        failure = history.failure
        if failure is not None:
            # What was read earlier stays on the screen.
            history = replace(history, runs=self._history.runs, profiles=self._history.profiles)
            if failure.message != self._failure_said:
                self.host.show_failure(failure)
        self._failure_said = "" if failure is None else failure.message
        was_empty = not self._history.runs
        self._history = history
        self.set_class(not history.runs, "-empty")
        self.query_one("#empty-text", Static).update(_empty_text(failure))
        self.run_list.runs = history.runs
        self.query_one(RunsProfiles).profiles = history.profiles
        self.refresh_bindings()
        here = self.run_list.highlighted
        if here is not None and here.state == "running":
            # Its line may be the same, and its trials more.
            self._read(here)
        if history.runs and was_empty and self.is_on_runs and self.is_current:
            self.run_list.table.focus()
        elif not history.runs and self.is_on_runs and self.is_current:
            self.query_one("#to-compare", Button).focus()

    @on(RunsList.Highlighted)
    def _highlighted(self, event: RunsList.Highlighted) -> None:
        event.stop()
        self._read(event.run)

    @work(exclusive=True, group="details", exit_on_error=False)
    async def _read(self, run: RunSummary | None) -> None:
        if run is None:
            await self.query_one(RunsDetails).show(None)
            return
        await asyncio.sleep(_SETTLE_S)
        try:
            stored = await self.in_thread(self.archive.run, run.id)
            details = await asyncio.to_thread(run_details, stored)
        except LocalspecError as error:
            self.post_message(DetailsRead(run.id, None, error))
            return
        details = replace(details, speedups=pair_speedups(self.runs, run))
        self.post_message(DetailsRead(run.id, details, None))

    @on(DetailsRead)
    async def _details_read(self, event: DetailsRead) -> None:
        self.details = event.details
        panel = self.query_one(RunsDetails)
        panel.border_title = f"Run {event.run_id}"
        if event.failure is None:
            await panel.show(event.details)
        else:
            await panel.say(f"{event.failure.message} {event.failure.hint}".strip())

    @on(RunsList.Opened)
    def _opened(self, event: RunsList.Opened) -> None:
        event.stop()
        self.add_class("-reading")
        self.query_one(RunsDetails).focus()

    @on(TabbedContent.TabActivated)
    def _list_switched(self) -> None:
        self.refresh_bindings()

    @on(Button.Pressed, "#to-compare")
    def _to_compare(self) -> None:
        self.app.switch_mode("compare")

    def action_switch_list(self) -> None:
        """Go to the other list."""
        lists = self.query_one("#lists", TabbedContent)
        lists.active = "tab-profiles" if self.is_on_runs else "tab-runs"
        if not self.is_on_runs:
            self.query_one(RunsProfiles).table.focus()
        elif self.runs:
            self.run_list.table.focus()
        else:
            self.query_one("#to-compare", Button).focus()

    def action_mark(self) -> None:
        """Mark the highlighted run, or take its mark away."""
        self.run_list.toggle_mark()

    def action_back(self) -> None:
        """Stop what goes on; else go back one step."""
        if self.stop_measuring():
            return
        if self.has_class("-reading"):
            self.remove_class("-reading")
            self.run_list.table.focus()
        elif self.is_on_runs and self.runs and not self.run_list.clear_filter():
            self.run_list.marked = ()


def _compare_words() -> Content:
    return plain_line(keyed("Go to Compare ({mode.compare})"))


def _empty_text(failure: LocalspecError | None) -> str:
    if failure is not None:
        return f"The kept runs cannot be read. {failure.message} {failure.hint}".strip()
    return "No runs are kept yet.\nCompare drafts off with drafts on: what was measured is kept here."
