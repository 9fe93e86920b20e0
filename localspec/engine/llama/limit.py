"""Bounded time for foreign code that runs in Python: a chat template may loop as long as it likes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from localspec.engine.llama.abort import AbortFlag
from localspec.engine.model import Cancelled

_POLL_S = 0.02

Result = TypeVar("Result")


class OutOfTime(Exception):
    """The code took longer than it may."""


class _Interrupted(BaseException):
    """Raised inside the code; no Exception, so that the code cannot catch it."""


def run_limited(action: Callable[[], Result], limit_s: float, abort: AbortFlag) -> Result:
    """Run Python code, and stop it when its time is over or an abort is asked for.

    A watching thread raises inside this one, between two bytecodes. A single long call into C is not stopped;
    there the app ends the process.

    Raises:
        OutOfTime: it took longer than `limit_s` seconds.
        Cancelled: an abort was asked for.
    """
    thread_id = threading.get_ident()
    is_over = threading.Event()
    lock = threading.Lock()

    def watch() -> None:
        deadline = monotonic() + limit_s
        while not is_over.wait(_POLL_S):
            if abort.is_set or monotonic() > deadline:
                with lock:
                    if not is_over.is_set():
                        error = ctypes.py_object(_Interrupted)
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), error)
                return

    watcher = threading.Thread(target=watch, name="limit", daemon=True)
    watcher.start()
    try:
        try:
            return action()
        finally:
            with lock:
                is_over.set()
            watcher.join()
    except _Interrupted:
        raise (Cancelled if abort.is_set else OutOfTime) from None
