"""Functions of ggml and its GGUF parser that the Python binding does not declare.

Every function is looked up when it is first called, so that a build which lacks one loses only what needs it.
On ELF and Mach-O, looking in libllama also finds what its dependencies export. The other libraries are opened only
on Windows: the binding's wheel holds copies under several names, and a second copy would have a device
registry and a log callback of its own.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as C

from localspec.engine.llama.ggml_structs import DeviceProperties
from localspec.errors import MissingSymbolError

GGUF_TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64")
"""Names of the metadata types by number, as gguf_type_name gives them."""

GGUF_STRING = 8
GGUF_ARRAY = 9
MAX_DIMS = 4

_C_TYPES: dict[int, Any] = {
    0: ctypes.c_uint8,
    1: ctypes.c_int8,
    2: ctypes.c_uint16,
    3: ctypes.c_int16,
    4: ctypes.c_uint32,
    5: ctypes.c_int32,
    6: ctypes.c_float,
    7: ctypes.c_int8,
    10: ctypes.c_uint64,
    11: ctypes.c_int64,
    12: ctypes.c_double,
}


class _InitParams(ctypes.Structure):
    """struct gguf_init_params."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p))


@cache
def symbol(name: str, restype: Any, argtypes: tuple[Any, ...]) -> Callable[..., Any]:
    """Return an exported C function of llama.cpp or ggml.

    Args:
        name: the exported name.
        restype: ctypes type of the result, None for void.
        argtypes: ctypes types of the arguments.

    Raises:
        MissingSymbolError: no library of this build exports it.
    """
    for library in _libraries():
        try:
            function = library[name]
        except AttributeError:
            continue
        function.restype = restype
        function.argtypes = argtypes
        return function  # type: ignore[no-any-return, unused-ignore]
    raise MissingSymbolError(
        f"This build of llama.cpp has no function {name}.",
        "Install the version of llama-cpp-python that localspec asks for, and unset LLAMA_CPP_LIB_PATH if it is set.",
    )


@cache
def _libraries() -> tuple[Any, ...]:
    llama: Any = C._lib
    if sys.platform != "win32":
        return (llama,)
    folder = Path(llama._name).parent
    names = [folder / f"{prefix}{base}.dll" for base in ("ggml", "ggml-base", "ggml-cpu") for prefix in ("", "lib")]
    return (llama, *(ctypes.CDLL(str(path)) for path in names if path.is_file()))


def load_backends() -> None:
    """Load the backends that lie beside the library as plug-ins, if none is built in."""
    if device_count() == 0:
        symbol("ggml_backend_load_all", None, ())()


def device_count() -> int:
    """Return how many devices ggml knows."""
    return int(symbol("ggml_backend_dev_count", ctypes.c_size_t, ())())


def device(index: int) -> int:
    """Return the handle of a device."""
    return int(symbol("ggml_backend_dev_get", ctypes.c_void_p, (ctypes.c_size_t,))(index))


def device_name(handle: int) -> str:
    """Return a device's short name, such as `CUDA0`."""
    return text(symbol("ggml_backend_dev_name", ctypes.c_char_p, (ctypes.c_void_p,))(handle))


def device_description(handle: int) -> str:
    """Return a device's product name."""
    return text(symbol("ggml_backend_dev_description", ctypes.c_char_p, (ctypes.c_void_p,))(handle))


def device_type(handle: int) -> int:
    """Return a device's type: 0 CPU, 1 GPU, 2 integrated GPU, 3 accelerator, 4 several devices as one."""
    return int(symbol("ggml_backend_dev_type", ctypes.c_int, (ctypes.c_void_p,))(handle))


def device_memory(handle: int) -> tuple[int, int]:
    """Return a device's free and total memory in bytes."""
    free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
    pointer = ctypes.POINTER(ctypes.c_size_t)
    argtypes = (ctypes.c_void_p, pointer, pointer)
    symbol("ggml_backend_dev_memory", None, argtypes)(handle, ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


def device_backend(handle: int) -> str:
    """Return the name of the backend that drives a device, such as `CUDA`."""
    registry = symbol("ggml_backend_dev_backend_reg", ctypes.c_void_p, (ctypes.c_void_p,))(handle)
    return text(symbol("ggml_backend_reg_name", ctypes.c_char_p, (ctypes.c_void_p,))(registry))


def cpu_buffer_type() -> int:
    """Return the handle of ordinary host memory."""
    return int(symbol("ggml_backend_cpu_buffer_type", ctypes.c_void_p, ())())


def device_id(handle: int) -> str:
    """Return a device's address on its bus, such as `0000:c1:00.0`; empty if the backend does not say."""
    properties = DeviceProperties()
    argtypes = (ctypes.c_void_p, ctypes.POINTER(DeviceProperties))
    symbol("ggml_backend_dev_get_props", None, argtypes)(handle, ctypes.byref(properties))
    return text(properties.device_id)


def type_name(number: int) -> str:
    """Return the name of a tensor type, such as `q4_0`."""
    return text(symbol("ggml_type_name", ctypes.c_char_p, (ctypes.c_int,))(number))


def text(value: bytes | None) -> str:
    """Return C text as str; bytes that are not UTF-8 become replacement characters."""
    return (value or b"").decode("utf-8", errors="replace")


class GgufContext:
    """A parsed GGUF header in C memory. Ids of keys and tensors count from 0 and are not checked."""

    def __init__(self, path: str) -> None:
        """Parse a file's header; no tensor data is read.

        Raises:
            ValueError: the parser refused the file; its reason is in the log.
            MissingSymbolError: this build has no GGUF parser.
        """
        init = symbol("gguf_init_from_file", ctypes.c_void_p, (ctypes.c_char_p, _InitParams))
        encoded = path.encode("utf-8") if sys.platform == "win32" else os.fsencode(path)
        self._handle: int | None = init(encoded, _InitParams(True, None))
        if self._handle is None:
            raise ValueError(path)

    def close(self) -> None:
        """Free it. Safe to call twice."""
        if self._handle is not None:
            symbol("gguf_free", None, (ctypes.c_void_p,))(self._handle)
            self._handle = None

    def __enter__(self) -> GgufContext:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _get(self, name: str, restype: Any, *ids: int) -> Any:
        function = symbol(name, restype, (ctypes.c_void_p, *(ctypes.c_int64 for _ in ids)))
        return function(self._handle, *ids)

    @property
    def version(self) -> int:
        """Version of the file format."""
        return int(self._get("gguf_get_version", ctypes.c_uint32))

    @property
    def data_offset(self) -> int:
        """Byte at which tensor data begins."""
        return int(self._get("gguf_get_data_offset", ctypes.c_size_t))

    @property
    def num_keys(self) -> int:
        """Number of metadata entries."""
        return int(self._get("gguf_get_n_kv", ctypes.c_int64))

    @property
    def num_tensors(self) -> int:
        """Number of tensors in this file."""
        return int(self._get("gguf_get_n_tensors", ctypes.c_int64))

    def key(self, index: int) -> str:
        """Return the name of a metadata entry."""
        return text(self._get("gguf_get_key", ctypes.c_char_p, index))

    def type(self, index: int) -> int:
        """Return the type number of a metadata entry."""
        return int(self._get("gguf_get_kv_type", ctypes.c_int, index))

    def scalar(self, index: int) -> int | float | bool | str:
        """Return the value of an entry that is no array."""
        number = self.type(index)
        if number == GGUF_STRING:
            return text(self._get("gguf_get_val_str", ctypes.c_char_p, index))
        pointer = self._get("gguf_get_val_data", ctypes.c_void_p, index)
        return _convert(number, _C_TYPES[number].from_address(pointer).value)

    def array_type(self, index: int) -> int:
        """Return the type number of an array's items."""
        return int(self._get("gguf_get_arr_type", ctypes.c_int, index))

    def array_length(self, index: int) -> int:
        """Return the number of items of an array."""
        return int(self._get("gguf_get_arr_n", ctypes.c_size_t, index))

    def array_items(self, index: int, count: int) -> tuple[int | float | bool | str, ...]:
        """Return the first `count` items of an array."""
        number = self.array_type(index)
        count = min(count, self.array_length(index))
        if count == 0:
            return ()
        if number == GGUF_STRING:
            argtypes = (ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t)
            item = symbol("gguf_get_arr_str", ctypes.c_char_p, argtypes)
            return tuple(text(item(self._handle, index, i)) for i in range(count))
        pointer = self._get("gguf_get_arr_data", ctypes.c_void_p, index)
        return tuple(_convert(number, value) for value in (_C_TYPES[number] * count).from_address(pointer))

    def remove_key(self, key: str) -> None:
        """Take a metadata entry out; ids of the later ones shift."""
        symbol("gguf_remove_key", ctypes.c_int64, (ctypes.c_void_p, ctypes.c_char_p))(self._handle, key.encode())

    def set_text(self, key: str, value: str) -> None:
        """Add or replace a text entry."""
        argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
        symbol("gguf_set_val_str", None, argtypes)(self._handle, key.encode(), value.encode())

    def set_number(self, key: str, value: int) -> None:
        """Add or replace an entry of type u32."""
        argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)
        symbol("gguf_set_val_u32", None, argtypes)(self._handle, key.encode(), value)

    def write_header(self, path: str) -> None:
        """Write metadata and tensor table, padded, without tensor data.

        Raises:
            OSError: it could not be written.
        """
        encoded = path.encode("utf-8") if sys.platform == "win32" else os.fsencode(path)
        argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool)
        if not symbol("gguf_write_to_file", ctypes.c_bool, argtypes)(self._handle, encoded, True):
            raise OSError(f"cannot write {path}")

    def tensor_name(self, index: int) -> str:
        """Return a tensor's name."""
        return text(self._get("gguf_get_tensor_name", ctypes.c_char_p, index))

    def tensor_type(self, index: int) -> int:
        """Return a tensor's ggml type number."""
        return int(self._get("gguf_get_tensor_type", ctypes.c_int, index))

    def tensor_shape(self, index: int) -> tuple[int, ...]:
        """Return a tensor's four dimensions, rows last."""
        pointer = self._get("gguf_get_tensor_ne", ctypes.POINTER(ctypes.c_int64), index)
        return tuple(pointer[:MAX_DIMS])

    def tensor_offset(self, index: int) -> int:
        """Return where a tensor begins, in bytes from the data offset."""
        return int(self._get("gguf_get_tensor_offset", ctypes.c_size_t, index))

    def tensor_bytes(self, index: int) -> int:
        """Return a tensor's size in bytes."""
        return int(self._get("gguf_get_tensor_size", ctypes.c_size_t, index))


def _convert(number: int, value: Any) -> int | float | bool:
    is_bool = GGUF_TYPES[number] == "bool"
    return bool(value) if is_bool else value  # type: ignore[no-any-return, unused-ignore]
