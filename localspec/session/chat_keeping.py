"""Keeps a chat as it goes: each question when it is asked, each answer while it comes."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from localspec.errors import LocalspecError
from localspec.session.chat_record import figures_record, title_of
from localspec.session.conversation import Answer
from localspec.store.chats import Chats
from localspec.store.values import Record

T = TypeVar("T")

UPDATE_S = 0.5
"""Shortest time between two writings of an answer that is still coming: what a kill may cost of it."""

INCOMPLETE = "incomplete"


class ChatKeeper:
    """Keeps one chat after the other. A store that fails is said once; the chat then goes on without being kept.

    Args:
        chats: where to keep them; None keeps nothing.
        models: session/chat_record.models_record of what is loaded.
        say: tells the user something.
        clock: seconds that never go back.
        chat_id: a chat that is continued; None begins one with the next question.
    """

    def __init__(
        self,
        chats: Chats | None,
        models: Record,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        chat_id: int | None = None,
    ) -> None:
        self._chats = chats
        self._models = models
        self._say = say
        self._clock = clock
        self._chat_id = chat_id
        self._title = ""
        self._parts: list[str] = []
        self._answer_id: int | None = None
        self._updated_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_noted = False
        self._is_behind = False

    @property
    def chat_id(self) -> int | None:
        """The chat that is being kept; None before its first question, or if nothing is kept."""
        return self._chat_id if self._chats is not None else None

    @property
    def is_keeping(self) -> bool:
        """Whether what comes will be kept."""
        return self._chats is not None

    def use(self, models: Record) -> None:
        """Take note of other models or settings: they count with the next question."""
        self._models = models
        self._is_noted = False

    def rename(self, title: str) -> None:
        """Give the chat another title; one that has not begun gets it with its first question."""
        self._title = title
        chat_id = self._chat_id
        if chat_id is not None:
            self._try(lambda chats: chats.rename(chat_id, title))

    def start_over(self) -> None:
        """Begin another chat with the next question."""
        self._chat_id = None
        self._title = ""

    def ask(self, question: str) -> None:
        """Keep a question, before anything is done to answer it."""
        self._stop_timer()
        self._parts = []
        self._answer_id = None
        self._is_behind = False
        if self._chat_id is None:
            title = self._title or title_of(question)
            self._chat_id = self._try(lambda chats: chats.start(title, self._models))
            self._is_noted = True
        chat_id = self._chat_id
        if chat_id is None:
            return
        if not self._is_noted:
            self._try(lambda chats: chats.use(chat_id, self._models))
            self._is_noted = True
        self._try(lambda chats: chats.add_message(chat_id, "user", question))

    def take_back(self) -> None:
        """Remove the last question and its answer, since they are asked and answered anew."""
        chat_id = self._chat_id
        if chat_id is not None:
            self._try(lambda chats: chats.remove_last_turn(chat_id))

    def hear(self, piece: str) -> None:
        """Take a piece of the answer.

        In an event loop it is on record UPDATE_S later even if no other piece comes: the engine may think, or be busy.
        Elsewhere somebody has to call `catch_up`.
        """
        self._parts.append(piece)
        if self._chats is None or not piece:
            return
        now_s = self._clock()
        if self._answer_id is None:
            self._begin_answer()
        elif now_s - self._updated_s >= UPDATE_S:
            self._stop_timer()
            self._update("".join(self._parts), INCOMPLETE, None)
        else:
            self._is_behind = True
            self._start_timer(UPDATE_S - (now_s - self._updated_s))
            return
        self._updated_s = now_s

    def catch_up(self) -> None:
        """Keep what has come and is not on record yet."""
        self._stop_timer()
        if self._is_behind:
            self._update("".join(self._parts), INCOMPLETE, None)
            self._updated_s = self._clock()

    def finish(self, answer: Answer) -> None:
        """Keep the whole answer with its figures."""
        self._stop_timer()
        self._update(answer.text, answer.finish_reason, figures_record(answer))

    def give_up(self) -> None:
        """Keep what came of an answer that failed; after `finish` it changes nothing."""
        self._stop_timer()
        self._update("".join(self._parts), INCOMPLETE, None)

    def _start_timer(self, delay_s: float) -> None:
        if self._timer is None:
            # Without a loop nothing else could happen in this thread either.
            with suppress(RuntimeError):
                self._timer = asyncio.get_running_loop().call_later(delay_s, self.catch_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_answer(self) -> None:
        chat_id, text = self._chat_id, "".join(self._parts)
        if chat_id is not None:
            self._answer_id = self._try(lambda chats: chats.add_message(chat_id, "assistant", text, INCOMPLETE))

    def _update(self, content: str, finish_reason: str, figures: Record | None) -> None:
        self._is_behind = False
        answer_id = self._answer_id
        if answer_id is None:
            return
        self._try(lambda chats: chats.update_message(answer_id, content, finish_reason, figures))
        if finish_reason != INCOMPLETE:
            self._answer_id = None

    def _try(self, work: Callable[[Chats], T]) -> T | None:
        if self._chats is None:
            return None
        try:
            return work(self._chats)
        except (LocalspecError, sqlite3.Error) as error:
            self._chats = None
            self._say(f"From here on this chat is not kept: {error}")
            return None
