"""Numbers as a report writes them. None is a dash."""

from __future__ import annotations

from localspec.session.reporting.series import Interval
from localspec.session.verdict import factor_text
from localspec.units import memory_scale

DASH = "\N{EN DASH}"


def rate(tps: float | None) -> str:
    """Return tokens per second."""
    return DASH if tps is None else f"{tps:.0f}" if tps >= 99.5 else f"{tps:.1f}"


def share(fraction: float | None) -> str:
    """Return a fraction in percent."""
    return DASH if fraction is None else f"{100 * fraction:.0f} %"


def times(factor: float | None) -> str:
    """Return a factor, such as `1.42x`."""
    return DASH if factor is None else f"{factor_text(factor)}x"


def times_with_interval(found: Interval | None) -> str:
    """Return a factor with its interval, such as `1.42x (1.31 to 1.50)`."""
    if found is None:
        return DASH
    if found.low is None or found.high is None:
        return times(found.median)
    return f"{times(found.median)} ({factor_text(found.low)} to {factor_text(found.high)})"


def rate_with_interval(found: Interval | None) -> str:
    """Return tokens per second with the interval."""
    if found is None:
        return DASH
    return rate(found.median) + _span(found, 0 if found.median >= 99.5 else 1)


def milliseconds(seconds: float | None) -> str:
    """Return a time in milliseconds."""
    if seconds is None:
        return DASH
    value = 1000.0 * seconds
    return f"{value:.0f} ms" if value >= 99.5 else f"{value:.1f} ms" if value >= 0.95 else f"{value:.2f} ms"


def size(num_bytes: float | None) -> str:
    """Return a size in MiB, or in GiB from one on; in powers of 1000 where that was chosen."""
    if num_bytes is None:
        return DASH
    (giga, giga_name), (mega, mega_name), _ = memory_scale()
    if num_bytes >= giga:
        return f"{num_bytes / giga:.2f} {giga_name}"
    value = num_bytes / mega
    return f"{value:.0f} {mega_name}" if value >= 9.95 else f"{value:.1f} {mega_name}"


def count(number: float | None) -> str:
    """Return a whole number."""
    return DASH if number is None else f"{number:.0f}"


def _span(found: Interval, digits: int) -> str:
    if found.low is None or found.high is None:
        return ""
    return f" ({found.low:.{digits}f} to {found.high:.{digits}f})"
