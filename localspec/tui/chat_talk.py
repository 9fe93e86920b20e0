"""One question after the other to the engine: load what is missing, set how to draft, ask, keep."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from localspec.engine.values import Message, SamplingSettings
from localspec.errors import LocalspecError
from localspec.methods import takes_draft
from localspec.tui.chat_archive import ChatArchive
from localspec.tui.chat_fold import AnswerFold, AnswerSnapshot, ChatTurn
from localspec.tui.engine_room import EngineRoom
from localspec.tui.kinds import drafting_for
from localspec.tui.state import Workbench

if TYPE_CHECKING:
    from localspec.engine.events import Event, LoadProgress, RoundFinished
    from localspec.engine.interface import Engine
    from localspec.session.conversation import Answer
    from localspec.session.speed_probe import Probe
    from localspec.tui.pace import Pace

_SEEDS = 2**32 - 1
"""llama.cpp takes the number beyond for a random seed."""

KEEP_S = 0.25
"""From a token to its way into the store: with the store's own pace, a kill costs less than a second."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question, and what came before it."""

    question: str
    turns: tuple[ChatTurn, ...] = ()
    is_anew: bool = False
    """It takes the place of the last one that was asked."""
    attempt: int = 0
    """How often the same was asked before: each time has a seed of its own."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How asking ended."""

    snapshot: AnswerSnapshot
    rounds: tuple[RoundFinished, ...] = ()
    answer: Answer | None = None
    """None if it did not end properly; what came of it is in the snapshot."""
    error: LocalspecError | None = None
    notice: str = ""
    """Why tokens are not drafted as wished."""


class ChatTalk:
    """Asks. It runs in a worker, and cancelling that stops the answer.

    Args:
        room: owns the engine.
        archive: keeps the chat.
        pace: of snapshots.
    """

    def __init__(self, room: EngineRoom, archive: ChatArchive, pace: Pace) -> None:
        self._room = room
        self._archive = archive
        self._pace = pace
        self._has_loose_question = False
        """The last question of this chat has no answer, and goes with the next one."""

    def change_chat(self) -> None:
        """Go on with another chat, in which nothing is to be taken back."""
        self._has_loose_question = False

    async def load(self, bench: Workbench, on_load: Callable[[LoadProgress], None]) -> str:
        """Load the bench's models, and return why tokens are not drafted as wished; empty if they are.

        Raises:
            LocalspecError: they cannot be loaded.
        """
        async with self._room.occupied("loading") as engine:
            return await self._prepare(engine, bench, on_load)

    async def ask(
        self,
        bench: Workbench,
        asking: Asking,
        on_load: Callable[[LoadProgress], None],
        on_snapshot: Callable[[AnswerSnapshot], None],
        on_loaded: Callable[[], None] | None = None,
    ) -> Outcome:
        """Return how the answer came out. Failures and cancelling are outcomes; nothing is raised.

        Args:
            bench: models and settings.
            asking: the question.
            on_load: told how far loading is.
            on_snapshot: told how far the answer is.
            on_loaded: told that the models are there.
        """
        from localspec.session.conversation import Conversation

        fold = AnswerFold(self._pace)
        keeping = _Keeping(self._archive)
        answer: Answer | None = None
        notice = ""
        failure: LocalspecError | None = None

        def begin() -> None:
            num_back = int(asking.is_anew) + int(self._has_loose_question)
            self._archive.ask(bench, asking.question, num_back, asking.turns)
            self._has_loose_question = True

        def hear(piece: str) -> None:
            # An answer that is asked for anew stays kept until there is something in its place.
            if asking.is_anew and not keeping.has_text:
                begin()
            keeping.take(piece)

        def observe(event: Event) -> None:
            self._room.hear(event)
            if fold.observe(event):
                on_snapshot(fold.snapshot())

        try:
            async with self._room.occupied("answering") as engine:
                notice = await self._prepare(engine, bench, on_load, (asking.question, asking.turns))
                if on_loaded is not None:
                    on_loaded()
                if not asking.is_anew:
                    begin()
                conversation = Conversation(
                    engine, _seeded(bench.sampling, asking.attempt), bench.max_tokens, turns=messages_of(asking.turns)
                )
                answer = await conversation.ask(asking.question, hear, on_event=observe)
        except LocalspecError as error:
            failure = error
        except asyncio.CancelledError:
            # Stopped before there was anything to stop gently.
            pass
        keeping.flush()
        if keeping.has_text:
            self._has_loose_question = False
            if answer is not None:
                self._archive.finish(answer)
            else:
                self._archive.give_up()
        return Outcome(fold.snapshot(is_complete=True), fold.rounds, answer, failure, notice)

    async def probe(
        self, bench: Workbench, turns: tuple[ChatTurn, ...], on_load: Callable[[LoadProgress], None]
    ) -> Probe:
        """Measure one short answer off and on: to the last question, if there is one.

        Raises:
            LocalspecError: it cannot be measured.
        """
        from localspec.session.speed_probe import QUESTION, probe_speed

        question = Message("user", turns[-1].question) if turns else QUESTION
        async with self._room.occupied("measuring") as engine:
            await self._prepare(engine, bench, on_load)
            return await probe_speed(
                engine, bench.speculation, (*messages_of(turns[:-1]), question), bench.sampling, self._room.hear
            )

    async def _prepare(
        self,
        engine: Engine,
        bench: Workbench,
        on_load: Callable[[LoadProgress], None],
        asked: tuple[str, tuple[ChatTurn, ...]] | None = None,
    ) -> str:
        from localspec.session.conversation import Conversation

        loaded = await self._room.load(bench, on_load)
        kind, wanted, refusal = "", bench.speculation, ""
        if asked is not None and bench.kinds is not None:
            kind, wanted = await asyncio.to_thread(drafting_for, bench, *asked)
        state = self._room.state.speculation
        if state is None or state.settings != wanted:
            conversation = Conversation(engine, bench.sampling, bench.max_tokens)
            if kind:
                state, refusal = await conversation.try_out(wanted, bench.speculation)
            else:
                state = (await conversation.configure(wanted)).speculation
        self._room.note_speculation(state, "" if refusal else kind)
        if refusal:
            return f"The profile's setting for {kind} cannot be used: {refusal}"
        method = wanted.method
        if method == "off":
            return ""
        if not state.is_on:
            return f"Speculation is OFF: {loaded.draft_failure or state.reason}"
        lacks_draft = bench.draft is not None and takes_draft((method,)) and loaded.draft is None
        return f"The draft model is not in use: {loaded.draft_failure}" if lacks_draft else ""


class _Keeping:
    """Collects pieces of an answer, so that they are kept a few times a second and not with each token."""

    def __init__(self, archive: ChatArchive) -> None:
        self._archive = archive
        self._pieces: list[str] = []
        self._later: asyncio.TimerHandle | None = None
        self.has_text = False

    def take(self, piece: str) -> None:
        self.has_text = True
        self._pieces.append(piece)
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(KEEP_S, self.flush)

    def flush(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self._pieces:
            self._archive.hear("".join(self._pieces))
            self._pieces.clear()


def messages_of(turns: Sequence[ChatTurn]) -> tuple[Message, ...]:
    """Return what a conversation goes on with."""
    pairs = ((Message("user", turn.question), Message("assistant", turn.text)) for turn in turns if turn.text)
    return tuple(message for pair in pairs for message in pair)


def _seeded(sampling: SamplingSettings, attempt: int) -> SamplingSettings:
    return replace(sampling, seed=(sampling.seed + attempt) % _SEEDS) if attempt else sampling
