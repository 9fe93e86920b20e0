"""The screen `compare`: two arms race, one after the other, until it is known which is faster."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import OptionList
from textual.worker import Worker

from localspec.engine.values import SpeculationSettings
from localspec.errors import LocalspecError, UsageError
from localspec.session.plain_text import one_line
from localspec.tui.compare_choice import MAX_PAIRS, CompareChoice, arm_words, arms_of, obstacle, rival, text_words
from localspec.tui.key_names import key_text
from localspec.tui.pace import Pace, rest_of
from localspec.tui.plain import plain
from localspec.tui.race import LaneSnapshot, RaceSnapshot
from localspec.tui.result_card import ResultCard
from localspec.tui.screens.base import ModeScreen, cancel_soon
from localspec.tui.state import EngineState, Workbench
from localspec.tui.widgets.compare_card import CompareCard
from localspec.tui.widgets.compare_history import CompareHistory
from localspec.tui.widgets.compare_lane import CompareLane
from localspec.tui.widgets.compare_plan import ComparePlan
from localspec.tui.widgets.compare_standing import CompareStanding

if TYPE_CHECKING:
    from localspec.tui.compare_run import CompareRun
    from localspec.tui.screens.compare_profile import ProfileWish

_FRAME_S = 1 / 8
_MOST_CARDS = 30


class RaceMoved(Message):
    """What is to be shown of the race has changed; only the newest counts."""

    def __init__(self, race: RaceSnapshot) -> None:
        """Take what is to be shown."""
        super().__init__()
        self.race = race

    def can_replace(self, message: Message) -> bool:
        """Take the place of an older one."""
        return isinstance(message, RaceMoved)


class CompareScreen(ModeScreen):
    """Holds what was chosen, the comparison that runs and the cards of those that have ended."""

    MODE = "compare"
    CSS_PATH = "compare.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "Run", id="compare.run", tooltip="Race both arms, then pairs until it is clear"),
        Binding("escape", "stop", "Stop", id="compare.stop", tooltip="Stop, and keep what was measured"),
        Binding("t", "edit_text", "Text", id="compare.text", tooltip="Workloads, or a prompt of your own"),
        Binding("a", "edit_arm('left')", "Arm A", id="compare.left", tooltip="How the left arm drafts"),
        Binding("b", "edit_arm('right')", "Arm B", id="compare.right", tooltip="How the right arm drafts"),
        Binding("e", "edit_extent", "Extent", id="compare.extent", tooltip="Tokens, pairs and how exact"),
        Binding("u", "tune", "Tune", id="compare.tune", tooltip="Search the best settings within a time"),
        Binding(
            "p", "keep_profile", "Profile", id="compare.profile", tooltip="Keep an arm of this result as a profile"
        ),
    ]

    # The screen itself draws nothing: a reactive would have it drawn anew, whole, with each change.
    choice: var[CompareChoice] = var(CompareChoice)
    """What is to be compared next."""
    race: var[RaceSnapshot] = var(RaceSnapshot)
    """The race that is under way, or that has just ended."""
    left: var[LaneSnapshot] = var(LaneSnapshot)
    """Its first lane."""
    right: var[LaneSnapshot] = var(LaneSnapshot)
    """Its second lane."""
    remark: var[str] = var("")
    """What is said while nothing runs."""
    is_racing: var[bool] = var(False)
    """Whether a comparison is under way."""
    is_stopping: var[bool] = var(False)
    """Whether it was told to stop."""
    card: var[ResultCard | None] = var(None)
    """The result that is shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock that counts seconds evenly."""
        super().__init__()
        self._clock = clock
        self._cards: list[ResultCard] = []
        self._run: CompareRun | None = None
        self._worker: Worker[None] | None = None
        self._timer: Timer | None = None
        self._pace = Pace(clock, 0.0)

    def compose_body(self) -> ComposeResult:
        """Yield choice, standing, lanes and results."""
        yield ComparePlan().data_bind(CompareScreen.choice, CompareScreen.is_racing, ModeScreen.workbench)
        yield CompareStanding().data_bind(
            CompareScreen.race, CompareScreen.remark, CompareScreen.is_racing, CompareScreen.is_stopping
        )
        with Container(id="compare-lanes"):
            yield CompareLane("A", "compare-lane-a").data_bind(lane=CompareScreen.left)
            yield CompareLane("B", "compare-lane-b").data_bind(lane=CompareScreen.right)
        with Container(id="compare-outcome"):
            yield CompareCard().data_bind(CompareScreen.card)
            yield CompareHistory()

    def on_mount(self) -> None:
        """Take the measures that the settings name, and be ready."""
        bench = self.host.services.settings.bench
        self._timer = self.set_interval(_FRAME_S, self._tick, pause=True)
        if self.host.launch.replay is None:
            self.choice = replace(self.choice, max_tokens=bench.max_tokens, num_pairs=MAX_PAIRS)
        else:
            # More pairs would play the same runs again, and seem to tell more than they do.
            self.choice = replace(self.choice, max_tokens=bench.max_tokens, num_pairs=bench.pairs, percent=0.0)
        self._show_choice()
        self.query_one("#compare-run").focus()

    def watch_choice(self) -> None:
        """Show another choice."""
        self._show_choice()

    def watch_workbench(self, bench: Workbench) -> None:
        """Show what the bench changes."""
        self._show_choice()

    def watch_engine_state(self, state: EngineState) -> None:
        """Show that the engine has become free or busy."""
        self._show_choice()

    def watch_race(self, race: RaceSnapshot) -> None:
        """Show both lanes."""
        self.left, self.right = race.lanes

    def watch_is_racing(self, is_racing: bool) -> None:
        """Give the lanes the room that they need."""
        self.set_class(is_racing, "-running")
        if self._timer is not None:
            (self._timer.resume if is_racing else self._timer.pause)()
        self.refresh_bindings()
        self._show_choice()

    def watch_card(self, card: ResultCard | None) -> None:
        """Make room for a result."""
        self.set_class(card is not None, "-result")

    def _show_choice(self) -> None:
        if self.is_racing or not self.children:
            return
        refusal = obstacle(self.choice, self.workbench)
        if refusal is not None:
            self.remark = f"{refusal.message} {refusal.hint}"
        elif self.engine_state.busy:
            self.remark = f"The engine is busy: {self.engine_state.busy}."
        elif self.card is None:
            self.remark = f"{self._key('run', 'r')} races A and B on these texts, one after the other."
        else:
            again, keep = self._key("run", "r"), self._key("profile", "p")
            self.remark = f"{again} races again, {keep} keeps an arm of this result as a profile."
        if self.card is None and not any(lane.num_tokens for lane in self.race.lanes):
            titles = [arm_words(arm) for arm in arms_of(self.choice, self.workbench)]
            self.left, self.right = (LaneSnapshot(title=title) for title in titles)

    def _key(self, name: str, usual: str) -> str:
        return key_text(self.host.key_map, f"compare.{name}", usual)

    def action_run_or_stop(self) -> None:
        """Do what the button says."""
        if self.is_racing:
            self.action_stop()
        else:
            self.action_run()

    def action_run(self) -> None:
        """Begin, or say why not."""
        if self.is_racing:
            return
        refusal = obstacle(self.choice, self.workbench)
        if refusal is None and not self.host.room.is_free:
            refusal = UsageError(f"The engine is busy: {self.engine_state.busy}.", "Stop that first, or wait.")
        if refusal is not None:
            self.host.show_failure(refusal)
            return
        self.is_stopping, self.is_racing = False, True
        self._worker = self._compare(self.choice, self.workbench)

    def action_stop(self) -> None:
        """Stop; what was measured stays."""
        if self.is_racing and not self.is_stopping and self._worker is not None:
            self.is_stopping = True
            cancel_soon(self._worker)

    async def action_tune(self) -> None:
        """Go to the search for the best settings."""
        await self.host.action_tune()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action == "stop":
            return self.is_racing
        if action == "keep_profile":
            return self.card is not None and self.card.run_id is not None
        return not self.is_racing if action in ("run", "edit_text", "edit_arm", "edit_extent", "tune") else True

    @work(exclusive=True, group="compare", exit_on_error=False)
    async def _compare(self, choice: CompareChoice, bench: Workbench) -> None:
        # Each run is told apart from the one before by its own lanes.
        self.race = RaceSnapshot()
        left, right = (arm_words(arm) for arm in arms_of(choice, bench))
        title = f"{right} against {left} on {text_words(choice)}"
        try:
            # Most of localspec: in a thread, so that the screen does not stand still for it.
            await asyncio.to_thread(importlib.import_module, "localspec.tui.compare_run")
            self._pace.begin(await asyncio.to_thread(rest_of, bench))
            from localspec.tui.compare_run import CompareRun

            self._run = CompareRun(self.host.room, self.host.services, self._clock, self._say)
            await self._run.carry_out(choice, bench, title, self._keep_card)
        except LocalspecError as error:
            self.host.show_failure(error)
        finally:
            self._show_where_it_is()
            self._run, self.is_racing, self.is_stopping = None, False, False
            self.refresh_bindings()

    def _tick(self) -> None:
        if self._pace.is_due():
            self._show_where_it_is()

    def _show_where_it_is(self) -> None:
        if self._run is not None and self._run.fold is not None:
            self.post_message(RaceMoved(self._run.fold.snapshot()))

    @on(RaceMoved)
    def _show_race(self, message: RaceMoved) -> None:
        self._pace.draw()
        self.race = message.race

    def _keep_card(self, card: ResultCard) -> None:
        if not card.arms:
            self._say("Stopped before anything was measured.")
            return
        self._cards = [card, *self._cards][:_MOST_CARDS]
        self.card = card
        self.query_one(CompareHistory).show(self._cards)
        self.call_after_refresh(self._focus_card)

    def _focus_card(self) -> None:
        """Let the arrows scroll a result that is longer than its place, unless the history is being looked through."""
        card = self.query_one(CompareCard)
        if card.max_scroll_y > 0 and not isinstance(self.focused, OptionList):
            card.focus(scroll_visible=False)

    def _say(self, text: str) -> None:
        self.notify(str(plain(text)), markup=False)

    @on(OptionList.OptionHighlighted)
    def _show_card(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        if event.option_index < len(self._cards):
            self.card = self._cards[event.option_index]
            self.refresh_bindings()

    @work(exclusive=True, group="compare-text", exit_on_error=False)
    async def action_edit_text(self) -> None:
        """Choose other texts."""
        from localspec.catalog.workloads import load_workloads
        from localspec.tui.screens.compare_text import CompareText

        try:
            workloads = await asyncio.to_thread(load_workloads)
        except LocalspecError as error:
            self.host.show_failure(error)
            return
        self.app.push_screen(CompareText(self.choice, workloads), self._take_choice)

    def action_edit_extent(self) -> None:
        """Choose how much is measured."""
        from localspec.tui.screens.compare_extent import CompareExtent

        self.app.push_screen(CompareExtent(self.choice), self._take_choice)

    def action_edit_arm(self, side: str) -> None:
        """Change how one arm drafts."""
        from localspec.tui.screens.compare_arm import CompareArm

        left, right = arms_of(self.choice, self.workbench)

        def take(settings: SpeculationSettings | None) -> None:
            if settings is None:
                return
            if side == "left":
                self.choice = replace(self.choice, left=settings)
            else:
                own = None if settings == rival(self.workbench) else settings
                self.choice = replace(self.choice, right=own)

        letter, arm = ("A", left) if side == "left" else ("B", right)
        self.app.push_screen(CompareArm(letter, arm, self.workbench), take)

    def _take_choice(self, choice: CompareChoice | None) -> None:
        if choice is not None:
            self.choice = choice

    def action_keep_profile(self) -> None:
        """Ask for a name, and keep an arm of the shown result under it."""
        from localspec.tui.screens.compare_profile import CompareProfile

        card = self.card
        if card is None or card.run_id is None:
            return
        run_id = card.run_id

        def take(wish: ProfileWish | None) -> None:
            if wish is not None:
                self._keep_profile(run_id, wish)

        self.app.push_screen(CompareProfile(card.arms, card.best, is_usable=card.tone != "unusable"), take)

    @work(group="compare-profile", exit_on_error=False)
    async def _keep_profile(self, run_id: int, wish: ProfileWish) -> None:
        from localspec.tui.compare_run import keep_profile

        try:
            await asyncio.to_thread(keep_profile, self.host.services, run_id, wish.name, wish.arm, wish.replaces)
        except LocalspecError as error:
            self.host.show_failure(error)
        else:
            self._say(f"The profile {one_line(wish.name)} is kept.")
