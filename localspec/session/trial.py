"""One measured generation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from localspec.engine.events import (
    EngineFailed,
    Event,
    GenerationFinished,
    GenerationStarted,
    RoundFinished,
)
from localspec.engine.interface import Engine, as_error
from localspec.engine.requests import Generate
from localspec.engine.values import FinishReason, SpeculationState
from localspec.errors import EngineDiedError
from localspec.metrics.latency import Latency, LatencyFold
from localspec.metrics.speculation import SpeculationStats, fold_rounds


@dataclass(frozen=True, slots=True)
class Trial:
    """A generation's record, as folded from its events."""

    arm: str
    pair: int
    """Which pair it belongs to, from 0."""
    place: int
    """Its place in the order of all measured runs, from 0."""
    prompt_name: str
    prompt_tokens: tuple[int, ...]
    rounds: tuple[RoundFinished, ...]
    stats: SpeculationStats
    latency: Latency
    text: str
    finish_reason: FinishReason
    speculation: SpeculationState
    peak_rss_bytes: int
    device_used_bytes: int

    @property
    def tokens(self) -> tuple[int, ...]:
        """Emitted token ids."""
        return tuple(token.id for round_ in self.rounds for token in round_.emitted)

    @property
    def decode_tps(self) -> float | None:
        """Tokens per second after the first round."""
        return self.latency.decode_tps


async def run_trial(
    engine: Engine,
    request: Generate,
    arm: str,
    pair: int,
    place: int,
    prompt_name: str,
    on_event: Callable[[Event], None],
) -> Trial:
    """Generate and return what was measured. `on_event` sees every event as it comes.

    Raises:
        LocalspecError: the engine failed.
    """
    started: GenerationStarted | None = None
    finished: GenerationFinished | None = None
    rounds: list[RoundFinished] = []
    latency = LatencyFold()
    stream = engine.stream(request)
    try:
        async for event in stream:
            on_event(event)
            latency.observe(event)
            if isinstance(event, RoundFinished):
                rounds.append(event)
            elif isinstance(event, GenerationStarted):
                started = event
            elif isinstance(event, GenerationFinished):
                finished = event
            elif isinstance(event, EngineFailed):
                raise as_error(event)
    finally:
        # A stream left early holds the engine until it is closed, and the garbage collector would do that late.
        if inspect.isasyncgen(stream):
            await stream.aclose()
    if started is None or finished is None:
        raise EngineDiedError("The engine gave no answer.", "Try again; the log file may say more.")
    return Trial(
        arm=arm,
        pair=pair,
        place=place,
        prompt_name=prompt_name,
        prompt_tokens=started.prompt_tokens,
        rounds=tuple(rounds),
        stats=fold_rounds(rounds),
        latency=latency.result(),
        text="".join(token.text for round_ in rounds for token in round_.emitted) + finished.tail_text,
        finish_reason=finished.finish_reason,
        speculation=finished.speculation,
        peak_rss_bytes=finished.peak_rss_bytes,
        device_used_bytes=finished.device_used_bytes,
    )
