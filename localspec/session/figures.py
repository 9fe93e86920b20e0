"""Numbers as people read them, in the units in force (`localspec.units`). None is a dash."""

from __future__ import annotations

from localspec.units import memory_scale, units_in_use

DASH = "\N{EN DASH}"
"""Shown for a value that does not exist; never 0."""

GIB = 1024**3
MIB = 1024**2
KIB = 1024
_MOST = 10**18
"""Shown of larger numbers, which only a damaged file can state."""


def bytes_text(size: int | None) -> str:
    """Return a size, such as `1.4 GiB`, `87 MiB` or `9.3 KiB`; in powers of 1000 where that was chosen."""
    if size is None:
        return DASH
    if size > _MOST:
        return f"over {bytes_text(_MOST)}"
    scale = memory_scale()
    for place, (unit, name) in enumerate(scale):
        if size >= unit:
            return f"{size / unit:.1f} {name}" if place == 0 or size < 10 * unit else f"{size / unit:.0f} {name}"
    return f"{size} bytes" if size else f"0 {scale[1][1]}"


def bytes_span(first: int, word: str, last: int) -> str:
    """Return two sizes with a word between them, and the unit once if it is the same: `87 to 94 MiB`."""
    unit = bytes_text(last).rpartition(" ")[2]
    return f"{bytes_text(first).removesuffix(f' {unit}')} {word} {bytes_text(last)}"


def speed_unit() -> str:
    """Return the unit of `rate_text`, `tokens/s` or `ms/token`."""
    return units_in_use().speed


def speed_value(per_second: float) -> float | None:
    """Return tokens per second in the unit in force; None where nothing moves and a token would take for ever."""
    if units_in_use().speed == "tokens/s":
        return per_second
    return 1000.0 / per_second if per_second > 0.0 else None


def rate_text(per_second: float | None) -> str:
    """Return tokens per second, in the unit in force but without it, with three digits or so."""
    value = None if per_second is None else speed_value(per_second)
    if value is None:
        return DASH
    digits = 0 if value >= 100 else 1 if value >= 10 or units_in_use().speed == "tokens/s" else 2
    return f"{value:.{digits}f}"


def speed_text(per_second: float | None) -> str:
    """Return tokens per second in the unit in force, such as `41.3 tokens/s` or `24.2 ms/token`."""
    return f"{rate_text(per_second)} {speed_unit()}"


def rate_span(median: float, low: float | None, high: float | None) -> str:
    """Return tokens per second with an interval, such as `41.3 (39.8 to 42.0)`, the smaller number first."""
    if low is None or high is None:
        return rate_text(median)
    ends = (low, high) if units_in_use().speed == "tokens/s" else (high, low)
    return f"{rate_text(median)} ({rate_text(ends[0])} to {rate_text(ends[1])})"


def percent_text(fraction: float | None) -> str:
    """Return a fraction in percent."""
    return DASH if fraction is None else f"{100 * fraction:.0f} %"


def number_text(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed number of decimals."""
    return DASH if value is None else f"{value:.{digits}f}"


def milliseconds_text(seconds: float | None) -> str:
    """Return a time in milliseconds."""
    return DASH if seconds is None else f"{milliseconds_number(seconds)} ms"


def milliseconds_number(seconds: float | None) -> str:
    """Return a time in milliseconds without the unit."""
    if seconds is None:
        return DASH
    return f"{1000 * seconds:.0f}" if seconds >= 0.1 else f"{1000 * seconds:.1f}"


def count_text(count: int | None) -> str:
    """Return a count of parameters or downloads, such as `135M` or `8.2B`; a dash for 0, which stands for unknown."""
    if not count:
        return DASH
    if count > _MOST:
        return f"over {count_text(_MOST)}"
    for unit, size in (("T", 10**12), ("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 0.9995 * size:
            value = count / size
            return f"{value:.1f}{unit}" if value < 9.95 and unit != "M" else f"{value:.0f}{unit}"
    return str(count)


def duration_text(seconds: float | None) -> str:
    """Return how long something still takes, roughly."""
    if seconds is None:
        return DASH
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def context_text(positions: int) -> str:
    """Return a context length, such as `8192` or `128k`."""
    if not positions:
        return DASH
    return f"{positions // 1024}k" if positions >= 16384 and positions % 1024 == 0 else str(positions)
