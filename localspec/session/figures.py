"""Numbers as people read them. None is a dash."""

from __future__ import annotations

DASH = "\N{EN DASH}"
"""Shown for a value that does not exist; never 0."""

GIB = 1024**3
MIB = 1024**2
KIB = 1024
_MOST = 10**18
"""Shown of larger numbers, which only a damaged file can state."""


def bytes_text(size: int | None) -> str:
    """Return a size in MiB or GiB, a small one in KiB."""
    if size is None:
        return DASH
    if size > _MOST:
        return f"over {bytes_text(_MOST)}"
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}" if unit == GIB or size < 10 * unit else f"{size / unit:.0f} {name}"
    return f"{size} bytes" if size else "0 MiB"


def bytes_span(first: int, word: str, last: int) -> str:
    """Return two sizes with a word between them, and the unit once if it is the same: `87 to 94 MiB`."""
    unit = bytes_text(last).rpartition(" ")[2]
    return f"{bytes_text(first).removesuffix(f' {unit}')} {word} {bytes_text(last)}"


def rate_text(per_second: float | None) -> str:
    """Return tokens per second with three digits or so."""
    if per_second is None:
        return DASH
    return f"{per_second:.0f}" if per_second >= 100 else f"{per_second:.1f}"


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
