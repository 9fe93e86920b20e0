"""Ctrl-C while the engine works: the work is told once to stop, and what it has brought is still said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from localspec.cli.signals import handle_interrupts, ignore_interrupts

T = TypeVar("T")

NOTICE_S = 1.0
"""How long the engine may take to stop before the user hears that it is waited for."""


class Interruptions:
    """Runs one coroutine after another, and decides what Ctrl-C does meanwhile.

    The first Ctrl-C of a run cancels it; all others of that run change nothing. After a run Ctrl-C does nothing
    either, so that results are printed whole, except inside `allowed`. After the block it stays without effect,
    since only the end of the program is left; `main.run` puts back what was there before.

    Args:
        say: tells the user something while the engine is waited for.
        notice_s: seconds from the first Ctrl-C to the first such notice.
    """

    def __init__(self, say: Callable[[str], None], notice_s: float = NOTICE_S) -> None:
        self._say = say
        self._notice_s = notice_s
        self._runner = asyncio.Runner()
        self._task: asyncio.Task[Any] | None = None
        self._is_running = False
        self._is_stoppable = False
        self._is_allowed = False
        self._num_signals = 0

    def __enter__(self) -> Interruptions:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()
        ignore_interrupts()

    def run(self, work: Coroutine[Any, Any, T], is_stoppable: bool = True) -> T:
        """Carry the work out and return its result.

        Args:
            work: may take its cancellation as a wish to end early, and return what it has.
            is_stoppable: whether Ctrl-C cancels it.

        Raises:
            KeyboardInterrupt: it was cancelled and returned nothing.
        """
        self._num_signals = 0
        self._is_stoppable = is_stoppable
        self._is_running = True
        # asyncio puts in its own handler only where it finds Python's, so that this one stays.
        handle_interrupts(self._on_signal)
        try:
            return self._runner.run(self._carry_out(work))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            # A signal that nobody handles cannot cut short what is being written, either.
            ignore_interrupts()
            self._is_running = False
            self._task = None

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Let Ctrl-C be KeyboardInterrupt, for waiting at a prompt."""
        self._is_allowed = True
        handle_interrupts(self._on_signal)
        try:
            yield
        finally:
            ignore_interrupts()
            self._is_allowed = False

    async def _carry_out(self, work: Coroutine[Any, Any, T]) -> T:
        self._task = asyncio.current_task()
        if self._num_signals and self._is_stoppable:
            work.close()
            raise asyncio.CancelledError
        return await work

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if not self._is_running:
            if self._is_allowed:
                raise KeyboardInterrupt
            return
        self._num_signals += 1
        if self._task is not None:
            # A signal may come in the middle of anything; the loop chooses a better moment.
            self._task.get_loop().call_soon_threadsafe(self._stop, self._task, self._num_signals)

    def _stop(self, task: asyncio.Task[Any], num_signals: int) -> None:
        if task.done():
            return
        if num_signals == 1:
            if self._is_stoppable:
                task.cancel()
            task.get_loop().call_later(self._notice_s, self._notice, task)
        elif num_signals == 2:
            self._say("Stopping.")

    def _notice(self, task: asyncio.Task[Any]) -> None:
        if not task.done():
            self._say("Waiting for the engine to stop.")
