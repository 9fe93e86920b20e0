"""What llama.cpp and ggml say: caught, kept, and never printed.

Their messages come in pieces. Pieces are joined to lines; lines go to the Python logger `localspec.llama` and into a
short memory whose errors explain failures.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

import llama_cpp.llama_cpp as C

from localspec.catalog.gguf_walk import printable
from localspec.engine.llama import ggml
from localspec.errors import MissingSymbolError

Level = Literal["debug", "info", "warning", "error"]
Listener = Callable[[str], None]

NUM_KEPT = 200
"""Lines that are remembered."""

_LEVELS: dict[int, Level] = {0: "info", 1: "debug", 2: "info", 3: "warning", 4: "error"}
_ALL_LEVELS: frozenset[Level] = frozenset(_LEVELS.values())
_ERRORS: frozenset[Level] = frozenset({"error"})
_WARNINGS: frozenset[Level] = frozenset({"warning"})
_DEBUG, _CONTINUED = 1, 5
_NOISE = b"llama_graph_n_input_tensors:"
"""A line for each use of each input, over a thousand a context: they would push out what explains a failure."""
_MAX_LINE = 4000
_FUNCTION = re.compile(r"^[A-Za-z_][A-Za-z0-9_:]*: ")
_TELLS_NOTHING = re.compile(r"failed to load model$|^exiting$", re.IGNORECASE)

logger = logging.getLogger("localspec.llama")
# Without a handler of some kind logging would print warnings to stderr.
logger.addHandler(logging.NullHandler())


class LineLog:
    """Joins pieces to lines and remembers the last ones."""

    def __init__(self, num_kept: int = NUM_KEPT) -> None:
        self._lock = threading.RLock()
        self._lines: deque[tuple[int, Level, str]] = deque(maxlen=num_kept)
        self._listeners: list[Listener] = []
        self._partial = ""
        self._level: Level = "info"
        self._num_lines = 0

    @property
    def position(self) -> int:
        """How many lines there have been; a mark for `since`."""
        with self._lock:
            return self._num_lines

    def write(self, level: int, piece: bytes) -> None:
        """Take a piece with ggml's level number. Pieces longer than a line are cut into lines."""
        with self._lock:
            text = piece.decode("utf-8", errors="replace")
            if level != _CONTINUED:
                if self._partial and not text.startswith("\n"):
                    self._end_line()
                self._level = _LEVELS.get(level, "info")
            *complete, rest = (self._partial + text).split("\n")
            for line in complete:
                self._partial = line
                self._end_line()
            self._partial = rest[:_MAX_LINE]

    def lines(self, since: int = 0, levels: Collection[Level] = _ALL_LEVELS) -> tuple[str, ...]:
        """Return the remembered lines after a mark, oldest first."""
        with self._lock:
            return tuple(line for number, level, line in self._lines if number >= since and level in levels)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Call `listener` with each line while the block runs. What it raises is dropped: it runs inside C."""
        with self._lock:
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)

    def _end_line(self) -> None:
        line = printable(self._partial.rstrip())
        self._partial = ""
        if not line:
            return
        self._lines.append((self._num_lines, self._level, line))
        self._num_lines += 1
        logger.log(logging.getLevelNamesMapping()[self._level.upper()], "%s", line)
        for listener in tuple(self._listeners):
            with suppress(Exception):
                listener(line)


_LOG = LineLog()


@C.llama_log_callback  # type: ignore[untyped-decorator, unused-ignore]
def _callback(level: int, piece: bytes | None, _: Any) -> None:
    with suppress(Exception):
        if piece is None or (level == _DEBUG and piece.startswith(_NOISE)):
            return
        _LOG.write(level, piece)


def _on_abort(message: bytes | None) -> None:
    # After this the process ends, by SIGABRT: the log is what explains it.
    with suppress(Exception):
        _LOG.write(4, b"llama.cpp stopped at a failed check: " + (message or b"") + b"\n")


_abort_callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_on_abort)


def install() -> None:
    """Make this module the receiver of both libraries' messages; importing the binding installs one that prints."""
    C.llama_log_set(_callback, ctypes.c_void_p(0))
    # A backtrace would be printed, by a debugger that is started for it.
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    with suppress(MissingSymbolError):
        ggml.symbol("ggml_set_abort_callback", ctypes.c_void_p, (ctypes.c_void_p,))(_abort_callback)


def position() -> int:
    """Return a mark: pass it as `since` to see only what is said later."""
    return _LOG.position


def tail(num_lines: int = 20, since: int = 0) -> tuple[str, ...]:
    """Return the last lines of any level, oldest first."""
    lines = _LOG.lines(since)
    return lines[-num_lines:] if num_lines > 0 else ()


def recent_errors(since: int = 0) -> tuple[str, ...]:
    """Return the remembered errors, oldest first."""
    return _LOG.lines(since, _ERRORS)


def last_error(since: int = 0) -> str:
    """Return the latest error that says why, or else the latest warning, without the name of the C function.

    Empty if there is neither.
    """
    for lines in (recent_errors(since), _LOG.lines(since, _WARNINGS)):
        for line in reversed(lines):
            if not _TELLS_NOTHING.search(line):
                return _FUNCTION.sub("", line)
    return ""


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with each line that the libraries log while the block runs."""
    with _LOG.listening(listener):
        yield
