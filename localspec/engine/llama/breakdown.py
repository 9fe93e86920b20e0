"""llama.cpp's own account of a context's memory, read out of the C++ map in which it is given.

`llama_get_memory_breakdown` (src/llama-ext.h) returns a std::map from buffer types to three sizes, by value: through a
hidden pointer on every common ABI, as a large C struct is. The layout of the tree behind it is not promised by
anybody, so nothing in it is believed before it has been checked against the rest; a map that makes no sense is
an UnreadableBreakdown, and the caller goes by other ways. The few nodes (64 bytes each) are never freed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.engine.llama import ggml
from localspec.engine.llama.buffers import BufferType, known_buffer_types
from localspec.errors import LocalspecError

SYMBOLS = ("llama_get_memory_breakdown", "_Z26llama_get_memory_breakdownPK13llama_context")
"""Its name with C linkage, which it has not yet, and as g++ and clang write it. dlsym adds macOS's underscore."""

MAX_ROWS = 64
"""More kinds of buffers than any machine has."""
MAX_BYTES = 1 << 50
_MAX_ADDRESS = 1 << 57
_FIRST_ADDRESS = 1 << 16
_VALUE = 32
"""Where a node's value begins, in both layouts: three pointers and a colour come before it."""


class UnreadableBreakdown(LocalspecError):
    """The account is missing in this build, or is not laid out as known."""


@dataclass(frozen=True, slots=True)
class BufferUse:
    """Bytes in one kind of buffer."""

    buffer: BufferType
    model_bytes: int
    """Weights."""
    context_bytes: int
    """KV cache and recurrent state."""
    compute_bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a standard library keeps what, in words of the map and bytes of a node."""

    root: int
    count: int
    first: int
    """Word with the leftmost node."""
    left: int
    right: int


LIBSTDCXX = Layout(root=2, count=5, first=3, left=16, right=24)
"""std::_Rb_tree: comparator, then the header's colour, parent, leftmost and rightmost, then the count."""
LIBCXX = Layout(root=1, count=2, first=0, left=0, right=8)
"""std::__tree: the leftmost node, the end node's left child, the count."""


class _Map(ctypes.Structure):
    """Room for a std::map of any standard library."""

    _fields_ = (("words", ctypes.c_size_t * 8),)


def memory_breakdown(context: Any) -> tuple[BufferUse, ...]:
    """Return what a context and its model take, real or only planned (no_alloc), without the buffer of outputs.

    Args:
        context: llama.cpp's pointer.

    Raises:
        UnreadableBreakdown: this build gives no account, or one that cannot be read.
    """
    if sys.platform == "win32":
        # Under MSVC the name is mangled in another way and the layout is another: not tried, so not believed.
        raise _unreadable("it is not tried on this system")
    function = _function()
    known = known_buffer_types()
    words = tuple(function(context).words)
    rows = read_map(words, LIBCXX if sys.platform == "darwin" else LIBSTDCXX, known)
    return tuple(BufferUse(known[handle], *sizes) for handle, sizes in rows)


def read_map(
    words: Sequence[int], layout: Layout, known: Collection[int]
) -> tuple[tuple[int, tuple[int, int, int]], ...]:
    """Return the keys of a map with their three sizes, in order.

    Args:
        words: the map itself.
        layout: the standard library's.
        known: keys that may occur.

    Raises:
        UnreadableBreakdown: pointers, counts, keys or sizes make no sense.
    """
    count = words[layout.count]
    if not 0 < count <= MAX_ROWS:
        raise _unreadable(f"it claims {count} rows")
    nodes = list(_nodes(words[layout.root], layout, count))
    if len(nodes) != count or nodes[0] != words[layout.first]:
        raise _unreadable(f"it claims {count} rows and has {len(nodes)}")
    rows = []
    for node in nodes:
        key, *sizes = (_word(node + _VALUE + 8 * index) for index in range(4))
        if key not in known:
            raise _unreadable("it names a buffer type that ggml does not")
        if max(sizes) > MAX_BYTES:
            raise _unreadable(f"it claims {max(sizes)} bytes")
        rows.append((key, (sizes[0], sizes[1], sizes[2])))
    if len({key for key, _ in rows}) != count:
        raise _unreadable("it names a buffer type twice")
    return tuple(rows)


def _nodes(root: int, layout: Layout, count: int) -> Iterator[int]:
    """Walk the tree in order, and stop at one node more than there should be."""
    above: list[int] = []
    node, found = root, 0
    while above or node:
        while node:
            above.append(_checked(node))
            if len(above) > count:
                raise _unreadable("its nodes form no tree")
            node = _word(node + layout.left)
        node = above.pop()
        yield node
        found += 1
        if found > count:
            return
        node = _word(node + layout.right)


def _checked(address: int) -> int:
    if address % 8 or not _FIRST_ADDRESS <= address < _MAX_ADDRESS:
        raise _unreadable("it holds no pointers where they should be")
    return address


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def _function() -> Any:
    return _exported(SYMBOLS)


@cache
def _exported(names: tuple[str, ...]) -> Any:
    for name in names:
        try:
            function = C._lib[name]
        except AttributeError:
            continue
        function.restype, function.argtypes = _Map, (ctypes.c_void_p,)
        return function
    raise _unreadable("this build has none")


def _unreadable(why: str) -> UnreadableBreakdown:
    return UnreadableBreakdown(
        f"llama.cpp's account of its memory cannot be read: {why}.",
        "Figures come from its log instead, and are right to 0.01 MiB.",
    )


def is_available() -> bool:
    """Say whether this build has the account at all."""
    try:
        return sys.platform != "win32" and ggml.device_count() > 0 and _function() is not None
    except LocalspecError:
        return False
