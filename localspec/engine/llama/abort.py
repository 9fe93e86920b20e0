"""A flag that stops llama.cpp inside a step, without Python being asked at every graph node."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import llama_cpp.llama_cpp as C


class AbortFlag:
    """A byte that ggml's abort callback reads.

    ggml asks the callback at each node of the graph: 515 times a token for a model of 30 layers, and a callback in
    Python that only says no cost 2.5 % of its speed (0.5 to 5, eight paired runs). The C library's `strlen` on a
    two-byte buffer answers the same question ("is it non-empty?") without Python, and is a
    `size_t (*)(const char *)` whose low byte is the wanted `bool`.
    """

    def __init__(self) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        libc = ctypes.cdll.msvcrt if sys.platform == "win32" else ctypes.CDLL(None)
        self.callback: Any = ctypes.cast(libc.strlen, C.ggml_abort_callback)
        self.data = ctypes.cast(self._buffer, ctypes.c_void_p)

    @property
    def is_set(self) -> bool:
        """Whether a stop is asked for."""
        return self._buffer.raw[0] != 0

    def set(self) -> None:
        """Ask for a stop; safe from any thread."""
        self._buffer[0] = b"\x01"

    def clear(self) -> None:
        """Take the wish back."""
        self._buffer[0] = b"\x00"
