"""Numbers as people read them; the terminal app writes them alike."""

from localspec.session.figures import (
    GIB,
    KIB,
    MIB,
    bytes_span,
    bytes_text,
    context_text,
    count_text,
    duration_text,
    milliseconds_number,
    milliseconds_text,
    number_text,
    percent_text,
    rate_text,
)

__all__ = [
    "GIB",
    "KIB",
    "MIB",
    "bytes_span",
    "bytes_text",
    "context_text",
    "count_text",
    "duration_text",
    "milliseconds_number",
    "milliseconds_text",
    "number_text",
    "percent_text",
    "rate_text",
]
