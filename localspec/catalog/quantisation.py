"""llama.cpp's names for quantisations, and their numbers in a file's header."""

from __future__ import annotations

from localspec.catalog.header import GgufHeader

FILE_TYPES = {
    "F32": 0,
    "F16": 1,
    "Q4_0": 2,
    "Q4_1": 3,
    "Q8_0": 7,
    "Q5_0": 8,
    "Q5_1": 9,
    "Q2_K": 10,
    "Q3_K_S": 11,
    "Q3_K_M": 12,
    "Q3_K_L": 13,
    "Q4_K_S": 14,
    "Q4_K_M": 15,
    "Q5_K_S": 16,
    "Q5_K_M": 17,
    "Q6_K": 18,
    "IQ2_XXS": 19,
    "IQ2_XS": 20,
    "Q2_K_S": 21,
    "IQ3_XS": 22,
    "IQ3_XXS": 23,
    "IQ1_S": 24,
    "IQ4_NL": 25,
    "IQ3_S": 26,
    "IQ3_M": 27,
    "IQ2_S": 28,
    "IQ2_M": 29,
    "IQ4_XS": 30,
    "IQ1_M": 31,
    "BF16": 32,
    "TQ1_0": 36,
    "TQ2_0": 37,
    "MXFP4_MOE": 38,
    "NVFP4": 39,
    "Q1_0": 40,
    "Q2_0": 41,
}
"""enum llama_ftype, with the names of llama.cpp's quantising tool."""

_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
_GUESSED = 1024
_FILE_TYPE_NAMES = {number: name for name, number in FILE_TYPES.items()}


def file_type_number(name: str) -> int | None:
    """Return llama.cpp's number of a quantisation, in any case of letters; None if there is none of that name."""
    upper = name.upper()
    return FILE_TYPES.get(_ALIASES.get(upper, upper))


def file_type_name(number: int) -> str:
    """Return the name of a quantisation, also of one that llama.cpp guessed; empty if unknown."""
    return _FILE_TYPE_NAMES.get(number & ~_GUESSED, "")


def header_quantisation(header: GgufHeader) -> str:
    """Return the quantisation that a file states; else the type of most of its weight bytes; else empty."""
    stated = file_type_name(header.integer("general.file_type", -1)) if "general.file_type" in header.metadata else ""
    if stated:
        return stated
    sizes: dict[str, int] = {}
    for tensor in header.tensors:
        sizes[tensor.type] = sizes.get(tensor.type, 0) + tensor.size_bytes
    return max(sizes, key=lambda name: sizes[name]).upper() if sizes else ""
