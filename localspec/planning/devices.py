"""Memories that a plan is made for: this machine's, or those of a machine that a person describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_RESERVE_BYTES = 1 << 30
"""Kept free on each device, as llama.cpp's own --fit-target does."""


@dataclass(frozen=True, slots=True)
class HypotheticalDevice:
    """A GPU that is not here. The engine registers it with ggml, so that llama.cpp plans for it as for a real one."""

    name: str
    """For people, such as `RTX 4070`."""
    total_bytes: int
    """Of the card; of the whole machine where memory is unified."""
    is_unified: bool = False
    limit_bytes: int | None = None
    """Unified only: how much of it the GPU may use; None for the usual share."""
    style: Literal["cuda", "metal"] = "cuda"
    """Whose rules of alignment and scratch space it follows."""


@dataclass(frozen=True, slots=True)
class PlanDevice:
    """One memory, with what may be used of it."""

    name: str
    """As llama.cpp calls the device in its rows, such as `CUDA0`; `CPU` for host memory."""
    description: str
    kind: Literal["gpu", "host"]
    total_bytes: int
    free_bytes: int
    reserve_bytes: int
    shares_host_memory: bool = False
    """Unified memory: what is on it counts against the host's memory too."""
    is_hypothetical: bool = False
    note: str = ""
    """A correction or an assumption behind the figures."""

    @property
    def budget_bytes(self) -> int:
        """What a plan may use, never negative."""
        return max(0, self.free_bytes - self.reserve_bytes)


def parse_device(text: str) -> HypotheticalDevice:
    """Return the device that `NAME:SIZE[,unified][,limit=SIZE][,metal]` describes, such as `RTX 4070:12GiB`.

    Raises:
        UsageError: it is not of that form, or a size makes no sense.
    """
    raise NotImplementedError
