"""The Tune screen, over Compare: searches the best settings for the bench's target within a time."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import Button
from textual.worker import Worker

from localspec.errors import LocalspecError, UsageError
from localspec.session.plain_text import one_line
from localspec.tui.plain import plain
from localspec.tui.screens.base import ModeScreen, cancel_soon
from localspec.tui.state import ChosenModel, EngineState, Workbench
from localspec.tui.tune_choice import TuneChoice, drafts_of, drafts_words, obstacle, texts_words
from localspec.tui.tuning_state import TuneOutcome, TuneSnapshot
from localspec.tui.widgets.tune_heat import TuneHeat
from localspec.tui.widgets.tune_result import TuneResult
from localspec.tui.widgets.tune_standing import TuneStanding
from localspec.tui.widgets.tune_ways import TuneWays

if TYPE_CHECKING:
    from localspec.tui.screens.compare_profile import ProfileWish
    from localspec.tui.tune_run import TuneRun

_FRAME_S = 0.5
"""Between two drawings: what drawing takes is missing where answers are timed."""


class TuneScreen(ModeScreen):
    """Holds what was chosen, the search that goes on, and what the last one found."""

    MODE = "compare"
    CSS_PATH = "tune.tcss"
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
    is_tuning: var[bool] = var(False)
    """Whether a search is under way."""

    class Moved(Message):
        """There is something new to show; only the newest counts."""

        def __init__(self, snapshot: TuneSnapshot) -> None:
            """Take what is to be shown."""
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Take the place of an older one."""
            return isinstance(message, TuneScreen.Moved)

    def __init__(self) -> None:
        """Prepare; nothing runs yet."""
        super().__init__()
        self._run: TuneRun | None = None
        self._worker: Worker[None] | None = None
        self._timer: Timer | None = None
        self._is_stopping = False

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
        self._timer = self.set_interval(_FRAME_S, self._tick, pause=True)
        self._show_choice()
        self.query_one("#tune-run").focus()

    def watch_choice(self) -> None:
        """Show another choice."""
        self._show_choice()

    def watch_workbench(self, bench: Workbench) -> None:
        """Show what the bench changes."""
        self._show_choice()

    def watch_engine_state(self, state: EngineState) -> None:
        """Show that the engine has become free or busy."""
        self._show_choice()

    def watch_outcome(self, outcome: TuneOutcome | None) -> None:
        """Make room for what was found."""
        self.set_class(outcome is not None, "-found")
        self.refresh_bindings()
        self._show_choice()

    def watch_is_tuning(self, is_tuning: bool) -> None:
        """Draw while something changes."""
        if self._timer is not None:
            (self._timer.resume if is_tuning else self._timer.pause)()
        self.refresh_bindings()
        self._show_choice()

    def _show_choice(self) -> None:
        if not self.children:
            return
        bench, choice = self.workbench, self.choice
        drafts = one_line(drafts_words(choice, bench))
        parts = ((" e ", "dim"), (f"{choice.budget} ", "bold"), f"for {texts_words(choice)}; {drafts} ")
        button = self.query_one("#tune-choice", Button)
        button.label = Content.assemble(*parts)
        button.disabled = self.is_tuning
        run = (" esc ", "■ Stop ") if self.is_tuning else (" r ", "▶ Run ")
        self.query_one("#tune-run", Button).label = Content.assemble((run[0], "dim"), run[1])
        self.query_one("#tune-heat").display = bool(drafts_of(choice, bench) or self.snapshot.cells)
        self.remark = self._words()

    def _words(self) -> str:
        if self.is_tuning:
            return "stopping …" if self._is_stopping else ""
        refusal = obstacle(self.choice, self.workbench)
        if refusal is not None:
            return f"{refusal.message} {refusal.hint}"
        if self.engine_state.busy:
            return f"The engine is busy: {self.engine_state.busy}."
        if self.outcome is None:
            return "r searches ways of loading and drafting, and confirms the best on other prompts."
        ways = ["w puts it on the bench"] if self.outcome.advice is not None else []
        ways += ["p keeps it as a profile"] if self._can_be_kept else []
        return f"{', '.join(ways)}, r searches anew." if ways else "r searches anew."

    @property
    def _can_be_kept(self) -> bool:
        return self.outcome is not None and bool(self.outcome.arm) and self.outcome.run_id is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action in ("run", "edit", "leave"):
            return not self.is_tuning
        if action == "stop":
            return self.is_tuning
        if action == "use":
            return not self.is_tuning and self.outcome is not None and self.outcome.advice is not None
        return not self.is_tuning and self._can_be_kept if action == "keep_profile" else True

    # The search.

    def action_run_or_stop(self) -> None:
        """Do what the button says."""
        if self.is_tuning:
            self.action_stop()
        else:
            self.action_run()

    def action_run(self) -> None:
        """Begin, or say why not."""
        if self.is_tuning:
            return
        refusal = obstacle(self.choice, self.workbench)
        if refusal is None and not self.host.room.is_free:
            refusal = UsageError(f"The engine is busy: {self.engine_state.busy}.", "Stop that first, or wait.")
        if refusal is not None:
            self.host.show_failure(refusal)
            return
        self.outcome, self._is_stopping, self.is_tuning = None, False, True
        self.query_one("#tune-body").focus()
        self._worker = self._tune(self.choice, self.workbench)

    def action_stop(self) -> None:
        """End the search; what is known stays."""
        if self.is_tuning and not self._is_stopping and self._worker is not None:
            self._is_stopping = True
            cancel_soon(self._worker)
            self._show_choice()

    def action_leave(self) -> None:
        """Go back to the comparison."""
        self.dismiss()

    @work(exclusive=True, group="tune", exit_on_error=False)
    async def _tune(self, choice: TuneChoice, bench: Workbench) -> None:
        self.snapshot = TuneSnapshot(doing="starting")
        try:
            # The optimiser and more: in a thread, so that the screen does not stand still for it.
            await asyncio.to_thread(importlib.import_module, "localspec.tui.tune_run")
            from localspec.tui.tune_run import TuneRun

            self._run = TuneRun(self.host.room, self.host.services)
            outcome = await self._run.carry_out(choice, bench)
            self.snapshot = self._run.shown
            self.outcome = outcome
        except LocalspecError as error:
            self.snapshot = TuneSnapshot()
            self.host.show_failure(error)
        except asyncio.CancelledError:
            self.snapshot = TuneSnapshot()
            self._say("Ended before anything was known.")
        finally:
            self._run, self.is_tuning, self._is_stopping = None, False, False
            self._show_choice()

    def _tick(self) -> None:
        if self._run is not None:
            self.post_message(self.Moved(self._run.shown))

    @on(Moved)
    def _show_progress(self, message: Moved) -> None:
        message.stop()
        if self.is_tuning:
            self.snapshot = message.snapshot

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
        self._say(f"{words}, from the next answer on.")

    @work(exclusive=True, group="tune-profile", exit_on_error=False)
    async def action_keep_profile(self) -> None:
        """Ask for a name, and keep what was found under it."""
        from localspec.tui.screens.compare_profile import CompareProfile

        outcome, target = self.outcome, self.workbench.target
        if outcome is None or outcome.run_id is None:
            return
        name = "tuned" if target is None else f"tuned {target.name}"
        wish = await self.app.push_screen_wait(CompareProfile((outcome.arm,), outcome.arm, name))
        if wish is not None:
            await self._keep(outcome, outcome.run_id, wish)

    async def _keep(self, outcome: TuneOutcome, run_id: int, wish: ProfileWish) -> None:
        from localspec.tui.compare_run import keep_profile

        try:
            await asyncio.to_thread(
                keep_profile, self.host.services, run_id, wish.name, wish.arm, wish.replaces, outcome.has_kinds
            )
        except LocalspecError as error:
            self.host.show_failure(error)
        else:
            self._say(f"The profile {one_line(wish.name)} is kept.")

    def _say(self, text: str) -> None:
        self.notify(str(plain(text)), markup=False)
