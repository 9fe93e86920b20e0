"""llama.cpp's names for KV cache types, and their numbers."""

from __future__ import annotations

from localspec.engine.values import KvType

KV_TYPES: dict[KvType, int] = {
    "f32": 0,
    "f16": 1,
    "q4_0": 2,
    "q4_1": 3,
    "q5_0": 6,
    "q5_1": 7,
    "q8_0": 8,
    "iq4_nl": 20,
    "bf16": 30,
}
"""enum ggml_type, those that a KV cache may have."""


def kv_type_number(name: KvType) -> int:
    """Return ggml's number of a KV cache type."""
    return KV_TYPES[name]
