"""The screen `compare`: two arms race, one after the other, until it is known which is faster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.reactive import var
from textual.widgets import OptionList

from localspec.engine.values import SpeculationSettings
from localspec.errors import LocalspecError, UsageError
from localspec.tui.compare_choice import MAX_PAIRS, CompareChoice, arm_words, arms_of, obstacle, rival, text_words
from localspec.tui.keyed import keyed
from localspec.tui.pace import Pace, rest_of
from localspec.tui.race import LaneSnapshot, RaceSnapshot
from localspec.tui.result_card import ResultCard
from localspec.tui.screens.base import ModeScreen
from localspec.tui.screens.job import JobScreen
from localspec.tui.state import Workbench
from localspec.tui.widgets.compare_card import CompareCard
from localspec.tui.widgets.compare_history import CompareHistory
from localspec.tui.widgets.compare_lane import CompareLane
from localspec.tui.widgets.compare_plan import ComparePlan
from localspec.tui.widgets.compare_standing import CompareStanding

if TYPE_CHECKING:
    from localspec.tui.compare_run import CompareRun

_MOST_CARDS = 30


class CompareScreen(JobScreen[RaceSnapshot]):
    """Holds what was chosen, the comparison that runs and the cards of those that have ended."""

    MODE = "compare"
    CSS_PATH = "compare.tcss"
    JOB_MODULE = "localspec.tui.compare_run"
    FRAME_S = 1 / 8
    NOTHING_KNOWN = "Stopped before anything was measured."
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
    card: var[ResultCard | None] = var(None)
    """The result that is shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Take a clock that counts seconds evenly."""
        super().__init__()
        self._clock = clock
        self._cards: list[ResultCard] = []
        self._run: CompareRun | None = None
        self._pace = Pace(clock, 0.0)

    def compose_body(self) -> ComposeResult:
        """Yield choice, standing, lanes and results."""
        yield ComparePlan().data_bind(CompareScreen.choice, ModeScreen.workbench, is_racing=JobScreen.is_at_work)
        yield CompareStanding().data_bind(
            CompareScreen.race, CompareScreen.remark, JobScreen.is_stopping, is_racing=JobScreen.is_at_work
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
        if self.host.launch.replay is None:
            self.choice = replace(self.choice, max_tokens=bench.max_tokens, num_pairs=MAX_PAIRS)
        else:
            # More pairs would play the same runs again, and seem to tell more than they do.
            self.choice = replace(self.choice, max_tokens=bench.max_tokens, num_pairs=bench.pairs, percent=0.0)
        self.show_standing()
        self.query_one("#compare-run").focus()

    def watch_choice(self) -> None:
        """Show another choice."""
        self._stand()

    def watch_race(self, race: RaceSnapshot) -> None:
        """Show both lanes."""
        self.left, self.right = race.lanes

    def watch_card(self, card: ResultCard | None) -> None:
        """Make room for a result."""
        self.set_class(card is not None, "-result")

    def show_standing(self) -> None:
        """Say what can be done, and give the lanes of a race the room that they need."""
        self.set_class(self.is_at_work, "-running")
        if self.is_at_work:
            return
        if hindrance := self.hindrance():
            self.remark = hindrance
        elif self.card is None:
            self.remark = keyed("{compare.run} races A and B on these texts, one after the other.")
        else:
            self.remark = keyed(
                "{compare.run} races again, {compare.profile} keeps an arm of this result as a profile."
            )
        if self.card is None and not any(lane.num_tokens for lane in self.race.lanes):
            titles = [arm_words(arm) for arm in arms_of(self.choice, self.workbench)]
            self.left, self.right = (LaneSnapshot(title=title) for title in titles)

    def obstacle(self) -> UsageError | None:
        """Return why nothing can be compared."""
        return obstacle(self.choice, self.workbench)

    def prepare(self) -> None:
        """Empty the lanes: each run is told apart from the one before by them."""
        self.race = RaceSnapshot()

    async def carry_out(self, bench: Workbench) -> None:
        """Compare."""
        from localspec.tui.compare_run import CompareRun

        choice = self.choice
        left, right = (arm_words(arm) for arm in arms_of(choice, bench))
        title = f"{right} against {left} on {text_words(choice)}"
        self._pace.begin(await asyncio.to_thread(rest_of, bench))
        self._run = CompareRun(self.host.room, self.host.services, self._clock, self.say)
        try:
            await self._run.carry_out(choice, bench, title, self._keep_card)
        finally:
            if (shown := self._run.shown) is not None:
                self.show(shown)
            self._run = None

    def look(self) -> RaceSnapshot | None:
        """Return the race as it is now, if it is time to draw it."""
        return self._run.shown if self._run is not None and self._pace.is_due() else None

    def show(self, shown: RaceSnapshot) -> None:
        """Show it."""
        self._pace.draw()
        self.race = shown

    async def action_tune(self) -> None:
        """Go to the search for the best settings."""
        await self.host.action_tune()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done now."""
        if action == "stop":
            return self.is_at_work
        if action == "keep_profile":
            return self.card is not None and self.card.run_id is not None
        return not self.is_at_work if action in ("run", "edit_text", "edit_arm", "edit_extent", "tune") else True

    def _keep_card(self, card: ResultCard) -> None:
        if not card.arms:
            self.say(self.NOTHING_KNOWN)
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

    @work(exclusive=True, group="compare-profile", exit_on_error=False)
    async def action_keep_profile(self) -> None:
        """Ask for a name, and keep an arm of the shown result under it."""
        from localspec.tui.screens.compare_profile import CompareProfile, keep_as_profile

        card = self.card
        if card is not None and card.run_id is not None:
            dialog = CompareProfile(card.arms, card.best, is_usable=card.tone != "unusable")
            await keep_as_profile(self.host, card.run_id, dialog, card.has_kinds)
