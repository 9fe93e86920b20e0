"""The screen `fit`: does it fit into memory, and what could be given up?"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.events import ScreenResume
from textual.message import Message
from textual.reactive import var
from textual.widgets import OptionList, Static
from textual.worker import Worker, WorkerState

from localspec.errors import LocalspecError
from localspec.session.loading import reserve_bytes
from localspec.session.plain_text import one_line
from localspec.tui.fit_knobs import FitKnobs, applied, knobs_of
from localspec.tui.fit_words import use_text, verdict_text
from localspec.tui.keyed import keyed
from localspec.tui.plain import MUTED, plain, plain_line
from localspec.tui.screens.base import ModeScreen
from localspec.tui.widgets.fit_bars import FitBars
from localspec.tui.widgets.fit_context import FitContext
from localspec.tui.widgets.fit_offers import MAX_KEYS, FitOffers
from localspec.tui.widgets.fit_panel import FitPanel

if TYPE_CHECKING:
    from localspec.tui.fit_planner import FitAnswer, FitPlanner
    from localspec.tui.state import ChosenModel, EngineState, Workbench

DEBOUNCE_S = 0.08
"""Turns of the knobs that follow one another as fast as this are one."""

SEARCH_AFTER_S = 0.3
"""How long the knobs have to rest before drafts are looked for."""

MAX_PAST = 100

_WIDTHS = [(0, "-slim"), (76, "-medium")]
_HEIGHTS = [(0, "-short"), (32, "-tall")]

_EMPTY = (
    "No model is chosen yet.\n\n"
    "Choose a target on the Models screen ({mode.models}, or {fit.models});\n"
    "here you then see whether it fits into memory."
)
_BEING_MEASURED = "This is not measured yet: wait for the plan."


def _no_offers(answer: FitAnswer | None) -> str:
    if answer is None or not answer.is_complete:
        return "Looking for what could be given up \N{HORIZONTAL ELLIPSIS}"
    return "Nothing has to be given up." if answer.plan.fits else "Nothing that could be given up would make it fit."


@dataclass(frozen=True, slots=True)
class FitSnapshot:
    """What is known of the plan."""

    answer: FitAnswer | None = None
    """The last plan, which stays while another is being made."""
    failure: str = ""
    """Why there is no newer one; empty if all is well."""
    drafts: tuple[ChosenModel, ...] | None = None
    """What may draft for the target; None while that is not known."""


class FitScreen(ModeScreen):
    """Knobs, bars and offers. Every turn of a knob makes another plan, in the background."""

    MODE = "fit"
    CSS_PATH = "fit.tcss"
    AUTO_FOCUS = "#context"
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "apply", "Apply", id="fit.apply", tooltip="Put the plan on the workbench"),
        *(
            Binding(
                str(key),
                f"take({key})",
                "Take an offer",
                id=f"fit.take.{key}",
                key_display="1-9" if key == 1 else None,
                tooltip=f"Give up what offer {key} says",
                show=key == 1,
            )
            for key in range(1, MAX_KEYS + 1)
        ),
        Binding("u", "undo", "Undo", id="fit.undo", tooltip="Turn the knobs back by one change"),
        Binding("r", "measure", "Measure again", id="fit.measure", tooltip="Ask anew what is free", show=False),
        Binding("escape", "stop", "Stop", id="fit.stop", tooltip="Stop measuring", show=False),
        Binding("enter", "choose_model", "Models", id="fit.models", tooltip="Choose a model", show=False),
    ]

    snapshot: var[FitSnapshot] = var(FitSnapshot)
    """What the worker has found out."""
    knobs: var[FitKnobs | None] = var(None)
    """Where the knobs stand; None while there is no target."""

    class Planned(Message):
        """The worker knows something new."""

        def __init__(self, snapshot: FitSnapshot) -> None:
            """Take what is known."""
            super().__init__()
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """An older one is no longer of interest."""
            return isinstance(message, FitScreen.Planned)

    def __init__(self) -> None:
        """Prepare; nothing is measured before the screen is shown."""
        super().__init__()
        self._planner: FitPlanner | None = None
        self._past: list[FitKnobs] = []
        self._turned = ""
        """The knob that was turned last: several turns of one are undone together."""
        self._followed: tuple[object, ...] | None = None
        """What of the workbench the knobs were taken from."""
        self._drafts_for: ChosenModel | None = None
        self.is_measuring = False
        """Whether what is shown is about to be replaced or to get its offers."""
        self._keys: tuple[bool, bool, int] | None = None
        """What decides about the keys in the footer."""

    def compose_body(self) -> ComposeResult:
        """Yield verdict and bars above, knobs and offers below."""
        yield Static(plain(keyed(_EMPTY)), id="fit-empty", classes="empty", markup=False)
        with VerticalScroll(id="fit-body", can_focus=False):
            with Container(id="fit-outcome", classes="panel") as outcome:
                outcome.border_title = "Memory"
                yield Static("", id="fit-verdict", markup=False)
                yield FitBars(id="fit-bars")
                yield Static("", id="fit-notes", markup=False)
            with Container(id="fit-lower"):
                yield FitPanel(id="fit-knobs", classes="panel")
                with VerticalScroll(id="fit-side", classes="panel", can_focus=False) as side:
                    side.border_title = "What could be given up"
                    yield FitOffers(id="fit-offers")
                    yield Static("", id="fit-no-offers", markup=False)
                    yield Static("", id="fit-use", markup=False)

    async def on_unmount(self) -> None:
        """End the engines of described machines."""
        self.workers.cancel_node(self)
        if self._planner is not None:
            await self._planner.close()

    # What the app's state does to the knobs

    def watch_workbench(self, bench: Workbench) -> None:
        """Take over other models and contexts; what else is on the bench does not matter here."""
        followed = (bench.target, bench.draft, bench.context, bench.draft_context)
        if followed == self._followed:
            return
        self._followed = followed
        old = self.knobs
        reserve = reserve_bytes(self.host.services.settings) if old is None else old.reserve_bytes
        new = knobs_of(bench, reserve, None if old is None else old.machine)
        if old is None or new is None or old.target != new.target:
            self._past.clear()
            self.snapshot = FitSnapshot()
        self._turned = ""
        self.knobs = new

    def watch_engine_state(self, state: EngineState) -> None:
        """Show what is loaded beside the plan."""
        if self.is_mounted:
            self._show_use()

    def show_keys(self) -> None:
        """Say anew what names keys."""
        self.query_one("#fit-empty", Static).update(plain(keyed(_EMPTY)))

    def watch_knobs(self, knobs: FitKnobs | None) -> None:
        """Show the knobs and make a plan for them."""
        self.set_class(knobs is None, "-no-target")
        # What is hidden must not take keys.
        self.query("#fit-body").set(disabled=knobs is None)
        if self.is_mounted and knobs is not None:
            self._show_knobs(knobs)
            if self.focused is None:
                self.call_after_refresh(self.query_one(FitContext).focus)
        self._replan()

    @on(ScreenResume)
    def _return(self) -> None:
        if self._planner is not None:
            self._planner.forget_models()
        self._replan()

    # Making plans

    def _replan(self) -> None:
        """Measure, if anybody is looking; what is shown until then is dimmed."""
        if self.knobs is None or not self.is_mounted or self.host.current_mode != self.MODE:
            self.workers.cancel_group(self, "fit")
            return
        self.is_measuring = True
        self._dim()
        self._plan(self.knobs)

    @work(exclusive=True, group="fit", exit_on_error=False)
    async def _plan(self, knobs: FitKnobs) -> None:
        await asyncio.sleep(DEBOUNCE_S)
        await asyncio.to_thread(importlib.import_module, "localspec.tui.fit_planner")
        planner = self._planner_here()
        loaded = self.engine_state.loaded
        snapshot = self.snapshot
        try:
            footprint = None if loaded is None else loaded.footprint
            answer = await planner.plan(knobs, footprint, self._tell_first)
            snapshot = replace(snapshot, answer=answer, failure="")
        except LocalspecError as error:
            snapshot = replace(snapshot, failure=f"{error.message} {error.hint}".strip())
        self.post_message(self.Planned(snapshot))
        if self._drafts_for == knobs.target and snapshot.drafts is not None:
            return
        await asyncio.sleep(SEARCH_AFTER_S)
        try:
            drafts = await planner.drafts(knobs.target)
        except LocalspecError:
            # The plan says already what is wrong with the target's file.
            drafts = ()
        self._drafts_for = knobs.target
        self.post_message(self.Planned(replace(snapshot, drafts=drafts)))

    def _tell_first(self, answer: FitAnswer) -> None:
        self.post_message(self.Planned(replace(self.snapshot, answer=answer, failure="")))

    def _planner_here(self) -> FitPlanner:
        if self._planner is None:
            from localspec.tui.fit_planner import FitPlanner

            services, room = self.host.services, self.host.room
            self._planner = FitPlanner(lambda: room.probe, services.make_engine, services.settings)
        return self._planner

    @on(Planned)
    def _take_over(self, message: Planned) -> None:
        if self.knobs is None:
            return
        self.snapshot = message.snapshot
        answer = message.snapshot.answer
        is_known = answer is not None and answer.knobs == self.knobs and answer.is_complete
        self.is_measuring = not (is_known or message.snapshot.failure)
        self._dim()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say so where planning failed in a way that nobody foresaw."""
        if event.worker.group == "fit" and event.state is WorkerState.ERROR:
            failure = f"The plan could not be made: {event.worker.error!r:.200}"
            self._take_over(self.Planned(replace(self.snapshot, failure=failure)))

    def _dim(self) -> None:
        """Dim what is out of date."""
        is_old = self.is_measuring and not self._is_current
        self.query("#fit-verdict, #fit-bars, #fit-offers").set_class(is_old, "-measuring")

    def watch_snapshot(self, snapshot: FitSnapshot) -> None:
        """Show what is known."""
        if not self.is_mounted:
            return
        answer = snapshot.answer
        verdict = self.query_one("#fit-verdict", Static)
        if snapshot.failure:
            verdict.update(plain_line(snapshot.failure, "bold $text-error"))
        elif answer is not None:
            verdict.update(verdict_text(answer.plan))
        else:
            verdict.update(plain_line("Measuring …", MUTED))
        plan = None if answer is None else answer.plan
        self.query_one(FitBars).plan = plan
        offers = self.query_one(FitOffers)
        offers.offers = () if plan is None else plan.offers
        offers.display = bool(offers.offers)
        none = self.query_one("#fit-no-offers", Static)
        none.display = plan is not None and not plan.offers
        none.update(_no_offers(answer))
        notes = () if plan is None else plan.notes
        shown = self.query_one("#fit-notes", Static)
        shown.update(plain("\n".join(f"note: {note}" for note in notes)))
        shown.set_class(bool(notes), "-shown")
        self._show_use()
        if self.knobs is not None:
            self._show_knobs(self.knobs)
        self._refresh_keys()

    def _show_knobs(self, knobs: FitKnobs) -> None:
        drafts = self.snapshot.drafts
        chosen = () if self.workbench.draft is None else (self.workbench.draft,)
        self.query_one(FitPanel).show(knobs, self.snapshot.answer, (*chosen, *(drafts or ())), drafts is None)

    def _show_use(self) -> None:
        text = use_text(self.snapshot.answer, self.engine_state.loaded, self.workbench.context)
        use = self.query_one("#fit-use", Static)
        use.update(text)
        use.set_class(bool(text), "-shown")

    # Turning knobs

    def _turn(self, knob: str, knobs: FitKnobs) -> None:
        """Have other knobs, and remember the old ones; turns of one knob in a row are one."""
        if self.knobs is None or knobs == self.knobs:
            return
        if knob != self._turned:
            self._past = [*self._past[-MAX_PAST:], self.knobs]
        self._turned = knob
        self.knobs = knobs
        self._refresh_keys()

    @on(FitPanel.Turned)
    def _turn_panel(self, message: FitPanel.Turned) -> None:
        if message.is_entered:
            # Typed or chosen at once, so undone alone.
            self._turned = ""
        self._turn(message.knob, message.knobs)

    @on(OptionList.OptionSelected, "#fit-offers")
    def _choose_offer(self, event: OptionList.OptionSelected) -> None:
        self.action_take(event.option_index + 1)

    # Keys

    def action_take(self, number: int) -> None:
        """Turn the knobs to what an offer says."""
        answer = self.snapshot.answer
        if answer is None or number > len(answer.plan.offers):
            return
        if not self._is_current:
            self.notify(_BEING_MEASURED, markup=False)
            return
        self._turned = ""
        from localspec.tui.fit_planner import offered_knobs

        self._turn(f"offer {number}", offered_knobs(answer, answer.plan.offers[number - 1]))

    def action_undo(self) -> None:
        """Turn the knobs back by one change."""
        if self._past:
            self._turned = ""
            *self._past, self.knobs = self._past
            self._refresh_keys()

    def action_apply(self) -> None:
        """Put the plan on the workbench, where the other screens find it."""
        answer = self.snapshot.answer
        if answer is None or self.knobs is None:
            return
        if not self._is_current:
            self.notify(_BEING_MEASURED, markup=False)
        elif not answer.plan.fits:
            self.notify("This does not fit, so it is not applied. Take an offer first.", severity="warning")
        else:
            self._turned = ""
            self._past = [*self._past[-MAX_PAST:], self.knobs]
            self.host.workbench = applied(self.workbench, self.knobs, answer.plan)
            self.notify(str(plain(self._applied_words(self.knobs))), markup=False)

    def _applied_words(self, knobs: FitKnobs) -> str:
        words = keyed(
            "Applied: the next load takes the models like this; {chat.load} in the chat ({mode.chat}) loads now."
        )
        if self.engine_state.loaded is not None:
            words += " What is loaded stays as it is until then."
        if knobs.machine.devices:
            words += f" It was planned for {one_line(knobs.machine.title)}, which is not this machine."
        return words

    def action_measure(self) -> None:
        """Make the plan anew, with what is free now."""
        self._replan()

    def action_stop(self) -> None:
        """Stop measuring; the knobs stay as they are."""
        if self.is_measuring:
            self.workers.cancel_group(self, "fit")
            self.is_measuring = False
            self._dim()
            if self._is_current:
                words = keyed("Stopped: {fit.measure} looks anew for what could be given up.")
                self.query_one("#fit-no-offers", Static).update(words)
            else:
                words = keyed("Stopped before there was a plan: {fit.measure} measures again.")
                self.snapshot = replace(self.snapshot, failure=words)

    def action_choose_model(self) -> None:
        """Go where models are chosen."""
        self.host.switch_mode("models")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only keys that do something now."""
        answer = self.snapshot.answer
        match action:
            case "choose_model":
                return self.knobs is None
            case "apply" | "measure" | "stop":
                return self.knobs is not None
            case "undo":
                return bool(self._past)
            case "take":
                number = parameters[0] if parameters else 0
                return answer is not None and isinstance(number, int) and number <= len(answer.plan.offers)
        return True

    def _refresh_keys(self) -> None:
        """Have the footer made anew, which is dear, only where it would be another one."""
        answer = self.snapshot.answer
        keys = (self.knobs is None, bool(self._past), 0 if answer is None else len(answer.plan.offers))
        if keys != self._keys:
            self._keys = keys
            self.refresh_bindings()

    @property
    def _is_current(self) -> bool:
        """Whether the plan that is shown is for the knobs as they stand."""
        snapshot = self.snapshot
        return snapshot.answer is not None and not snapshot.failure and snapshot.answer.knobs == self.knobs
