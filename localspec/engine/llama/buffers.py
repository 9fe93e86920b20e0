"""The kinds of buffers that ggml knows, and whose memory each is."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from localspec.engine.llama import ggml
from localspec.engine.llama import ggml_structs as structs
from localspec.errors import MissingSymbolError

HOST = "CPU"
"""Device of all host memory: ordinary, pinned for a GPU, or laid out anew for the processor's kernels."""

_HOST_TYPES = (0, 3)
"""Device types of processors and of accelerators beside them (BLAS, AMX), which work in host memory."""
_MAX_EXTRA = 16


@dataclass(frozen=True, slots=True)
class BufferType:
    """One kind."""

    name: str
    """Such as `CUDA0`, `CUDA_Host`, `CPU`, `CPU_REPACK`."""
    device: str
    """A GPU's name, or HOST."""


def known_buffer_types() -> dict[int, BufferType]:
    """Return the kinds of buffers by ggml's handle: of each device its own, its pinned, mapped and special ones.

    Raises:
        MissingSymbolError: this build cannot list them.
    """
    return _known_buffer_types(ggml.device_count())


@cache
def _known_buffer_types(num_devices: int) -> dict[int, BufferType]:
    known = {ggml.cpu_buffer_type(): BufferType(HOST, HOST)}
    for index in range(num_devices):
        device = ggml.device(index)
        own = HOST if ggml.device_type(device) in _HOST_TYPES else ggml.device_name(device)
        for handle in _buffer_types(device):
            known.setdefault(handle, BufferType(_name(handle), HOST if _is_host(handle) else own))
    return known


def _buffer_types(device: int) -> list[int]:
    of_device = (ctypes.c_void_p,)
    handles: list[int | None] = [
        ggml.symbol("ggml_backend_dev_buffer_type", ctypes.c_void_p, of_device)(device),
        ggml.symbol("ggml_backend_dev_host_buffer_type", ctypes.c_void_p, of_device)(device),
    ]
    with suppress(MissingSymbolError):
        handles += _extra_buffer_types(device)
    with suppress(MissingSymbolError):
        handles.append(_mapped_buffer_type(device))
    return [handle for handle in handles if handle]


def _extra_buffer_types(device: int) -> list[int | None]:
    """Return those that a backend offers beside the usual ones, such as CPU_REPACK."""
    registry = ggml.symbol("ggml_backend_dev_backend_reg", ctypes.c_void_p, (ctypes.c_void_p,))(device)
    if not registry:
        return []
    find = ggml.symbol("ggml_backend_reg_get_proc_address", ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p))
    address = find(registry, b"ggml_backend_dev_get_extra_bufts")
    if not address:
        return []
    array = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(device)
    if not array:
        return []
    handles: list[int | None] = []
    for slot in (ctypes.c_void_p * _MAX_EXTRA).from_address(array):
        if slot is None:
            break
        handles.append(slot)
    return handles


@cache
def _mapped_buffer_type(device: int) -> int | None:
    """Return the type of a device's buffers over a mapped file, which only such a buffer tells."""
    properties = structs.DeviceProperties()
    argtypes = (ctypes.c_void_p, ctypes.POINTER(structs.DeviceProperties))
    ggml.symbol("ggml_backend_dev_get_props", None, argtypes)(device, ctypes.byref(properties))
    if not properties.caps.buffer_from_host_ptr:
        return None
    page = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    size = ctypes.c_size_t
    over = ggml.symbol("ggml_backend_dev_buffer_from_host_ptr", ctypes.c_void_p, (*[ctypes.c_void_p] * 2, size, size))
    buffer = over(device, address, mmap.PAGESIZE, mmap.PAGESIZE)
    if not buffer:
        return None
    of_buffer = (ctypes.c_void_p,)
    handle: int = ggml.symbol("ggml_backend_buffer_get_type", ctypes.c_void_p, of_buffer)(buffer)
    ggml.symbol("ggml_backend_buffer_free", None, of_buffer)(buffer)
    return handle


def _name(handle: int) -> str:
    return ggml.text(ggml.symbol("ggml_backend_buft_name", ctypes.c_char_p, (ctypes.c_void_p,))(handle))


def _is_host(handle: int) -> bool:
    return bool(ggml.symbol("ggml_backend_buft_is_host", ctypes.c_bool, (ctypes.c_void_p,))(handle))
