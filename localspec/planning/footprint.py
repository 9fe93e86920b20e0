"""What a model takes in memory, as llama.cpp itself computes it without allocating."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from localspec.settings import KvType

ModelRole = Literal["target", "draft"]


@dataclass(frozen=True, slots=True)
class Placement:
    """How one model is to be placed and its context made; names are llama.cpp's."""

    n_ctx: int
    """Positions; llama.cpp pads them to 256."""
    n_gpu_layers: int = -1
    """Layers on the GPU, the output layer counted as one; -1 for all."""
    type_k: KvType = "f16"
    type_v: KvType = "f16"
    flash_attn: bool = True
    n_batch: int = 512
    n_ubatch: int = 512
    experts_on_cpu: bool = False
    """Keep a mixture's expert matrices in host memory, whatever layers are offloaded."""
    n_rs_seq: int = 0
    """Snapshots of recurrent state to roll back to; 0 where drafts are off or the memory is attention alone."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """Bytes in one kind of buffer."""

    buffer: str
    """llama.cpp's buffer type, such as `CUDA0`, `CUDA_Host`, `CPU` or `CPU_REPACK`."""
    device: str
    """Whose memory it is: a device's name, `CPU` for all host memory, pinned memory included."""
    weights_bytes: int
    kv_bytes: int
    recurrent_bytes: int
    compute_bytes: int
    output_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes + self.output_bytes


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one model with one context takes."""

    placement: Placement
    """As asked for."""
    rows: tuple[MemoryRow, ...]
    n_ctx: int
    """Read back."""
    n_ctx_train: int
    num_layers: int
    """Greatest useful n_gpu_layers: all blocks and the output layer."""
    num_experts: int
    is_exact: bool
    """From llama.cpp's own account; otherwise from its log and closed forms, right to 0.01 MiB a row."""
    note: str = ""
    """What a person should know, such as why it is not exact."""


@dataclass(frozen=True, slots=True)
class PairFootprint:
    """What target and draft take together; weights that both use are counted with the target alone."""

    target: Footprint
    draft: Footprint | None
