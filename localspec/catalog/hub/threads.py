"""Blocking calls beside the event loop that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Return what a blocking function returns, or raise what it raises.

    Cancelling returns at once: the function runs on unheard, and the process may end without it. With
    asyncio.to_thread the end of the process would wait for a request to time out.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def answer(value: T) -> None:
        if not future.done():
            future.set_result(value)

    def fail(error: BaseException) -> None:
        if not future.done():
            future.set_exception(error)

    def run() -> None:
        # The loop may be closed by the time the function is through; then nobody wants its answer.
        with suppress(RuntimeError):
            try:
                value = function()
            except BaseException as error:
                loop.call_soon_threadsafe(fail, error)
            else:
                loop.call_soon_threadsafe(answer, value)

    threading.Thread(target=run, name="hub request", daemon=True).start()
    return await future
