"""Runs the engine in a child process and carries requests and events over its pipes."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localspec.engine.events import EngineFailed, Event, Unloaded
from localspec.engine.exit_status import describe_exit
from localspec.engine.interface import LAST_EVENTS
from localspec.engine.logfile import RotatingLog
from localspec.engine.process import WORKER_COMMAND, EngineProcess, LineTooLongError
from localspec.engine.recording import Recorder
from localspec.engine.requests import (
    Cancel,
    CheckPairs,
    LoadModels,
    MeasureFootprint,
    Probe,
    Quantize,
    ReadHeader,
    RegisterDevices,
    Request,
    Unload,
)
from localspec.engine.turn import Turn
from localspec.engine.wire import WireError, decode_event, encode_event, encode_request
from localspec.paths import engine_log_file

_STARTING = (LoadModels, Probe, ReadHeader, CheckPairs, RegisterDevices, MeasureFootprint, Quantize)
"""Requests that mean something to a process in which nothing is loaded."""

_EXIT_GRACE_S = 2.0
"""From the end of the output to the exit."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds each step of stopping may take before the next, harder one."""

    cancel_s: float = 3.0
    """From the first Cancel, or from leaving a stream, to the stream's last event; then the process is killed."""
    unload_s: float = 3.0
    """From Unload to the exit; then the process is asked by signal."""
    terminate_s: float = 1.0
    """From the signal to the exit; then the process is killed."""


class EngineClient:
    """The engine in a process of its own (see `interface.Engine`).

    Requests of several tasks take turns. A task that asks for a second stream while it is still
    inside its first gets a UsageError, since it would wait for itself. The process starts with the
    first request that needs one; everything it writes to stderr goes to a log file.

    Args:
        log_file: where the log goes; None for localspec's own log folder.
        has_log: whether there is one; without, what the process said last is still told when it dies.
        record_path: a .jsonl file to which all requests and events are appended (see recording.py).
        command: what to start instead of the worker.
        patience: time limits of stopping.
        clock: monotonic seconds, for the recording.

    Raises:
        LocalspecError: the log folder or the recording cannot be written.
    """

    def __init__(
        self,
        log_file: Path | None = None,
        *,
        has_log: bool = True,
        record_path: Path | None = None,
        command: Sequence[str] = WORKER_COMMAND,
        patience: Patience | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = RotatingLog((log_file or engine_log_file()) if has_log else None)
        self._recorder = Recorder(record_path, clock) if record_path else None
        self._command = tuple(command)
        self._patience = patience or Patience()
        self._ids = itertools.count(1)
        self._process: EngineProcess | None = None
        self._turn: Turn | None = None
        self._asked: dict[int, Turn] = {}
        """The turns that are not over, the waiting ones included, by request id."""
        self._death: EngineFailed | None = None
        """How the last process ended, when it was not asked to."""
        self._closing: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the engine; None while it does not run."""
        return self._process.pid if self._process and self._process.is_running else None

    @property
    def death(self) -> str:
        """How the process has ended without being asked to, in a sentence; empty while it runs, and before any has."""
        if self._process is None:
            return "" if self._death is None else self._death.message
        return "" if self._process.is_running else describe_exit(self._process.exit_code)[0]

    def next_id(self) -> int:
        """Return an id that no earlier request had."""
        return next(self._ids)

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Send a request and yield the events that answer it, the last one included.

        Must be called inside a task. Failures, the death of the process included, are EngineFailed
        events. A stream that is left early is cancelled, and what it would still say is dropped.
        """
        turn = Turn(request)
        events = self._answer(turn)
        turn.set_listener(events)
        return events

    async def cancel(self, request_id: int) -> None:
        """Ask that a running request stop; its stream still ends with its last event.

        An engine that does not stop in time is killed; the last event is then EngineFailed.
        """
        if turn := self._asked.get(request_id):
            self._cancel(turn)

    async def close(self) -> None:
        """End the engine and wait for it. Safe to call twice; no stream works afterwards.

        When the waiting is itself cancelled, the process is still ended, in the background.
        """
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="engine close")
        await asyncio.shield(self._closing)

    async def _answer(self, turn: Turn) -> AsyncGenerator[Event, None]:
        if isinstance(turn.request, Cancel):
            await self.cancel(turn.request.request_id)
            return
        self._asked[turn.request.id] = turn
        try:
            refusal = await self._take_turn(turn) or await self._begin(turn)
            if refusal is not None:
                self._finish(turn)
                yield refusal
            while not turn.over.done():
                yield await self._receive(turn)
        finally:
            await self._leave(turn)

    async def _take_turn(self, turn: Turn) -> EngineFailed | None:
        """Wait for the turn; return a refusal if the task would wait for itself."""
        while (other := self._turn) is not None:
            if other.draining is not None or other.is_abandoned:
                await self._leave(other)
            elif other.owner is turn.owner:
                return _failed(
                    turn,
                    "UsageError",
                    "The engine is still busy with another request.",
                    "Let it end, or leave it, first.",
                )
            else:
                await other.changed()
        self._turn = turn
        return None

    async def _begin(self, turn: Turn) -> Event | None:
        """Send the request, starting the process if need be; return the answer if it cannot be sent."""
        # One turn of the loop, in which it hears of a process that has just died.
        await asyncio.sleep(0)
        if self._process is not None and not self._process.is_running:
            await self._bury(self._process)
        if self._closing is not None:
            return _failed(turn, "UsageError", "The engine was closed.", "Start localspec again.")
        try:
            encode_request(turn.request)
        except ValueError:
            return _failed(
                turn,
                "UsageError",
                "The request holds text that is no Unicode, such as a file name in an old encoding.",
                "Rename the file, or correct the text.",
            )
        process = self._process
        if process is None:
            if isinstance(turn.request, Unload):
                return Unloaded(turn.request.id)
            if not isinstance(turn.request, _STARTING):
                return self._nothing_loaded(turn)
            try:
                process = await EngineProcess.start(self._command, self._log)
            except OSError as error:
                return _failed(
                    turn,
                    "EngineDiedError",
                    f"The engine process cannot be started: {error.strerror or error}.",
                    "Check the installation of localspec, and the free memory.",
                )
            if self._closing is not None:
                await process.end(0.0)
                return _failed(turn, "UsageError", "The engine was closed.", "Start localspec again.")
            self._process = process
            self._death = None
        turn.process = process
        self._send(process, turn.request)
        if turn.is_cancelled:
            self._cancel(turn)
        await process.flush()
        return None

    async def _receive(self, turn: Turn) -> Event:
        """Return the next event that answers this turn. The last one ends the turn."""
        process = turn.process
        assert process is not None
        event: Event | None = None
        while event is None:
            try:
                async with asyncio.timeout_at(turn.deadline) as turn.limit:
                    line = await process.read_line()
                event = _addressed(decode_event(line), turn.request.id) if line else await self._bury(process)
            except TimeoutError:
                event = await self._bury(process, "The engine did not stop when it was asked to, and was ended.")
            except LineTooLongError:
                event = await self._bury(process, "The engine sent a line without end, and was stopped.")
            except WireError as error:
                event = await self._bury(process, f"The engine was stopped. {error.message}", error.hint)
        if isinstance(event, EngineFailed) and event.is_fatal:
            death = await self._bury(process)
            event = replace(event, id=turn.request.id, exit_code=event.exit_code or death.exit_code)
            event = self._death = event if event.log_tail else replace(event, log_tail=death.log_tail)
        elif isinstance(event, Unloaded):
            await process.end(self._patience.unload_s)
            self._forget(process)
        if event.type in LAST_EVENTS:
            self._finish(turn)
        if self._recorder:
            self._recorder.event(encode_event(event))
        return event

    async def _leave(self, turn: Turn) -> None:
        """Cancel what is still running and read it to its end, out of reach of the caller's own cancellation."""
        if turn.over.done():
            return
        if turn.process is None:
            self._finish(turn)
            return
        if turn.draining is None:
            self._cancel(turn)
            turn.draining = asyncio.create_task(self._drain(turn), name="engine drain")
        await asyncio.shield(turn.draining)

    async def _drain(self, turn: Turn) -> None:
        try:
            while not turn.over.done():
                await self._receive(turn)
        finally:
            self._finish(turn)

    async def _close(self) -> None:
        process = self._process
        try:
            if process is not None:
                if self._turn is not None and self._turn.process is process:
                    self._cancel(self._turn)
                self._send(process, Unload(self.next_id()))
                await self._shut_down(process)
            if self._turn is not None and self._turn.draining is not None:
                await asyncio.wait({self._turn.draining})
        finally:
            self._log.close()
            if self._recorder:
                self._recorder.close()

    async def _shut_down(self, process: EngineProcess) -> None:
        try:
            if not await process.wait(self._patience.unload_s):
                process.terminate()
                await process.wait(self._patience.terminate_s)
        finally:
            await process.end(0.0)
            self._forget(process)

    async def _bury(self, process: EngineProcess, message: str = "", hint: str = "") -> EngineFailed:
        """End a process that is dead, or is to die for the reason given; return how it ended."""
        if message:
            process.kill()
        elif not await process.wait(_EXIT_GRACE_S):
            message = "The engine closed its output, and was stopped."
        exit_code = await process.end(0.0 if message else _EXIT_GRACE_S)
        words, advice = describe_exit(exit_code)
        if self._closing is not None:
            message, hint = "The engine was closed while it worked.", "Start localspec again."
        death = EngineFailed(
            id=0,
            kind="EngineDiedError",
            message=message or words,
            hint=hint or ("Try again; the log file may say more." if message else advice),
            is_fatal=True,
            exit_code=exit_code,
            log_tail=self._log.tail(),
        )
        if self._forget(process):
            self._death = death
        return death

    def _forget(self, process: EngineProcess) -> bool:
        if self._process is not process:
            return False
        self._process = None
        return True

    def _nothing_loaded(self, turn: Turn) -> EngineFailed:
        if self._death is None:
            return _failed(turn, "UsageError", "No models are loaded.", "Load a target model first.")
        return replace(
            self._death,
            id=turn.request.id,
            kind="EngineDiedError",
            message=f"No models are loaded any more. {self._death.message}",
            hint="The models must be loaded again.",
        )

    def _cancel(self, turn: Turn) -> None:
        turn.is_cancelled = True
        if turn.process is not None and not turn.over.done():
            self._send(turn.process, Cancel(self.next_id(), turn.request.id))
            turn.limit_to(self._patience.cancel_s)

    def _send(self, process: EngineProcess, request: Request) -> None:
        line = encode_request(request)
        process.send(line)
        if self._recorder:
            self._recorder.request(line)

    def _finish(self, turn: Turn) -> None:
        if not turn.over.done():
            turn.over.set_result(None)
        if self._turn is turn:
            self._turn = None
        self._asked.pop(turn.request.id, None)


def _addressed(event: Event, request_id: int) -> Event | None:
    """Return the event if it answers this request. A failure with id 0 is about a request that could not be read."""
    if isinstance(event, EngineFailed) and event.id == 0:
        return replace(event, id=request_id)
    return event if event.id == request_id else None


def _failed(turn: Turn, kind: str, message: str, hint: str) -> EngineFailed:
    return EngineFailed(id=turn.request.id, kind=kind, message=message, hint=hint)
