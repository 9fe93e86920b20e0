"""Numbers as people read them. None is a dash."""

from __future__ import annotations

from localspec.cli.screen import DASH

GIB = 1024**3
MIB = 1024**2


def bytes_text(size: int | None) -> str:
    """Return a size in MiB or GiB."""
    if size is None:
        return DASH
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


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
