"""ggml's device interface as C structures, after ggml/src/ggml-backend-impl.h, ggml-backend.h and ggml.h.

The layout is that of GGML_BACKEND_API_VERSION 2; check_version() says whether the loaded library has it. Function
pointers are untyped here: whoever fills them in gives them their types.
"""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

API_VERSION = 2
"""GGML_BACKEND_API_VERSION of the layouts below."""

GPU, INTEGRATED_GPU, ACCELERATOR = 1, 2, 3
"""enum ggml_backend_dev_type."""


def _pointers(*names: str) -> tuple[tuple[str, type[c_void_p]], ...]:
    return tuple((name, c_void_p) for name in names)


class DeviceCapabilities(Structure):
    """struct ggml_backend_dev_caps."""

    _fields_ = (
        ("is_async", c_bool),
        ("host_buffer", c_bool),
        ("buffer_from_host_ptr", c_bool),
        ("events", c_bool),
        ("mmap_support", c_bool),
    )


class DeviceProperties(Structure):
    """struct ggml_backend_dev_props."""

    _fields_ = (
        ("name", c_char_p),
        ("description", c_char_p),
        ("memory_free", c_size_t),
        ("memory_total", c_size_t),
        ("type", c_int),
        ("device_id", c_char_p),
        ("caps", DeviceCapabilities),
    )


class BufferTypeInterface(Structure):
    """struct ggml_backend_buffer_type_i."""

    _fields_ = _pointers("get_name", "alloc_buffer", "get_alignment", "get_max_size", "get_alloc_size", "is_host")


class BufferType(Structure):
    """struct ggml_backend_buffer_type."""

    _fields_ = (("iface", BufferTypeInterface), ("device", c_void_p), ("context", c_void_p))


class BufferInterface(Structure):
    """struct ggml_backend_buffer_i."""

    _fields_ = _pointers(
        "free_buffer",
        "get_base",
        "init_tensor",
        "memset_tensor",
        "set_tensor",
        "get_tensor",
        "set_tensor_2d",
        "get_tensor_2d",
        "cpy_tensor",
        "clear",
        "reset",
    )


class DeviceInterface(Structure):
    """struct ggml_backend_device_i."""

    _fields_ = _pointers(
        "get_name",
        "get_description",
        "get_memory",
        "get_type",
        "get_props",
        "init_backend",
        "get_buffer_type",
        "get_host_buffer_type",
        "buffer_from_host_ptr",
        "supports_op",
        "supports_buft",
        "offload_op",
        "event_new",
        "event_free",
        "event_synchronize",
    )


class Device(Structure):
    """struct ggml_backend_device."""

    _fields_ = (("iface", DeviceInterface), ("reg", c_void_p), ("context", c_void_p))


class RegistryInterface(Structure):
    """struct ggml_backend_reg_i."""

    _fields_ = _pointers("get_name", "get_device_count", "get_device", "get_proc_address")


class Registry(Structure):
    """struct ggml_backend_reg."""

    _fields_ = (("api_version", c_int), ("iface", RegistryInterface), ("context", c_void_p))


class BackendInterface(Structure):
    """struct ggml_backend_i."""

    _fields_ = _pointers(
        "get_name",
        "free",
        "set_tensor_async",
        "get_tensor_async",
        "set_tensor_2d_async",
        "get_tensor_2d_async",
        "cpy_tensor_async",
        "synchronize",
        "graph_plan_create",
        "graph_plan_free",
        "graph_plan_update",
        "graph_plan_compute",
        "graph_compute",
        "event_record",
        "event_wait",
        "graph_optimize",
    )


class Backend(Structure):
    """struct ggml_backend: a stream of a device."""

    _fields_ = (("guid", c_void_p), ("iface", BackendInterface), ("device", c_void_p), ("context", c_void_p))


class Event(Structure):
    """struct ggml_backend_event."""

    _fields_ = (("device", c_void_p), ("context", c_void_p))


class Tensor(Structure):
    """struct ggml_tensor up to view_offs."""

    _fields_ = (
        ("type", c_int),
        ("buffer", c_void_p),
        ("ne", c_int64 * 4),
        ("nb", c_size_t * 4),
        ("op", c_int),
        ("op_params", c_int32 * 16),
        ("flags", c_int32),
        ("src", c_void_p * 10),
        ("view_src", c_void_p),
        ("view_offs", c_size_t),
    )


def tensor_at(address: int) -> Tensor:
    """Return the tensor at an address, as a view of C memory."""
    return Tensor.from_address(address)


def address_of(structure: Structure) -> int:
    """Return where a structure lies. Whoever passes it to C keeps the structure alive."""
    return ctypes.addressof(structure)
