"""The probe of one model, over Models: what steps cost on it here, and how good drafts must be to pay."""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import Worker

from localspec.errors import LocalspecError
from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.tui.plain import plain, plain_line
from localspec.tui.probe_state import ProbeSnapshot
from localspec.tui.runs.details import Figures
from localspec.tui.screens.base import ModeScreen, cancel_soon
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.line_chart import LineChart, Series

if TYPE_CHECKING:
    from localspec.tui.probe_run import ProbeRun

_FRAME_S = 0.5
_MARKS = (("·", "$primary"), ("x", "$accent"))


class ProbeScreen(ModeScreen):
    """Begins at once: it was asked for."""

    MODE = "models"
    CSS_PATH = "probe.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Again", id="probe.run", tooltip="Measure again"),
        Binding("escape", "stop", "Stop", id="probe.stop", tooltip="End it, and keep what is known"),
        Binding("escape", "leave", "Back", id="probe.leave", tooltip="Back to the models"),
    ]

    snapshot: var[ProbeSnapshot] = var(ProbeSnapshot, init=False)
    """The probe."""
    is_probing: var[bool] = var(False, init=False)
    """Whether it is under way."""

    class Moved(Message):
        """There is something new to show; only the newest counts."""

        def __init__(self, snapshot: ProbeSnapshot) -> None:
            """Take what is to be shown."""
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Take the place of an older one."""
            return isinstance(message, ProbeScreen.Moved)

    def __init__(self, target: ChosenModel) -> None:
        """Take the model."""
        super().__init__()
        self._target = target
        self._run: ProbeRun | None = None
        self._worker: Worker[None] | None = None
        self._timer: Timer | None = None
        self._is_stopping = False

    def compose_body(self) -> ComposeResult:
        """Yield progress, verdict, curves and table."""
        yield Static("", id="probe-standing", markup=False)
        with VerticalScroll(id="probe-body"):
            yield Static("", id="probe-verdict", markup=False)
            with Container(id="probe-curves"):
                with Vertical(classes="panel") as cost:
                    cost.border_title = "Cost of a step, by its tokens"
                    yield LineChart(id="probe-cost")
                with Vertical(classes="panel") as needed:
                    needed.border_title = "Acceptance that pays, by drafted tokens"
                    yield LineChart(id="probe-needed")
            with Vertical(id="probe-table", classes="panel") as table:
                table.border_title = "Acceptance that pays, by the cost of a drafted token"
                yield FigureTable(Figures((), ()))
            yield Static("", id="probe-notes", classes="muted", markup=False)

    def on_mount(self) -> None:
        """Begin."""
        cost, needed = self.query_one("#probe-cost", LineChart), self.query_one("#probe-needed", LineChart)
        cost.y_label, cost.baseline, cost.baseline_label, cost.x_label = "in steps of one token", 1.0, "flat", "tokens"
        needed.x_label = "tokens"
        self._timer = self.set_interval(_FRAME_S, self._tick, pause=True)
        self.query_one("#probe-body").focus()
        self.action_run()

    def _bench(self) -> Workbench:
        bench = self.host.workbench
        if bench.target is not None and bench.target.path == self._target.path:
            return bench
        # Another model's draft would be none of this one's.
        off = replace(bench.speculation, method="off")
        return replace(bench, target=self._target, draft=None, speculation=off)

    def watch_snapshot(self, shown: ProbeSnapshot) -> None:
        """Show it."""
        self._show_standing()
        self.set_class(bool(shown.cost), "-curves")
        self.set_class(shown.is_done, "-done")
        verdict = Content.assemble(plain(shown.verdict, "bold"), "\n", plain(shown.facts)) if shown.verdict else ""
        self.query_one("#probe-verdict", Static).update(verdict)
        self.query_one("#probe-cost", LineChart).series = (Series("this target", shown.cost, "$primary"),)
        self.query_one("#probe-needed", LineChart).series = tuple(
            Series(line.name, line.points, style, mark)
            for line, (mark, style) in zip(shown.needed, _MARKS, strict=False)
        )
        self.query_one(FigureTable).figures = shown.table
        self.query_one("#probe-notes", Static).update(plain("\n".join(shown.notes)))

    def watch_is_probing(self, is_probing: bool) -> None:
        """Draw while something changes."""
        if self._timer is not None:
            (self._timer.resume if is_probing else self._timer.pause)()
        self.refresh_bindings()
        self._show_standing()

    def _show_standing(self) -> None:
        name = plain_line(self._target.name, "bold")
        words = "r measures again"
        if self.is_probing:
            doing = "stopping …" if self._is_stopping else one_line(self.snapshot.doing)
            words = f"{percent_text(self.snapshot.fraction)}  {doing}"
        self.query_one("#probe-standing", Static).update(Content.assemble(name, "  ", words))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action == "stop":
            return self.is_probing
        return not self.is_probing if action in ("run", "leave") else True

    def action_run(self) -> None:
        """Begin."""
        if not self.is_probing:
            self._is_stopping, self.is_probing = False, True
            self._worker = self._probe(self._bench())

    def action_stop(self) -> None:
        """End it; what is known stays."""
        if self.is_probing and not self._is_stopping and self._worker is not None:
            self._is_stopping = True
            cancel_soon(self._worker)
            self._show_standing()

    def action_leave(self) -> None:
        """Go back to the models."""
        self.dismiss()

    @work(exclusive=True, group="probe", exit_on_error=False)
    async def _probe(self, bench: Workbench) -> None:
        self.snapshot = ProbeSnapshot("starting")
        try:
            await asyncio.to_thread(importlib.import_module, "localspec.tui.probe_run")
            from localspec.tui.probe_run import ProbeRun

            self._run = ProbeRun(self.host.room, self.host.services)
            self.snapshot = await self._run.carry_out(bench)
        except LocalspecError as error:
            self.snapshot = ProbeSnapshot()
            self.host.show_failure(error)
        except asyncio.CancelledError:
            self.snapshot = ProbeSnapshot()
            self.notify("Ended before anything was known.", markup=False)
        finally:
            self._run, self.is_probing, self._is_stopping = None, False, False
            self._show_standing()

    def _tick(self) -> None:
        if self._run is not None:
            self.post_message(self.Moved(self._run.shown))

    @on(Moved)
    def _show_progress(self, message: Moved) -> None:
        message.stop()
        if self.is_probing:
            self.snapshot = message.snapshot
