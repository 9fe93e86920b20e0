"""How CUDA and Metal size tensors and choose operations, so that devices which are not here take what real ones would.

After ggml-cuda/{ggml-cuda.cu,fattn.cu,fattn-common.cuh} and ggml-metal/{ggml-metal.cpp,ggml-metal-ops.cpp}. Kernels are
taken as those of a card with tensor cores of Ada or later. In no account here, and none of llama.cpp's: CUDA's
context and memory pools, the workspace of cuBLAS.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

from localspec.engine.llama import ggml
from localspec.engine.llama.ggml_structs import Tensor

MIN_OFFLOAD_BATCH = 32
"""From so many rows on, an operation is worth copying its weights from host memory (GGML_OP_OFFLOAD_MIN_BATCH)."""

_F16 = 1
_F16_BYTES = 2
_CUDA_PADDING = 128
_CUDA_ROW = 512
"""MATRIX_ROW_PADDING, in elements."""
_CUDA_KV_STRIDE = 256
"""FATTN_KQ_STRIDE: positions that a kernel takes at a time."""
_CUDA_KV_TYPES = frozenset({"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"})
_CUDA_HEADS = frozenset({40, 64, 72, 80, 96, 112, 128, 256})
"""Head sizes of which keys and values may be, both the same."""
_CUDA_GROUPED_HEADS = {(192, 128): 8, (320, 256): 32, (512, 512): 1, (576, 512): 1}
"""Sizes of keys and values for which only kernels for grouped heads exist, and what the groups are multiples of."""

_METAL_DEQUANTISED = frozenset({"q4_0", "q4_1", "q5_0", "q5_1", "q8_0"})
_METAL_QUERIES, _METAL_POSITIONS = 8, 64
"""OP_FLASH_ATTN_EXT_NQPSG and _NCPSG; of its vector kernel 1 and 32."""
_METAL_GROUPS = 32
_METAL_SCRATCH = frozenset({"FLASH_ATTN_EXT", "MUL_MAT_ID", "CUMSUM", "ARGSORT", "TOP_K"})
"""Operations that need more than their result."""
_METAL_SCALES_BYTES = 8 + 256 * 4
"""Two factors and N_MM_NPART_AMAX of them, behind the result of a matrix product with experts."""

# llama.cpp asks ten thousand times for each context, nearly always about operations that need nothing special. To look
# at all of memory as one array is by far the fastest way to read a field of a C structure.
_INTS = (ctypes.c_int32 * (1 << 48)).from_address(0)
_TYPE, _OP = Tensor.type.offset // 4, Tensor.op.offset // 4


class _ByNumber(dict[int, bool]):
    """What holds for an operation or a type, asked once for each number that occurs."""

    def __init__(self, test: Callable[[int], bool]) -> None:
        super().__init__()
        self._test = test

    def __missing__(self, number: int) -> bool:
        found = self[number] = self._test(number)
        return found


class BackendRules(Protocol):
    """What decides about the size of buffers on a device."""

    @property
    def alignment(self) -> int:
        """Bytes that a tensor's address is a multiple of."""

    @property
    def has_pinned_memory(self) -> bool:
        """Whether it offers host memory that its copies are fast from."""

    def alloc_bytes(self, address: int) -> int:
        """Return what the tensor at an address takes, with what its operation needs for itself."""

    def can_compute(self, address: int) -> bool:
        """Return whether the operation at an address runs on it; others fall back to the CPU."""

    def wants(self, address: int) -> bool:
        """Return whether it computes an operation whose weights lie in host memory."""


def num_bytes(address: int) -> int:
    """Return the bytes of a tensor's data, as ggml counts them."""
    return _counted_bytes()(address)


class CudaRules:
    """Of NVIDIA's cards, and of AMD's through ROCm."""

    alignment = 128
    has_pinned_memory = True

    def alloc_bytes(self, address: int) -> int:
        """Return what a tensor takes: rows of quantised ones are padded; attention keeps F16 copies of K and V."""
        size = _counted_bytes()(address)
        word = address >> 2
        is_attention = _IS_ATTENTION[_INTS[word + _OP]]
        if not is_attention and not _IS_QUANTISED[_INTS[word + _TYPE]]:
            return size
        tensor = Tensor.from_address(address)
        if is_attention:
            size = _cuda_attention(tensor, size)
        rest = tensor.ne[0] % _CUDA_ROW
        if rest and _IS_QUANTISED[tensor.type]:
            size += _row_bytes(tensor.type, _CUDA_ROW - rest)
        return size

    def can_compute(self, address: int) -> bool:
        """Return whether there is a kernel; of attention there is none for some head sizes and KV types."""
        if not _IS_ATTENTION[_INTS[(address >> 2) + _OP]]:
            return True
        tensor = Tensor.from_address(address)
        query, key, value, mask = _attention_sources(tensor)
        if not {ggml.type_name(key.type), ggml.type_name(value.type)} <= _CUDA_KV_TYPES:
            return False
        if mask is not None and mask.ne[2] != 1:
            return False
        sizes = (int(key.ne[0]), int(value.ne[0]))
        if sizes[0] == sizes[1] and sizes[0] in _CUDA_HEADS:
            return True
        heads, kv_heads = int(query.ne[2]), int(key.ne[2])
        multiple = _CUDA_GROUPED_HEADS.get(sizes)
        if multiple is None or kv_heads == 0:
            return False
        group = heads // kv_heads
        return group >= 2 and group % multiple == 0 and mask is not None and key.ne[1] % _CUDA_KV_STRIDE == 0

    def wants(self, address: int) -> bool:
        """Return whether the operation has enough rows."""
        tensor = Tensor.from_address(address)
        match _op_name(tensor.op):
            case "GET_ROWS":
                return False
            case "MUL_MAT":
                rows = int(tensor.ne[1])
            case "MUL_MAT_ID" | "ROPE" | "ROPE_BACK":
                rows = int(tensor.ne[2])
            case _:
                rows = _num_rows(address)
        return rows >= MIN_OFFLOAD_BATCH


class MetalRules:
    """Of Apple's GPUs."""

    alignment = 32
    has_pinned_memory = False

    def alloc_bytes(self, address: int) -> int:
        """Return what a tensor takes, with the scratch that Metal reserves behind some results."""
        size = _counted_bytes()(address)
        number = _INTS[(address >> 2) + _OP]
        if not _HAS_METAL_SCRATCH[number]:
            return size
        tensor = Tensor.from_address(address)
        match _op_name(number):
            case "FLASH_ATTN_EXT":
                return size + _metal_attention(tensor)
            case "MUL_MAT_ID":
                num_experts, num_tokens = _source(tensor, 0).ne[2], _source(tensor, 2).ne[1]
                return size + int(4 * num_experts * (1 + num_tokens)) + _METAL_SCALES_BYTES
            case "CUMSUM" | "ARGSORT":
                return 2 * size
            case _:
                return 2 * 4 * _num_elements(_source(tensor, 0))

    def can_compute(self, address: int) -> bool:
        """Return True."""
        return True

    def wants(self, address: int) -> bool:
        """Return whether it is a matrix product with enough rows."""
        tensor = Tensor.from_address(address)
        match _op_name(tensor.op):
            case "MUL_MAT":
                return bool(tensor.ne[1] >= MIN_OFFLOAD_BATCH)
            case "MUL_MAT_ID":
                return bool(tensor.ne[2] >= MIN_OFFLOAD_BATCH)
            case _:
                return False


def _cuda_attention(tensor: Tensor, size: int) -> int:
    """Return the size with the F16 copies; the kernel for one or two quantised queries reads K and V as they are."""
    query, key, value, _ = _attention_sources(tensor)
    is_vector = query.ne[1] <= 2 and query.ne[0] % 64 == 0 and query.ne[0] <= 256
    if is_vector and query.ne[0] != 192 and key.ne[1] % _CUDA_KV_STRIDE == 0:
        return size
    end = size
    if key.type != _F16:
        end = _pad(end, _CUDA_PADDING) + _F16_BYTES * _num_elements(key)
    if value.type != _F16 and not _is_view_of(value, key, tensor.src[1]):
        end = _pad(end, _CUDA_PADDING) + _F16_BYTES * _num_elements(value)
    return end


def _metal_attention(tensor: Tensor) -> int:
    """Return the scratch: a padded last chunk, marks of empty blocks, partial results, F16 copies of K and V."""
    query, key, value, mask = _attention_sources(tensor)
    is_view = _is_view_of(value, key, tensor.src[1])
    num_queries = int(query.ne[1])
    row_bytes = (int(key.nb[1]), int(value.nb[1]))
    if num_queries >= MIN_OFFLOAD_BATCH and ggml.type_name(key.type) in _METAL_DEQUANTISED:
        row_bytes = (_F16_BYTES * int(key.ne[0]), _F16_BYTES * int((key if is_view else value).ne[0]))
    mask_rows = 0 if mask is None else int(mask.ne[1] * mask.ne[2] * mask.ne[3])
    chunk = row_bytes[0] * key.ne[2] * key.ne[3] + row_bytes[1] * value.ne[2] * value.ne[3] + _F16_BYTES * mask_rows
    size = _METAL_POSITIONS * int(chunk)
    if mask is not None:
        is_vector = num_queries < 20 and query.ne[0] % 32 == 0
        queries, positions = (1, 32) if is_vector else (_METAL_QUERIES, _METAL_POSITIONS)
        blocks = -(-num_queries // queries) * -(-int(mask.ne[0]) // positions)
        size += _pad(blocks * int(mask.ne[2] * mask.ne[3]), 32)
    results = min(num_queries, 32) * int(query.ne[2] * query.ne[3]) * _METAL_GROUPS
    size += 4 * results * (int(value.ne[0]) + 2)
    size += _pad(_F16_BYTES * _num_elements(key), 16)
    return size if is_view else size + _pad(_F16_BYTES * _num_elements(value), 16)


def _attention_sources(tensor: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    mask = Tensor.from_address(tensor.src[3]) if tensor.src[3] else None
    return _source(tensor, 0), _source(tensor, 1), _source(tensor, 2), mask


def _source(tensor: Tensor, index: int) -> Tensor:
    address = tensor.src[index]
    if not address:
        raise ValueError(f"operation {tensor.op} has no source {index}")
    return Tensor.from_address(address)


def _is_view_of(value: Tensor, key: Tensor, key_address: int | None) -> bool:
    """Return whether V is the first part of K, as with latent attention: one copy then serves both."""
    if not value.view_src:
        return False
    same_place = value.view_src == key.view_src and value.view_offs == key.view_offs
    return bool(value.view_src == key_address or same_place)


def _num_elements(tensor: Tensor) -> int:
    return int(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3])


def _pad(value: int, step: int) -> int:
    return -(-value // step) * step


@cache
def _op_name(number: int) -> str:
    """Return an operation's name; the numbers differ between releases."""
    return ggml.text(ggml.symbol("ggml_op_name", ctypes.c_char_p, (ctypes.c_int,))(number))


def _is_quantised(number: int) -> bool:
    return bool(ggml.symbol("ggml_is_quantized", ctypes.c_bool, (ctypes.c_int,))(number))


_IS_ATTENTION = _ByNumber(lambda number: _op_name(number) == "FLASH_ATTN_EXT")
_HAS_METAL_SCRATCH = _ByNumber(lambda number: _op_name(number) in _METAL_SCRATCH)
_IS_QUANTISED = _ByNumber(_is_quantised)


@cache
def _counted_bytes() -> Callable[[int], int]:
    """Return ggml_nbytes so that calling it keeps the interpreter's lock: giving that up costs more than the call."""
    declared: Any = ggml.symbol("ggml_nbytes", ctypes.c_size_t, (ctypes.c_void_p,))
    prototype = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)
    return prototype(ctypes.cast(declared, ctypes.c_void_p).value or 0)


def _row_bytes(number: int, num_elements: int) -> int:
    return int(ggml.symbol("ggml_row_size", ctypes.c_size_t, (ctypes.c_int, ctypes.c_int64))(number, num_elements))


def _num_rows(address: int) -> int:
    return int(ggml.symbol("ggml_nrows", ctypes.c_int64, (ctypes.c_void_p,))(address))
