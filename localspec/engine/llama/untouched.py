"""Host memory that is promised and never touched, for recurrent state that llama.cpp allocates though it only plans.

llama.cpp clears that state, and the system then really provides it: hundreds of MB for some models. While a block
runs, large buffers of ggml's ordinary host memory are therefore pages that nobody touches. Nothing is ever computed
on them.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, c_size_t, c_uint8, c_void_p
from typing import Any

from localspec.engine.llama import ggml
from localspec.engine.llama import ggml_structs as structs
from localspec.errors import MissingSymbolError

LEAST_BYTES = 1 << 20
"""Smaller buffers are left to ggml."""

_ALLOCATE = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
_blocks: dict[int, mmap.mmap] = {}
_logger = logging.getLogger("localspec.engine.untouched")


@contextmanager
def untouched_host_memory() -> Iterator[None]:
    """Let large buffers of host memory be untouched pages while the block runs; they may outlive it.

    Where this build's buffers are not laid out as known, nothing is changed and memory is really taken.
    """
    if not _is_known():
        yield
        return
    kind = structs.BufferType.from_address(ggml.cpu_buffer_type())
    original = kind.iface.alloc_buffer
    plainly = _ALLOCATE(original)

    def allocate(buffer_type: int, size: int) -> int | None:
        try:
            return _reserve(buffer_type, size) if size >= LEAST_BYTES else plainly(buffer_type, size)
        except Exception:
            _logger.exception("%d bytes", size)
            return None

    callback = _ALLOCATE(allocate)
    kind.iface.alloc_buffer = ctypes.cast(callback, c_void_p).value
    try:
        yield
    finally:
        kind.iface.alloc_buffer = original


def num_reserved() -> int:
    """Return how many such buffers there are."""
    return len(_blocks)


def _is_known() -> bool:
    try:
        registry = ggml.symbol("ggml_backend_dev_backend_reg", c_void_p, (c_void_p,))(ggml.device(0))
        return bool(structs.Registry.from_address(registry).api_version == structs.API_VERSION)
    except MissingSymbolError:
        return False


def _reserve(buffer_type: int, size: int) -> int:
    if sys.platform == "win32":
        block = mmap.mmap(-1, size)
    else:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    argtypes = (c_void_p, structs.BufferInterface, c_void_p, c_size_t)
    address: int = ggml.symbol("ggml_backend_buffer_init", c_void_p, argtypes)(buffer_type, _INTERFACE, None, size)
    _blocks[address] = block
    return address


def _base(buffer: int) -> int | None:
    block = _blocks.get(buffer)
    # The view of the block must not outlive this call, or the block could not be closed.
    return ctypes.addressof(ctypes.c_char.from_buffer(block)) if block is not None else None


def _free(buffer: int) -> None:
    block = _blocks.pop(buffer, None)
    if block is not None:
        block.close()


def _ignore(*_: Any) -> None:
    return None


_SET = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t)
_CALLBACKS = {
    "free_buffer": CFUNCTYPE(None, c_void_p)(_free),
    "get_base": CFUNCTYPE(c_void_p, c_void_p)(_base),
    "memset_tensor": CFUNCTYPE(None, c_void_p, c_void_p, c_uint8, c_size_t, c_size_t)(_ignore),
    "set_tensor": _SET(_ignore),
    "get_tensor": _SET(_ignore),
    "clear": CFUNCTYPE(None, c_void_p, c_uint8)(_ignore),
}
_INTERFACE = structs.BufferInterface(**{name: ctypes.cast(call, c_void_p) for name, call in _CALLBACKS.items()})
