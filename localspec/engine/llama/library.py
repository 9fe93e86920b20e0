"""The loaded llama.cpp: started once, asked about itself and its devices."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata
from typing import Literal

import llama_cpp.llama_cpp as C

from localspec.engine.llama import ggml, log
from localspec.engine.values import BuildInfo, DeviceInfo
from localspec.errors import MissingSymbolError

DeviceType = Literal["cpu", "gpu", "integrated_gpu", "accelerator", "other"]

_DEVICE_TYPES: dict[int, DeviceType] = {0: "cpu", 1: "gpu", 2: "integrated_gpu", 3: "accelerator"}

_METAL = "MTL"


@cache
def start_library() -> None:
    """Catch the log and initialise the backends. Later calls do nothing."""
    log.install()
    C.llama_backend_init()
    try:
        ggml.load_backends()
    except MissingSymbolError as error:
        # Models still load; only the list of devices is missing, and devices() says so.
        log.logger.warning("%s", error.message)


def build_info() -> BuildInfo:
    """Return which llama.cpp this is and what it can do."""
    start_library()
    return BuildInfo(
        llama_cpp_python=metadata.version("llama-cpp-python"),
        llama_cpp=_version(),
        system_info=system_info(),
        supports_gpu_offload=bool(C.llama_supports_gpu_offload()),
        supports_mmap=bool(C.llama_supports_mmap()),
    )


def system_info() -> str:
    """Return llama.cpp's line of CPU features and backends."""
    start_library()
    return ggml.text(C.llama_print_system_info()).strip()


def devices() -> tuple[DeviceInfo, ...]:
    """Return the devices that ggml reports, in its order.

    Raises:
        MissingSymbolError: this build cannot list devices.
    """
    start_library()
    return tuple(_device(ggml.device(index)) for index in range(ggml.device_count()))


def _device(handle: int) -> DeviceInfo:
    free_bytes, total_bytes = ggml.device_memory(handle)
    kind = _DEVICE_TYPES.get(ggml.device_type(handle), "other")
    backend = ggml.device_backend(handle)
    return DeviceInfo(
        name=ggml.device_name(handle),
        description=ggml.device_description(handle).strip(),
        type=kind,
        backend=backend,
        free_bytes=free_bytes,
        total_bytes=total_bytes,
        is_unified=is_unified(kind, backend, platform.machine()),
        device_id=_device_id(handle),
    )


def is_unified(kind: DeviceType, backend: str, machine: str) -> bool:
    """Return whether a device's memory is the host's.

    Metal calls every GPU discrete; on Apple silicon all are integrated, on Intel Macs a GPU with memory of its own is
    what one would use.
    """
    return kind == "integrated_gpu" or (backend == _METAL and machine == "arm64")


def _device_id(handle: int) -> str:
    try:
        return ggml.device_id(handle)
    except MissingSymbolError:
        return ""


def _version() -> str:
    try:
        return ggml.text(C.llama_version())
    except AttributeError:
        return ""
