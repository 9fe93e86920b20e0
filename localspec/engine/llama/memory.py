"""What this process takes, as the system and ggml count it."""

from __future__ import annotations

import sys

import psutil

from localspec.engine.llama.library import devices


def peak_rss_bytes() -> int:
    """Return the largest resident set of this process so far, mapped model files included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    if sys.platform == "linux" and (peak := _high_water_bytes()):
        return peak
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _high_water_bytes() -> int:
    """Return Linux's own figure, 0 where it cannot be read.

    The one of getrusage begins at the size of the process that started this one.
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def device_used_bytes() -> int:
    """Return bytes in use on all GPUs as ggml reports them, by whatever process; 0 without a GPU."""
    return sum(
        device.total_bytes - device.free_bytes for device in devices() if device.type in ("gpu", "integrated_gpu")
    )
