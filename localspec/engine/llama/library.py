"""The loaded llama.cpp: started once, asked about itself and its devices."""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Literal

import llama_cpp.llama_cpp as C

from localspec.engine.llama import ggml, log
from localspec.engine.values import BuildInfo, DeviceInfo
from localspec.errors import MissingSymbolError

DeviceType = Literal["cpu", "gpu", "integrated_gpu", "accelerator", "other"]

_DEVICE_TYPES: dict[int, DeviceType] = {0: "cpu", 1: "gpu", 2: "integrated_gpu", 3: "accelerator"}


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
    return DeviceInfo(
        name=ggml.device_name(handle),
        description=ggml.device_description(handle).strip(),
        type=_DEVICE_TYPES.get(ggml.device_type(handle), "other"),
        backend=ggml.device_backend(handle),
        free_bytes=free_bytes,
        total_bytes=total_bytes,
    )


def _version() -> str:
    try:
        return ggml.text(C.llama_version())
    except AttributeError:
        return ""
