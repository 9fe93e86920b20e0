"""The probe of one model, over Models: what steps cost on it here, and how good drafts must be to pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.widgets import Static

from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.tui.keyed import keyed
from localspec.tui.plain import plain, plain_line
from localspec.tui.probe_state import ProbeLine, ProbeSnapshot
from localspec.tui.runs.details import Figures
from localspec.tui.screens.job import JobScreen
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.widgets.figure_table import FigureTable
from localspec.tui.widgets.line_chart import LineChart, Series

if TYPE_CHECKING:
    from localspec.tui.probe_run import ProbeRun

_MARKS = (("·", "$primary"), ("x", "$accent"), ("+", "$secondary"), ("o", "$success"))


class ProbeScreen(JobScreen[ProbeSnapshot]):
    """Begins at once: it was asked for."""

    MODE = "models"
    CSS_PATH = "probe.tcss"
    JOB_MODULE = "localspec.tui.probe_run"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Again", id="probe.run", tooltip="Measure again"),
        Binding("d", "deepen", "Deep", id="probe.deep", tooltip="Measure behind 2048 positions, too"),
        Binding("escape", "stop", "Stop", id="probe.stop", tooltip="End it, and keep what is known"),
        Binding("escape", "leave", "Back", id="probe.leave", tooltip="Back to the models"),
    ]

    snapshot: var[ProbeSnapshot] = var(ProbeSnapshot, init=False)
    """The probe."""

    def __init__(self, target: ChosenModel) -> None:
        """Take the model."""
        super().__init__()
        self._target = target
        self._run: ProbeRun | None = None
        self._is_deep = False

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
        self.query_one("#probe-body").focus()
        self.action_run()

    def _bench_of(self, bench: Workbench) -> Workbench:
        if bench.target is not None and bench.target.path == self._target.path:
            return bench
        # Another model's draft would be none of this one's.
        off = replace(bench.speculation, method="off")
        return replace(bench, target=self._target, draft=None, speculation=off)

    def watch_snapshot(self, shown: ProbeSnapshot) -> None:
        """Show it."""
        self.show_standing()
        self.set_class(bool(shown.cost), "-curves")
        self.set_class(shown.is_done, "-done")
        verdict = Content.assemble(plain(shown.verdict, "bold"), "\n", plain(shown.facts)) if shown.verdict else ""
        self.query_one("#probe-verdict", Static).update(verdict)
        self.query_one("#probe-cost", LineChart).series = _series(shown.cost)
        self.query_one("#probe-needed", LineChart).series = _series(shown.needed)
        self.query_one(FigureTable).figures = shown.table
        self.query_one("#probe-notes", Static).update(plain("\n".join(shown.notes)))

    def show_standing(self) -> None:
        """Say what goes on."""
        name = plain_line(self._target.name, "bold")
        words = keyed("{probe.run} measures again")
        if not self._is_deep:
            words += keyed(", {probe.deep} behind 2048 positions, too")
        if self.is_at_work:
            doing = "stopping …" if self.is_stopping else one_line(self.snapshot.doing)
            words = f"{percent_text(self.snapshot.fraction)}  {doing}"
        self.query_one("#probe-standing", Static).update(Content.assemble(name, "  ", words))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action == "stop":
            return self.is_at_work
        return not self.is_at_work if action in ("run", "leave", "deepen") else True

    def action_deepen(self) -> None:
        """Measure at a long context as well, now and with each time again."""
        self._is_deep = True
        self.action_run()

    def action_leave(self) -> None:
        """Go back to the models."""
        self.dismiss()

    def prepare(self) -> None:
        """Begin with an empty panel."""
        self.snapshot = ProbeSnapshot("starting")

    async def carry_out(self, bench: Workbench) -> None:
        """Probe."""
        from localspec.tui.probe_run import ProbeRun

        self._run = ProbeRun(self.host.room, self.host.services, self._is_deep)
        try:
            self.snapshot = await self._run.carry_out(self._bench_of(bench))
        finally:
            self._run = None

    def look(self) -> ProbeSnapshot | None:
        """Return the probe as it is now."""
        return None if self._run is None else self._run.shown

    def show(self, shown: ProbeSnapshot) -> None:
        """Show it."""
        self.snapshot = shown

    def clear(self) -> None:
        """Show an empty panel."""
        self.snapshot = ProbeSnapshot()


def _series(lines: Sequence[ProbeLine]) -> tuple[Series, ...]:
    return tuple(
        Series(line.name, line.points, style, mark) for line, (mark, style) in zip(lines, _MARKS, strict=False)
    )
