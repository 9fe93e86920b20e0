"""What this process takes, as the system and ggml count it."""

from __future__ import annotations

import sys

import psutil

from localspec.engine.llama.library import devices


def peak_rss_bytes() -> int:
    """Return the largest resident set of this process so far, mapped model files included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def device_used_bytes() -> int:
    """Return bytes in use on all GPUs as ggml reports them, by whatever process; 0 without a GPU."""
    return sum(
        device.total_bytes - device.free_bytes for device in devices() if device.type in ("gpu", "integrated_gpu")
    )
