"""GPUs that are not here, registered with ggml so that llama.cpp plans for them as for real ones.

Each is a ggml device whose functions are Python's. llama.cpp asks it for names, memory and sizes; nothing is ever
computed on it, and what is allocated on it (recurrent state, even with no_alloc) is memory of the system that nobody
touches. A device stays for the life of the process, for which reason a set of them has a process of its own.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import sys
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, POINTER, addressof, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_void_p
from functools import cache
from typing import Any

from localspec.catalog.gguf_walk import printable
from localspec.engine.llama import ggml
from localspec.engine.llama import ggml_structs as structs
from localspec.engine.llama.backend_rules import BackendRules, CudaRules, MetalRules, num_bytes
from localspec.engine.llama.library import start_library
from localspec.errors import LocalspecError, MissingSymbolError, UsageError
from localspec.planning.devices import (
    MAX_DEVICE_BYTES,
    MAX_HYPOTHETICAL,
    MAX_NAME,
    MIN_DEVICE_BYTES,
    HypotheticalDevice,
    hypothetical_name,
)

BACKEND = "HYPO"
"""Name of the backend that these devices say they belong to."""

MAX_BUFFER_BYTES = 4 << 30
"""More is never allocated on one of them, not even untouched: somebody is trying to load a model."""

_FAILED = -1
"""GGML_STATUS_FAILED."""
_NEEDED = ("ggml_nbytes", "ggml_nrows", "ggml_op_name", "ggml_is_quantized", "ggml_row_size")

_logger = logging.getLogger("localspec.engine.hypothetical")
_registered: list[_Device] = []
"""Kept for ever: ggml has their addresses."""


def register(devices: Sequence[HypotheticalDevice]) -> None:
    """Let llama.cpp see these devices, named HYPO0, HYPO1 and so on, from now to the end of the process.

    Raises:
        UsageError: there are none or too many, or a size makes no sense.
        LocalspecError: this process has hypothetical devices already.
        MissingSymbolError: this build's devices are not those that we know how to make.
    """
    start_library()
    # Accelerators such as BLAS are always among llama.cpp's backends too, and one too many ends the process.
    types = [ggml.device_type(ggml.device(index)) for index in range(ggml.device_count())]
    most = MAX_HYPOTHETICAL - types.count(structs.ACCELERATOR)
    if not 0 < len(devices) <= most:
        raise UsageError(f"{len(devices)} devices cannot be planned for.", f"Describe 1 to {most}.")
    for device in devices:
        if not MIN_DEVICE_BYTES <= device.usable_bytes <= device.total_bytes <= MAX_DEVICE_BYTES:
            raise UsageError(
                f"The memory of {printable(device.name)} makes no sense.", "Sizes go from 64 MiB to 16 TiB."
            )
    if _registered:
        raise LocalspecError(
            "This engine process has hypothetical devices already.", "Start another engine for other devices."
        )
    check_version()
    for name in _NEEDED:
        ggml.symbol(name, c_void_p, ())
    add = ggml.symbol("ggml_backend_device_register", None, (c_void_p,))
    _registered.extend(_Device(index, device) for index, device in enumerate(devices))
    for made in _registered:
        add(made.address)


def handles() -> tuple[int, ...]:
    """Return ggml's handles of the registered devices, in their order: what llama.cpp may place layers on."""
    return tuple(device.address for device in _registered)


def num_allocated() -> int:
    """Return how many buffers are allocated on the registered devices."""
    return sum(device.num_allocated for device in _registered)


def check_version() -> None:
    """Look whether the library's devices are laid out as ours are.

    Raises:
        MissingSymbolError: they are not, or cannot be looked at.
    """
    hint = "Install the version of llama-cpp-python that localspec asks for."
    if ggml.device_count() == 0:
        raise MissingSymbolError("llama.cpp lists no device to compare a described one with.", hint)
    registry = ggml.symbol("ggml_backend_dev_backend_reg", c_void_p, (c_void_p,))(ggml.device(0))
    version = structs.Registry.from_address(registry).api_version
    if version != structs.API_VERSION:
        raise MissingSymbolError(
            f"This build of llama.cpp has devices of version {version}, and localspec can describe those of "
            f"version {structs.API_VERSION}.",
            hint,
        )


class _Device:
    """One device with its buffer types and its stream, as C structures that point into each other."""

    def __init__(self, index: int, described: HypotheticalDevice) -> None:
        name = hypothetical_name(index)
        self._memory_bytes = described.usable_bytes
        self._is_unified = described.is_unified
        self._rules: BackendRules = MetalRules() if described.style == "metal" else CudaRules()
        self._kept: list[Any] = []
        self._blocks: dict[int, mmap.mmap] = {}
        self._name = self._text(name)
        self._description = self._text(printable(described.name)[:MAX_NAME])
        self._device = structs.Device()
        self._stream = structs.Backend()
        self._event = structs.Event(addressof(self._device), None)
        self._registry = structs.Registry(structs.API_VERSION)
        self._buffers = self._make_buffers()
        self._own_type = self._make_buffer_type(self._name, self._rules.alignment, is_host=False)
        # Host memory keeps the processor's own alignment, as CUDA's pinned buffer type does.
        self._pinned_type = self._make_buffer_type(self._text(f"{BACKEND}_Host"), 32, is_host=True)
        self._fill_stream(index)
        self._fill_registry()
        self._fill_device()

    @property
    def address(self) -> int:
        """ggml's handle."""
        return addressof(self._device)

    @property
    def num_allocated(self) -> int:
        """Buffers that are allocated on it."""
        return len(self._blocks)

    def _text(self, value: str) -> Any:
        kept = ctypes.create_string_buffer(value.encode("utf-8", errors="replace"))
        self._kept.append(kept)
        return kept

    def _callback(self, function: Callable[..., Any], restype: Any, *argtypes: Any, failed: Any = None) -> Any:
        """Return a Python function as a C function pointer that lives as long as the device.

        An exception must not reach C: it is logged, and `failed` is returned.
        """

        def guarded(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception:
                _complain(function.__name__)
                return failed

        callback = CFUNCTYPE(restype, *argtypes)(guarded)
        self._kept.append(callback)
        return ctypes.cast(callback, c_void_p)

    def _answer(self, name: str, ask: Callable[[int], Any], restype: Any, failed: Callable[[int], Any]) -> Any:
        """Return the same for a question about one thing that llama.cpp asks thousands of times."""

        def guarded(_: int, address: int) -> Any:
            try:
                return ask(address)
            except Exception:
                _complain(name)
                return failed(address)

        callback = CFUNCTYPE(restype, c_void_p, c_void_p)(guarded)
        self._kept.append(callback)
        return ctypes.cast(callback, c_void_p)

    def _constant(self, value: Any, restype: Any, *argtypes: Any) -> Any:
        return self._callback(lambda *_: value, restype, *argtypes)

    def _make_buffers(self) -> structs.BufferInterface:
        nothing = self._constant(None, None, c_void_p)
        copy = self._constant(None, None, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t)
        return structs.BufferInterface(
            free_buffer=self._callback(self._free, None, c_void_p),
            get_base=self._callback(self._base, c_void_p, c_void_p),
            memset_tensor=self._constant(None, None, c_void_p, c_void_p, c_uint8, c_size_t, c_size_t),
            set_tensor=copy,
            get_tensor=copy,
            # The memory is zero from the start, and clearing it would make the system really provide it.
            clear=self._constant(None, None, c_void_p, c_uint8),
            reset=nothing,
        )

    def _make_buffer_type(self, name: Any, alignment: int, is_host: bool) -> structs.BufferType:
        interface = structs.BufferTypeInterface(
            get_name=self._constant(addressof(name), c_void_p, c_void_p),
            alloc_buffer=self._callback(self._allocate, c_void_p, c_void_p, c_size_t),
            get_alignment=self._constant(alignment, c_size_t, c_void_p),
            is_host=self._constant(is_host, c_bool, c_void_p),
        )
        if not is_host:
            # Less than the tensor itself would end the process.
            interface.get_alloc_size = self._answer("alloc_bytes", self._rules.alloc_bytes, c_size_t, num_bytes)
        return structs.BufferType(interface, self.address, None)

    def _fill_stream(self, index: int) -> None:
        guid = ctypes.create_string_buffer(b"localspec HYPO %c" % index, 16)
        self._kept.append(guid)
        self._stream.guid = addressof(guid)
        self._stream.device = self.address
        interface = self._stream.iface
        interface.get_name = self._constant(addressof(self._name), c_void_p, c_void_p)
        interface.free = self._constant(None, None, c_void_p)
        interface.synchronize = self._constant(None, None, c_void_p)
        interface.graph_compute = self._constant(_FAILED, c_int, c_void_p, c_void_p)
        interface.event_record = self._constant(None, None, c_void_p, c_void_p)
        interface.event_wait = self._constant(None, None, c_void_p, c_void_p)

    def _fill_registry(self) -> None:
        interface = self._registry.iface
        interface.get_name = self._constant(addressof(self._text(BACKEND)), c_void_p, c_void_p)
        interface.get_device_count = self._constant(1, c_size_t, c_void_p)
        interface.get_device = self._constant(self.address, c_void_p, c_void_p, c_size_t)
        interface.get_proc_address = self._constant(None, c_void_p, c_void_p, c_char_p)

    def _fill_device(self) -> None:
        self._device.reg = addressof(self._registry)
        kind = structs.INTEGRATED_GPU if self._is_unified else structs.GPU
        sizes = POINTER(c_size_t)
        interface = self._device.iface
        interface.get_name = self._constant(addressof(self._name), c_void_p, c_void_p)
        interface.get_description = self._constant(addressof(self._description), c_void_p, c_void_p)
        interface.get_memory = self._callback(self._memory, None, c_void_p, sizes, sizes)
        interface.get_type = self._constant(kind, c_int, c_void_p)
        interface.get_props = self._callback(self._properties, None, c_void_p, POINTER(structs.DeviceProperties))
        interface.init_backend = self._constant(addressof(self._stream), c_void_p, c_void_p, c_char_p)
        interface.get_buffer_type = self._constant(addressof(self._own_type), c_void_p, c_void_p)
        if self._rules.has_pinned_memory:
            interface.get_host_buffer_type = self._constant(addressof(self._pinned_type), c_void_p, c_void_p)
        types = [addressof(self._own_type)]
        if self._is_unified and self._rules.has_pinned_memory:
            types.append(addressof(self._pinned_type))
        interface.supports_op = self._answer("supports_op", self._rules.can_compute, c_bool, lambda _: True)
        interface.supports_buft = self._answer("supports_buft", types.__contains__, c_bool, lambda _: False)
        interface.offload_op = self._answer("offload_op", self._rules.wants, c_bool, lambda _: False)
        # Real backends have both, and llama.cpp then overlaps the work of several GPUs, for which it copies inputs.
        interface.event_new = self._constant(addressof(self._event), c_void_p, c_void_p)
        interface.event_free = self._constant(None, None, c_void_p, c_void_p)
        interface.event_synchronize = self._constant(None, None, c_void_p, c_void_p)

    def _memory(self, _: int, free: Any, total: Any) -> None:
        free[0] = total[0] = self._memory_bytes

    def _properties(self, _: int, pointer: Any) -> None:
        properties = pointer[0]
        properties.name = ctypes.cast(self._name, c_char_p)
        properties.description = ctypes.cast(self._description, c_char_p)
        properties.memory_free = properties.memory_total = self._memory_bytes
        properties.type = structs.INTEGRATED_GPU if self._is_unified else structs.GPU
        properties.device_id = None
        properties.caps = structs.DeviceCapabilities(
            is_async=True,
            host_buffer=self._rules.has_pinned_memory,
            buffer_from_host_ptr=False,
            events=True,
            mmap_support=not self._is_unified,
        )

    def _allocate(self, buffer_type: int, size: int) -> int | None:
        if size > MAX_BUFFER_BYTES:
            _logger.error("%d bytes are more than is ever allocated on a hypothetical device", size)
            return None
        block = _reserve(size)
        create = ggml.symbol(
            "ggml_backend_buffer_init", c_void_p, (c_void_p, structs.BufferInterface, c_void_p, c_size_t)
        )
        buffer: int = create(buffer_type, self._buffers, None, size)
        self._blocks[buffer] = block
        return buffer

    def _base(self, buffer: int) -> int | None:
        # The view of the block must not outlive this call, or the block could not be closed.
        return addressof(ctypes.c_char.from_buffer(self._blocks[buffer]))

    def _free(self, buffer: int) -> None:
        self._blocks.pop(buffer).close()


@cache
def _complain(what: str) -> None:
    """Log the exception that is being handled, once: llama.cpp asks thousands of times."""
    _logger.exception("hypothetical devices fail in %s", what)


def _reserve(size: int) -> mmap.mmap:
    """Return zeroed memory at a page's start, which the system provides only as far as it is touched."""
    if sys.platform == "win32":
        return mmap.mmap(-1, max(1, size))
    return mmap.mmap(-1, max(1, size), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
