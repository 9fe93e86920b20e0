"""A recorded session to play with: the same questions, in any order and as often as wanted."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from localspec.engine.events import Configured, EngineFailed, Event, GenerationFinished, ModelsLoaded, Unloaded
from localspec.engine.recording import Exchange
from localspec.engine.replay import ReplayEngine
from localspec.engine.requests import (
    Cancel,
    CheckPairs,
    Configure,
    Generate,
    MeasureFootprint,
    ReadHeader,
    Request,
    Unload,
)
from localspec.engine.values import SpeculationState


class RecordedSession:
    """The engine's interface over a recording, without its order: each answer is the best match that was played least.

    A generation is answered by one with the same way of drafting, and with the same last message if there is one; what
    is asked about files, by what was answered about files of the same names and nothing else.

    Args:
        exchanges: what was recorded.
        speed: 1 for the recorded pace; None for at once.
    """

    def __init__(self, exchanges: Sequence[Exchange], speed: float | None = 1.0) -> None:
        self._exchanges = tuple(exchanges)
        self._methods = _methods(self._exchanges)
        self._speed = speed
        self._last_id = 0
        self._num_played: Counter[int] = Counter()
        self._method = "off"
        self._stand_ins: dict[tuple[bool, str], int] = {}
        """Numbers of the questions that were never recorded, in the order in which they came."""
        self._running: dict[int, ReplayEngine] = {}
        self._is_closed = False

    @property
    def death(self) -> str:
        """Say that it has not ended: there is no process."""
        return ""

    def next_id(self) -> int:
        """Return an id that no earlier request had."""
        self._last_id += 1
        return self._last_id

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Yield what was answered when this was recorded, at its pace."""
        if isinstance(request, Cancel):
            await self.cancel(request.request_id)
            return
        if isinstance(request, Unload):
            yield Unloaded(request.id)
            return
        index = None if self._is_closed else self._pick(request)
        if index is None:
            yield EngineFailed(request.id, "UsageError", self._refusal(request), "Start localspec without --replay.")
            return
        self._num_played[index] += 1
        replay = self._running[request.id] = ReplayEngine([self._exchanges[index]], self._speed)
        try:
            async for event in replay.stream(request):
                if isinstance(event, ModelsLoaded | Configured):
                    self._method = _method(event.speculation)
                yield event
        finally:
            self._running.pop(request.id, None)

    async def cancel(self, request_id: int) -> None:
        """Stop what plays; its stream ends with a last event."""
        if (replay := self._running.get(request_id)) is not None:
            await replay.cancel(request_id)

    async def close(self) -> None:
        """End what plays. Nothing is answered after this."""
        self._is_closed = True
        for replay in list(self._running.values()):
            await replay.close()

    def _pick(self, request: Request) -> int | None:
        """Return the index of the exchange to play."""
        fitting = [
            index
            for index, exchange in enumerate(self._exchanges)
            if exchange.request.type == request.type and exchange.events
        ]
        if isinstance(request, Configure):
            fitting = [index for index in fitting if self._methods[index] == request.speculation.method]
        elif isinstance(request, ReadHeader | CheckPairs | MeasureFootprint):
            asked = _about_files(request)
            fitting = [index for index in fitting if _about_files(self._exchanges[index].request) == asked]
        elif isinstance(request, Generate):
            fitting = self._answers(request, [index for index in fitting if self._methods[index] == self._method])
        return min(fitting, key=lambda index: (self._num_played[index], index), default=None)

    def _answers(self, request: Generate, fitting: list[int]) -> list[int]:
        """Return those of some generations that answer the question, or that of another which stands in for it.

        What stands in stays the same, so that the arms of a comparison get the same text.
        """
        asked = {index: exchange.request for index, exchange in enumerate(self._exchanges)}
        kept = {index: one for index in fitting if isinstance(one := asked[index], Generate)}
        alike = {index: one for index, one in kept.items() if one.is_fresh == request.is_fresh} or kept
        known = list(dict.fromkeys(_question(one) for one in alike.values()))
        question = _question(request)
        if known and question not in known:
            key = (request.is_fresh, question)
            number = self._stand_ins.setdefault(key, sum(fresh == request.is_fresh for fresh, _ in self._stand_ins))
            question = known[number % len(known)]
        same = {index: one for index, one in alike.items() if _question(one) == question}
        lengths = {one.max_tokens for one in same.values()}
        length = request.max_tokens if request.max_tokens in lengths else max(lengths, default=0)
        return [index for index, one in same.items() if one.max_tokens == length]

    def _refusal(self, request: Request) -> str:
        if self._is_closed:
            return "The recorded session was closed."
        match request:
            case Configure():
                return f"The recorded session knows nothing of the method {request.speculation.method}."
            case Generate():
                return f"The recorded session has no answer with the method {self._method}."
            case MeasureFootprint():
                return "The recorded session did not measure this."
            case ReadHeader():
                return "The recorded session did not read this file."
            case _:
                return f"The recorded session has no {request.type.replace('_', ' ')}."


def _methods(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    """Return the way of drafting that each exchange asks for, or that was in force."""
    methods = []
    for exchange in exchanges:
        method = "off"
        if isinstance(exchange.request, Configure):
            method = exchange.request.speculation.method
        elif exchange.events and isinstance(last := exchange.events[-1][1], GenerationFinished):
            method = _method(last.speculation)
        methods.append(method)
    return tuple(methods)


def _method(state: SpeculationState) -> str:
    return state.method if state.is_on else "off"


def _about_files(request: Request) -> Request | str:
    """Return what a request asks about files, wherever these lie. Of a header more or less may be asked."""
    match request:
        case ReadHeader():
            return PurePath(request.path).name
        case CheckPairs():
            drafts = tuple(PurePath(path).name for path in request.draft_paths)
            return replace(request, id=0, target_path=PurePath(request.target_path).name, draft_paths=drafts)
        case MeasureFootprint():
            target, draft = PurePath(request.target_path).name, PurePath(request.draft_path).name
            return replace(request, id=0, target_path=target, draft_path=draft)
        case _:
            return request


def _question(request: Request) -> str:
    if not isinstance(request, Generate):
        return ""
    return request.messages[-1].content if request.messages else request.text or ""
