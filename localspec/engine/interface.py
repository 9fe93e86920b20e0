"""The engine as everything above it sees it: client.py runs the real one, replay.py a recorded one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from localspec import errors
from localspec.engine.events import EngineFailed, Event
from localspec.engine.requests import Request

LAST_EVENTS = (
    "probed",
    "header_read",
    "pairs_checked",
    "devices_registered",
    "footprint_measured",
    "models_loaded",
    "configured",
    "generation_finished",
    "difference_explained",
    "steps_measured",
    "quantized",
    "unloaded",
    "engine_failed",
)
"""Event types that end the answer to a request."""


class Engine(Protocol):
    """Carries out one request at a time; Cancel may come in between."""

    @property
    def death(self) -> str:
        """How what held the models has ended by itself, in a sentence; empty as long as it has not."""

    def next_id(self) -> int:
        """Return an id that no earlier request had."""

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Send a request and yield the events that answer it, the last one included.

        A failure is the event EngineFailed. Leaving the iterator early cancels the request. An engine that
        died is started again by the next LoadModels, Probe, ReadHeader, CheckPairs, RegisterDevices, MeasureFootprint
        or Quantize.
        """

    async def cancel(self, request_id: int) -> None:
        """Ask that a running request stop; its stream still ends with its last event."""

    async def close(self) -> None:
        """End the engine and wait for it. Safe to call twice."""


async def last_event(engine: Engine, request: Request) -> Event:
    """Send a request and return the event that ends its answer.

    Raises:
        LocalspecError: the engine answered with EngineFailed; the subclass is the one the engine named.
    """
    final: Event | None = None
    async for event in engine.stream(request):
        final = event
    if final is None:
        raise errors.EngineDiedError("The engine gave no answer.", "Try again; the log file may say more.")
    if isinstance(final, EngineFailed):
        raise as_error(final)
    return final


def as_error(event: EngineFailed) -> errors.LocalspecError:
    """Return the failure as an exception of the class that the engine named."""
    kind = getattr(errors, event.kind, errors.LocalspecError)
    if not (isinstance(kind, type) and issubclass(kind, errors.LocalspecError)):
        kind = errors.LocalspecError
    return kind(event.message, event.hint)
