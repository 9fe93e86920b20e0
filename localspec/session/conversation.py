"""A conversation with the loaded target: its turns, and what each answer cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localspec.engine.events import (
    Configured,
    EngineFailed,
    Event,
    GenerationFinished,
    GenerationStarted,
    PrefillProgress,
    RoundFinished,
)
from localspec.engine.interface import Engine, as_error, last_event
from localspec.engine.requests import Configure, Generate
from localspec.engine.values import FinishReason, Message, SamplingSettings, SpeculationSettings, SpeculationState
from localspec.errors import EngineDiedError
from localspec.metrics.latency import Latency, LatencyFold
from localspec.metrics.speculation import SpeculationStats, fold_rounds

OnPrefill = Callable[[int, int], None]
"""Called with how many tokens of the prompt are read, and how many there are."""

CANCEL_PATIENCE_S = 5.0
"""How long a cancelled answer may take to end. The engine itself gives up earlier, and then says so."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, complete or not."""

    text: str
    finish_reason: FinishReason
    stats: SpeculationStats
    latency: Latency
    speculation: SpeculationState | None
    """As the engine reported it at the end; None if the answer did not end properly."""


class Conversation:
    """Keeps the messages. A turn that fails or is stopped before its first word leaves no trace in them."""

    def __init__(
        self,
        engine: Engine,
        sampling: SamplingSettings,
        max_tokens: int,
        system: str = "",
        turns: Sequence[Message] = (),
    ) -> None:
        """Begin with the given turns, if any: questions and answers by turns, without a system message."""
        self._engine = engine
        self._sampling = sampling
        self._max_tokens = max_tokens
        self._system = (Message("system", system),) if system else ()
        self._turns = tuple(turns)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The system message, if there is one, and all turns."""
        return self._system + self._turns

    def clear(self) -> None:
        """Forget all turns."""
        self._turns = ()

    async def ask(
        self,
        text: str,
        on_text: Callable[[str], None],
        on_prefill: OnPrefill = lambda num_done, num_total: None,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> Answer:
        """Ask for an answer, and pass its text on as it comes; before that, how far the prompt is read.

        `on_event` sees every event before anything is made of it.

        Cancelling the task that waits here stops the answer: it is then returned as far as it got, with the
        finish reason `cancelled`.

        Raises:
            LocalspecError: the engine could not answer; EngineDiedError if models must be loaded again.
        """
        question = Message("user", text)
        answer = await self._generate((*self.messages, question), on_text, on_prefill, on_event)
        if answer.text:
            self._turns += (question, Message("assistant", answer.text))
        return answer

    async def configure(self, speculation: SpeculationSettings, pacing_state: str = "") -> Configured:
        """Change how tokens are drafted from the next answer on.

        `pacing_state` replaces what adaptive drafting has learnt; empty leaves it.

        Raises:
            LocalspecError: the engine refused.
        """
        request = Configure(self._engine.next_id(), speculation, pacing_state=pacing_state)
        answer = await last_event(self._engine, request)
        if not isinstance(answer, Configured):
            raise EngineDiedError("The engine gave no answer to the change.", "Try again.")
        return answer

    async def try_out(self, wanted: SpeculationSettings, before: SpeculationSettings) -> tuple[SpeculationState, str]:
        """Change how tokens are drafted, but go back to what was in use if the engine cannot draft so.

        Returns:
            What is in force from the next answer on, and why that is not what is wanted; empty if it is.

        Raises:
            LocalspecError: the engine refused; what was in use is so still.
        """
        state = (await self.configure(wanted)).speculation
        if state.is_on or wanted.method == "off":
            return state, ""
        reason = state.reason or "the engine did not switch it on"
        return (await self.configure(before)).speculation, reason

    async def _generate(
        self,
        messages: tuple[Message, ...],
        on_text: Callable[[str], None],
        on_prefill: OnPrefill,
        on_event: Callable[[Event], None],
    ) -> Answer:
        request = Generate(
            id=self._engine.next_id(), messages=messages, sampling=self._sampling, max_tokens=self._max_tokens
        )
        reading = asyncio.create_task(self._read(request, on_text, on_prefill, on_event))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await self._engine.cancel(request.id)
            try:
                return await asyncio.wait_for(reading, CANCEL_PATIENCE_S)
            except TimeoutError:
                raise EngineDiedError("The answer could not be stopped.", "Load the models again.") from None

    async def _read(
        self,
        request: Generate,
        on_text: Callable[[str], None],
        on_prefill: OnPrefill,
        on_event: Callable[[Event], None],
    ) -> Answer:
        parts: list[str] = []
        rounds: list[RoundFinished] = []
        latency = LatencyFold()

        def show(text: str) -> None:
            if text:
                parts.append(text)
                on_text(text)

        async for event in self._engine.stream(request):
            on_event(event)
            latency.observe(event)
            if isinstance(event, GenerationStarted):
                on_prefill(event.num_reused, len(event.prompt_tokens))
            elif isinstance(event, PrefillProgress) and event.model == "target":
                on_prefill(event.num_done, event.num_total)
            elif isinstance(event, RoundFinished):
                rounds.append(event)
                show("".join(token.text for token in event.emitted))
            elif isinstance(event, GenerationFinished):
                show(event.tail_text)
                return Answer(
                    "".join(parts), event.finish_reason, fold_rounds(rounds), latency.result(), event.speculation
                )
            elif isinstance(event, EngineFailed):
                raise as_error(event)
        raise EngineDiedError("The answer ended without an end.", "Try again; the engine's log file may say more.")
