"""A short probe: one answer without drafts and one with, so that a chat has a measured baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from localspec.engine.events import Configured, Event
from localspec.engine.interface import Engine, last_event
from localspec.engine.requests import Configure, Generate
from localspec.engine.values import Message, SamplingSettings, SpeculationSettings
from localspec.errors import EngineDiedError, UsageError
from localspec.session.trial import Trial, run_trial

PROBE_TOKENS = 64
_WARMUP_TOKENS = 8

QUESTION = Message("user", "Tell me about the sea in a few sentences, and then say the same again in other words.")
"""Asked where there is no question yet."""


@dataclass(frozen=True, slots=True)
class Probe:
    """The two answers."""

    off: Trial
    on: Trial

    @property
    def speedup(self) -> float | None:
        """decode_tps with drafts / without. A single pair: it says roughly, and has no interval."""
        rates = self.on.decode_tps, self.off.decode_tps
        return rates[0] / rates[1] if rates[0] and rates[1] else None


async def probe_speed(
    engine: Engine,
    speculation: SpeculationSettings,
    messages: tuple[Message, ...],
    sampling: SamplingSettings,
    on_event: Callable[[Event], None],
) -> Probe:
    """Answer the same question off and on, after a warm-up, and return both. The KV cache is read anew each time.

    Args:
        engine: with the models loaded.
        speculation: how to draft in the second answer. It is in force afterwards, unless this is cancelled.
        messages: a conversation that ends with a question.
        sampling: for both.
        on_event: sees every event.

    Raises:
        UsageError: the method is off, or the engine cannot draft so.
        LocalspecError: the engine failed.
    """
    if speculation.method == "off":
        raise UsageError("There is nothing to compare: speculation is switched off.", "Choose a method first.")
    await _configure(engine, replace(speculation, method="off"), on_event)

    async def answer(name: str, place: int, max_tokens: int) -> Trial:
        request = Generate(
            id=engine.next_id(), messages=messages, sampling=sampling, max_tokens=max_tokens, is_fresh=True
        )
        return await run_trial(engine, request, name, 0, place, "probe", on_event)

    await answer("off", 0, _WARMUP_TOKENS)
    off = await answer("off", 0, PROBE_TOKENS)
    configured = await _configure(engine, speculation, on_event)
    if not configured.speculation.is_on:
        raise UsageError(
            f"Speculation cannot be switched on: {configured.speculation.reason or 'the engine does not say why'}.",
            "Choose another method or draft.",
        )
    return Probe(off, await answer("on", 1, PROBE_TOKENS))


async def _configure(engine: Engine, settings: SpeculationSettings, on_event: Callable[[Event], None]) -> Configured:
    answer = await last_event(engine, Configure(id=engine.next_id(), speculation=settings))
    if not isinstance(answer, Configured):
        raise EngineDiedError("The engine gave no answer to the change.", "Try again.")
    on_event(answer)
    return answer
