"""What a GGUF header says, as a value. Reading one is the engine's business (engine/llama/header.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

Scalar = int | float | bool | str


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """An array of the metadata: its length, and its items unless it is long."""

    type: str
    length: int
    items: tuple[Scalar, ...]
    """All items, or the first ones of a long array."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One row of the tensor table."""

    name: str
    type: str
    shape: tuple[int, ...]
    """Dimensions in ggml's order (rows last), without trailing ones."""
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata and tensor table of one model, however many files it is split into."""

    path: str
    version: int
    file_bytes: int
    """All shards together."""
    data_offset: int
    """Where the first file's tensor data begins."""
    shards: tuple[str, ...]
    metadata: dict[str, Scalar | ArrayValue]
    tensors: tuple[TensorInfo, ...] = field(default=())
    num_tensors: int = 0
    num_params: int = 0
    tensor_bytes: int = 0
    vocabulary_fingerprint: str = ""
    """Names the list of token texts: equal exactly where all texts are. Empty for a file without a vocabulary."""
    vocabulary_at: int = 0
    """Byte of the first file at which the list of token texts begins, with the length of the first; 0 for none."""

    def text(self, key: str, default: str = "") -> str:
        """Return a string value, or the default if it is absent or of another type."""
        value = self.metadata.get(key, default)
        return value if isinstance(value, str) else default

    def integer(self, key: str, default: int = 0) -> int:
        """Return an integer value, or the default if it is absent or of another type."""
        value = self.metadata.get(key, default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    @property
    def architecture(self) -> str:
        """llama.cpp's architecture name, such as `llama`; empty if the file does not say."""
        return self.text("general.architecture")

    def arch_integer(self, key: str, default: int = 0) -> int:
        """Return `<architecture>.<key>`, such as block_count."""
        return self.integer(f"{self.architecture}.{key}", default)
