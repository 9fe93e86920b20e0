"""The chat's workings: its turns, its one worker, and what that tells. Keys and dialogs are the screen's."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.reactive import var
from textual.worker import Worker

from localspec.errors import LocalspecError
from localspec.metrics.live import LiveFigures
from localspec.session.answer_line import AnswerFigures, answer_line, figures_of
from localspec.session.baseline import Baseline
from localspec.session.figures import rate_text, speed_unit
from localspec.tui.chat_archive import ChatArchive
from localspec.tui.chat_fold import SNAPSHOT_S, AnswerSnapshot, ChatTurn
from localspec.tui.chat_paces import ChatPaces
from localspec.tui.chat_talk import Asking, ChatTalk, Outcome
from localspec.tui.chat_words import (
    idle_activity,
    loading_activity,
    preparing_activity,
    welcome_text,
    work_activity,
)
from localspec.tui.keyed import keyed
from localspec.tui.pace import rest_of
from localspec.tui.plain import plain
from localspec.tui.screens.base import ModeScreen, cancel_soon
from localspec.tui.state import EngineState, Workbench
from localspec.tui.widgets.chat_activity import Activity, ChatActivity
from localspec.tui.widgets.chat_panel import ChatPanel
from localspec.tui.widgets.chat_prompt import ChatPrompt
from localspec.tui.widgets.chat_transcript import ChatTranscript

if TYPE_CHECKING:
    from localspec.engine.events import LoadProgress

MAX_XRAYED = 4
"""Newest answers whose rounds are held."""


class ChatDesk(ModeScreen):
    """One chat at a time. Its one worker talks to the engine; everything else only shows what that tells."""

    MODE = "chat"

    live: var[LiveFigures] = var(LiveFigures)
    """Figures of the answer that comes, or came last."""
    drawn: var[LiveFigures] = var(LiveFigures)
    """The same, as the panel has them: it is not drawn with each of them."""
    baseline: var[Baseline | None] = var(None)
    """Measured without drafts, for the models and settings in force."""

    class Progressed(Message):
        """Something is going on; only the newest counts."""

        def __init__(self, activity: Activity, snapshot: AnswerSnapshot | None = None) -> None:
            super().__init__()
            self.activity = activity
            self.snapshot = snapshot

        def can_replace(self, message: Message) -> bool:
            """Say that an older one need not be seen."""
            return isinstance(message, ChatDesk.Progressed)

    class Ended(Message):
        """The worker is done."""

        def __init__(self, asking: Asking | None = None, outcome: Outcome | None = None, notice: str = "") -> None:
            super().__init__()
            self.asking = asking
            self.outcome = outcome
            self.notice = notice

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Prepare an empty chat.

        Args:
            clock: seconds, for the pace of what is shown.
        """
        super().__init__()
        self._clock = clock
        self._paces = ChatPaces(clock)
        self._turns: tuple[ChatTurn, ...] = ()
        self._job: Worker[None] | None = None
        self._is_beginning = False
        self._is_stopping = False
        self._is_editing = False
        self._last: Outcome | None = None
        self._probed: dict[object, Baseline] = {}
        self._looked_up: object = None
        self._said = ""
        self._archive: ChatArchive | None = None
        self._talk: ChatTalk | None = None

    def compose_body(self) -> ComposeResult:
        """Yield transcript, prompt and panel."""
        with Horizontal(id="chat-body"):
            with Vertical(id="chat-main"):
                yield ChatTranscript()
                yield ChatActivity()
                yield ChatPrompt()
            yield ChatPanel().data_bind(ChatDesk.baseline, ChatDesk.engine_state, live=ChatDesk.drawn)

    def on_mount(self) -> None:
        """Make the way to the store; nothing is opened yet."""
        services = self.host.services
        self._archive = ChatArchive(services.open_database, services.settings, self._say)
        self.host.is_chat_unkept = self._archive.is_unkept
        self._talk = ChatTalk(self.host.room, self._archive, self._paces.lines)
        self._show_idle()
        self.call_after_refresh(self._prepare)

    @work(group="prepare", exit_on_error=False)
    async def _prepare(self) -> None:
        """Import what the first question needs while it is written."""
        await asyncio.to_thread(_import_for_answers)
        await self.host.prepare_engines()
        self._suggest()

    async def on_unmount(self) -> None:
        """Write what is waiting."""
        if self._archive is not None:
            await self._archive.close()

    @property
    def transcript(self) -> ChatTranscript:
        """What was said."""
        return self.query_one(ChatTranscript)

    @property
    def prompt(self) -> ChatPrompt:
        """Where the next question is written."""
        return self.query_one(ChatPrompt)

    @property
    def archive(self) -> ChatArchive:
        """The way to the store; there is one once the screen is mounted."""
        assert self._archive is not None
        return self._archive

    @property
    def talk(self) -> ChatTalk:
        """The way to the engine."""
        assert self._talk is not None
        return self._talk

    @property
    def turns(self) -> tuple[ChatTurn, ...]:
        """All questions with their answers."""
        return self._turns

    @property
    def is_working(self) -> bool:
        """Whether the worker is at it, or will be in a moment."""
        return self._is_beginning or self._job is not None

    # The worker.

    async def _begin(self, asking: Asking) -> None:
        self._is_beginning = True
        try:
            if asking.is_anew:
                await self.transcript.take_back()
            await self.transcript.begin(asking.question, asking.turns)
            self.live = self.drawn = LiveFigures()
            self._start(self._answer(self.workbench, asking), work_activity(self.live))
        finally:
            self._is_beginning = False

    def _start(self, job: Worker[None], activity: Activity) -> None:
        self._job = job
        # Every blink wakes the app and draws, twice a second for as long as the engine needs its cores.
        self.prompt.cursor_blink = False
        if self._is_stopping:
            self._stop_job()
        else:
            self._show(activity)

    def _stop(self) -> None:
        # A second cancelling would cut off the engine's own end of the answer.
        if not self._is_stopping:
            self._is_stopping = True
            self._show(Activity("stopping …", "work"))
            self._stop_job()

    def _stop_job(self) -> None:
        if self._job is not None:
            cancel_soon(self._job)

    @work(exclusive=True, group="talk", exit_on_error=False)
    async def _answer(self, bench: Workbench, asking: Asking) -> None:
        def on_snapshot(snapshot: AnswerSnapshot) -> None:
            self.post_message(self.Progressed(work_activity(snapshot.live), snapshot))

        def on_loaded() -> None:
            self.post_message(self.Progressed(preparing_activity()))

        outcome = Outcome(AnswerSnapshot())
        with suppress(asyncio.CancelledError):
            self._paces.begin(await asyncio.to_thread(rest_of, bench))
            outcome = await self.talk.ask(bench, asking, self._report_load(), on_snapshot, on_loaded)
        self.post_message(self.Ended(asking, outcome))

    @work(exclusive=True, group="talk", exit_on_error=False)
    async def _load(self, bench: Workbench) -> None:
        notice = ""
        try:
            notice = await self.talk.load(bench, self._report_load())
        except LocalspecError as error:
            self.host.show_failure(error)
        except asyncio.CancelledError:
            notice = "Loading was stopped."
        self.post_message(self.Ended(notice=notice))

    @work(exclusive=True, group="talk", exit_on_error=False)
    async def _probe(self, bench: Workbench) -> None:
        notice = ""
        try:
            probe = await self.talk.probe(bench, self._turns, self._report_load())
        except LocalspecError as error:
            self.host.show_failure(error)
        except asyncio.CancelledError:
            notice = "Measuring was stopped."
        else:
            rates = rate_text(probe.off.decode_tps), rate_text(probe.on.decode_tps)
            gain = "" if probe.speedup is None else f": {probe.speedup:.2f}x on this one answer"
            notice = f"off {rates[0]}, on {rates[1]} {speed_unit()}{gain}"
            if probe.off.decode_tps is not None and (key := self._baseline_key()) is not None:
                self._probed[key] = Baseline(probe.off.decode_tps, "a short probe")
        self.post_message(self.Ended(notice=notice))

    def _report_load(self) -> Callable[[LoadProgress], None]:
        said_s = float("-inf")

        def report(event: LoadProgress) -> None:
            nonlocal said_s
            if (now_s := self._clock()) - said_s >= SNAPSHOT_S:
                said_s = now_s
                self.post_message(self.Progressed(loading_activity(event)))

        return report

    # What the worker tells.

    @on(Progressed)
    async def _follow(self, event: Progressed) -> None:
        if self._job is None:
            return
        snapshot = event.snapshot
        paces = self._paces
        is_panels_turn = snapshot is not None and paces.is_panels_turn()
        is_figures_turn = is_panels_turn or not (paces.is_sparing and snapshot is not None and snapshot.text)
        if is_figures_turn and not self._is_stopping:
            self._show(event.activity)
        if snapshot is None:
            return
        self.live = snapshot.live
        begun_s = paces.lines.work_s()
        if is_panels_turn:
            # Alone: all that lies between two places that change at once is drawn anew with them.
            self.drawn = snapshot.live
            paces.draw_panel(begun_s)
        else:
            is_laid_out = await self.transcript.grow(snapshot, paces.is_blocks_turn, not paces.is_sparing)
            paces.draw_text(begun_s, is_laid_out)

    @on(Ended)
    async def _end(self, event: Ended) -> None:
        try:
            if event.asking is not None and event.outcome is not None:
                await self._take_outcome(event.asking, event.outcome)
        finally:
            # Not before: a key could begin something else while the answer is still being put in its place.
            self._job = None
            self._is_stopping = False
            self.prompt.cursor_blink = True
        if event.notice:
            self._say(event.notice)
        self._look_up_baseline()
        self._show_idle()
        self._suggest()

    async def _take_outcome(self, asking: Asking, outcome: Outcome) -> None:
        snapshot = outcome.snapshot
        self.live = self.drawn = snapshot.live
        if outcome.error is not None:
            self.host.show_failure(outcome.error)
        if outcome.notice and outcome.notice != self._said:
            self._say(outcome.notice)
        self._said = outcome.notice
        if not snapshot.text:
            await self._undo(asking, outcome)
            return
        self._last = outcome
        turn = ChatTurn(
            asking.question,
            snapshot.text,
            self._figures(outcome),
            outcome.rounds,
            snapshot.num_thinking,
            asking.attempt,
        )
        self._turns = (*asking.turns, turn)
        self._turns = (*(replace(old, rounds=()) for old in self._turns[:-MAX_XRAYED]), *self._turns[-MAX_XRAYED:])
        await self.transcript.settle(turn)

    async def _undo(self, asking: Asking, outcome: Outcome) -> None:
        """Nothing came: what was there is there again, and the question is not lost."""
        await self.transcript.show(self._turns, welcome_text(self.workbench, self.engine_state))
        if not self.prompt.text:
            self.prompt.put(asking.question)
            self._is_editing = asking.is_anew
        if outcome.answer is not None and outcome.answer.finish_reason != "cancelled":
            self._say("The answer was empty.")

    def _figures(self, outcome: Outcome) -> AnswerFigures:
        snapshot = outcome.snapshot
        if outcome.answer is None:
            return AnswerFigures(snapshot.live.stats.num_tokens, snapshot.num_thinking, finish_reason="incomplete")
        state = outcome.answer.speculation
        is_same = state == self.engine_state.speculation and self._baseline_key() == self._looked_up
        return figures_of(outcome.answer, self.baseline if is_same else None, snapshot.num_thinking)

    # What the app tells.

    def watch_workbench(self) -> None:
        """Follow what is chosen."""
        if self._talk is not None and not self.is_working:
            self._show_idle()

    def watch_engine_state(self, state: EngineState) -> None:
        """Follow the engine: other models or settings have another baseline."""
        if self._talk is not None and not self.is_working:
            self._show_idle()
        if self._talk is not None and self._baseline_key() != self._looked_up and state.busy != "measuring":
            self._look_up_baseline()

    def show_keys(self) -> None:
        """Say anew what names keys, unless something is going on: that is said again and again."""
        if self._talk is not None and not self.is_working:
            self._show_idle()

    def on_screen_resume(self) -> None:
        """Another screen may have measured meanwhile."""
        if self._archive is not None and self.engine_state.loaded is not None:
            self._look_up_baseline()

    @work(exclusive=True, group="baseline", exit_on_error=False)
    async def _look_up_baseline(self) -> None:
        state = self.engine_state
        key = self._baseline_key()
        if key != self._looked_up:
            self.baseline = None
        self._looked_up = key
        if key is None or state.loaded is None or state.speculation is None:
            self.baseline = None
            return
        self.baseline = self._probed.get(key) or await self.archive.find_baseline(
            state.loaded, state.speculation.settings
        )

    def watch_baseline(self) -> None:
        """What was just measured counts for the last answer, too."""
        if self._last is None or not self._turns or self._job is not None:
            return
        figures = self._figures(self._last)
        if figures != self._turns[-1].figures and figures.speedup is not None:
            self._turns = (*self._turns[:-1], replace(self._turns[-1], figures=figures))
            self.transcript.show_line(answer_line(figures))

    def _baseline_key(self) -> object:
        state = self.engine_state
        if state.loaded is None or state.speculation is None or not state.speculation.is_on:
            return None
        return state.loaded.target, state.loaded.draft, state.speculation.settings

    # What is shown.

    async def _take_up(self, turns: tuple[ChatTurn, ...]) -> None:
        self._turns, self._last, self._is_editing = turns, None, False
        self.talk.change_chat()
        self.live = self.drawn = LiveFigures()
        for turn in turns:
            self.prompt.remember(turn.question)
        await self.transcript.show(turns, welcome_text(self.workbench, self.engine_state))
        self._show_idle()
        self.prompt.focus()

    def _suggest(self) -> None:
        """Put the next recorded question into the prompt, if a recorded session is played."""
        asked = {turn.question for turn in self._turns}
        question = next((one for one in self.host.launch.questions if one not in asked), "")
        if question and not self.prompt.text:
            self.prompt.put(question)

    def _is_refused(self) -> bool:
        if self.is_working:
            self._say(keyed("The engine is at work; {chat.stop} stops it."))
        return self.is_working

    def _show_idle(self) -> None:
        self._show(idle_activity(self.workbench, self.engine_state, self._is_editing))
        self.transcript.welcome(welcome_text(self.workbench, self.engine_state))

    def _show(self, activity: Activity) -> None:
        self.query_one(ChatActivity).activity = activity

    def _say(self, text: str) -> None:
        self.notify(str(plain(text)), markup=False)


def _import_for_answers() -> None:
    for name in ("session.conversation", "session.load_plan", "tui.widgets.chat_answer"):
        importlib.import_module(f"localspec.{name}")
