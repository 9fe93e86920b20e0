"""The Tune screen, over Compare: searches the best settings for the bench's target within a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.reactive import var
from textual.widgets import Button

from localspec.errors import LocalspecError, UsageError
from localspec.session.plain_text import one_line
from localspec.tui.keyed import keyed
from localspec.tui.own_texts import texts_words
from localspec.tui.screens.job import JobScreen
from localspec.tui.state import ChosenModel, Workbench
from localspec.tui.tune_choice import TuneChoice, drafts_of, drafts_words, obstacle
from localspec.tui.tuning_state import TuneOutcome, TuneSnapshot
from localspec.tui.widgets.tune_heat import TuneHeat
from localspec.tui.widgets.tune_result import TuneResult
from localspec.tui.widgets.tune_standing import TuneStanding
from localspec.tui.widgets.tune_ways import TuneWays

if TYPE_CHECKING:
    from localspec.tui.tune_run import TuneRun


class TuneScreen(JobScreen[TuneSnapshot]):
    """Holds what was chosen, the search that goes on, and what the last one found."""

    MODE = "compare"
    CSS_PATH = "tune.tcss"
    JOB_MODULE = "localspec.tui.tune_run"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run", id="tune.run", tooltip="Search the best settings within the time"),
        Binding("escape", "stop", "Stop", id="tune.stop", tooltip="End the search, and keep what is known"),
        Binding("escape", "leave", "Back", id="tune.leave", tooltip="Back to the comparison"),
        Binding("e", "edit", "Change", id="tune.edit", tooltip="Texts, draft models and time"),
        Binding("w", "use", "Use it", id="tune.use", tooltip="Put what was found best on the bench"),
        Binding("p", "keep_profile", "Profile", id="tune.profile", tooltip="Keep what was found best as a profile"),
    ]

    choice: var[TuneChoice] = var(TuneChoice)
    """What is tuned next."""
    snapshot: var[TuneSnapshot] = var(TuneSnapshot)
    """The search that goes on, or went on last."""
    remark: var[str] = var("")
    """What is said while none goes on."""
    outcome: var[TuneOutcome | None] = var(None)
    """What the last one found."""

    def __init__(self) -> None:
        """Prepare; nothing runs yet."""
        super().__init__()
        self._run: TuneRun | None = None

    def compose_body(self) -> ComposeResult:
        """Yield choice, standing, and what is known."""
        with Horizontal(id="tune-plan"):
            yield Button("", id="tune-choice", compact=True, action="screen.edit")
            yield Button("", id="tune-run", compact=True, variant="primary", action="screen.run_or_stop")
        yield TuneStanding().data_bind(TuneScreen.snapshot, TuneScreen.remark)
        with VerticalScroll(id="tune-body"):
            with Container(id="tune-result", classes="panel") as result:
                result.border_title = "Found"
                yield TuneResult().data_bind(TuneScreen.outcome)
            with Container(id="tune-known"):
                with Container(id="tune-heat", classes="panel") as heat:
                    heat.border_title = "Draft model: n_max across, p_min down"
                    yield TuneHeat().data_bind(TuneScreen.snapshot)
                with Container(id="tune-ways", classes="panel") as ways:
                    ways.border_title = "Ways of drafting, the best first"
                    yield TuneWays().data_bind(TuneScreen.snapshot)

    def on_mount(self) -> None:
        """Be ready."""
        self.show_standing()
        self.query_one("#tune-run").focus()

    def watch_choice(self) -> None:
        """Show another choice."""
        self._stand()

    def watch_outcome(self, outcome: TuneOutcome | None) -> None:
        """Make room for what was found."""
        self.set_class(outcome is not None, "-found")
        self.refresh_bindings()
        self._stand()

    def show_standing(self) -> None:
        """Say what is chosen, what goes on and what can be done."""
        bench, choice = self.workbench, self.choice
        drafts = one_line(drafts_words(choice, bench))
        parts = (
            (keyed(" {tune.edit} "), "dim"),
            (f"{choice.budget} ", "bold"),
            f"for {texts_words(choice.workloads, choice.is_own)}; {drafts} ",
        )
        button = self.query_one("#tune-choice", Button)
        button.label = Content.assemble(*parts)
        button.disabled = self.is_at_work
        run = (" {tune.stop} ", "■ Stop ") if self.is_at_work else (" {tune.run} ", "▶ Run ")
        self.query_one("#tune-run", Button).label = Content.assemble((keyed(run[0]), "dim"), run[1])
        self.query_one("#tune-heat").display = bool(drafts_of(choice, bench) or self.snapshot.cells)
        self.remark = self._words()

    def _words(self) -> str:
        if self.is_at_work:
            return "stopping …" if self.is_stopping else ""
        if hindrance := self.hindrance():
            return hindrance
        if self.outcome is None:
            return keyed("{tune.run} searches ways of loading and drafting, and confirms the best on other prompts.")
        ways = ["{tune.use} puts it on the bench"] if self.outcome.advice is not None else []
        ways += ["{tune.profile} keeps it as a profile"] if self._can_be_kept else []
        return keyed(", ".join([*ways, "{tune.run} searches anew."]))

    @property
    def _can_be_kept(self) -> bool:
        return self.outcome is not None and bool(self.outcome.arm) and self.outcome.run_id is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action in ("run", "edit", "leave"):
            return not self.is_at_work
        if action == "stop":
            return self.is_at_work
        if action == "use":
            return not self.is_at_work and self.outcome is not None and self.outcome.advice is not None
        return not self.is_at_work and self._can_be_kept if action == "keep_profile" else True

    # The search.

    def obstacle(self) -> UsageError | None:
        """Return why nothing can be searched."""
        return obstacle(self.choice, self.workbench)

    def prepare(self) -> None:
        """Let the last result go, and be ready to scroll."""
        self.outcome, self.snapshot = None, TuneSnapshot(doing="starting")
        self.query_one("#tune-body").focus()

    async def carry_out(self, bench: Workbench) -> None:
        """Search."""
        from localspec.tui.tune_run import TuneRun

        self._run = TuneRun(self.host.room, self.host.services)
        try:
            outcome = await self._run.carry_out(self.choice, bench)
            self.snapshot = self._run.shown
        finally:
            self._run = None
        self.outcome = outcome

    def look(self) -> TuneSnapshot | None:
        """Return the search as it is now."""
        return None if self._run is None else self._run.shown

    def show(self, shown: TuneSnapshot) -> None:
        """Show it."""
        self.snapshot = shown

    def clear(self) -> None:
        """Show no search."""
        self.snapshot = TuneSnapshot()

    def action_leave(self) -> None:
        """Go back to the comparison."""
        self.dismiss()

    # What is chosen before, and done afterwards.

    @work(exclusive=True, group="tune-choice", exit_on_error=False)
    async def action_edit(self) -> None:
        """Choose other texts, drafts or times."""
        from localspec.catalog.workloads import load_workloads
        from localspec.tui.screens.tune_wish import TuneWish

        try:
            workloads = await asyncio.to_thread(load_workloads)
            drafts = await self._possible_drafts()
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        chosen = drafts_of(self.choice, self.workbench)
        choice = await self.app.push_screen_wait(TuneWish(self.choice, workloads, drafts, chosen))
        if choice is not None:
            self.choice = choice

    async def _possible_drafts(self) -> tuple[ChosenModel, ...]:
        """Return what is chosen, and the other models here that are a pair with the target."""
        from localspec.session.header_questions import ask_verdicts
        from localspec.session.library import local_models

        bench = self.workbench
        known = {draft.path: draft for draft in drafts_of(self.choice, bench)}
        if bench.draft is not None:
            known.setdefault(bench.draft.path, bench.draft)
        if bench.target is None:
            return tuple(known.values())
        found = await asyncio.to_thread(local_models, self.host.services.settings)
        size = next((model.file_bytes for model in found if model.path == bench.target.path), 0)
        # A draft as large as its target gains nothing.
        others = {
            model.path: ChosenModel(model.name, model.path)
            for model in found
            if model.path not in known and model.path != bench.target.path and model.file_bytes < (size or 1 << 62)
        }
        verdicts = await ask_verdicts(self.host.room.probe, bench.target.path, list(others))
        for path, verdict in verdicts.items():
            if not isinstance(verdict, LocalspecError) and verdict.status in ("PAIR", "PAIR_WITH_NOTE"):
                known[path] = others[path]
        return tuple(known.values())

    def action_use(self) -> None:
        """Put what was found on the bench; models stay those of the bench of now if they have changed since."""
        if self.outcome is None or self.outcome.advice is None:
            return
        advice = self.outcome.advice
        self.host.workbench = advice
        method = advice.speculation.method
        words = "Drafts are off" if method == "off" else f"The bench drafts by {method}"
        self.say(f"{words}, from the next answer on.")

    @work(exclusive=True, group="tune-profile", exit_on_error=False)
    async def action_keep_profile(self) -> None:
        """Ask for a name, and keep what was found under it."""
        from localspec.tui.screens.compare_profile import CompareProfile, keep_as_profile

        outcome, target = self.outcome, self.workbench.target
        if outcome is None or outcome.run_id is None:
            return
        name = "tuned" if target is None else f"tuned {target.name}"
        dialog = CompareProfile((outcome.arm,), outcome.arm, name)
        await keep_as_profile(self.host, outcome.run_id, dialog, outcome.has_kinds)
