"""Foreign text for Textual: never markup, never an escape code."""

from __future__ import annotations

from textual.content import Content

from localspec.session.plain_text import one_line, printable

MUTED = "$foreground 60%"
"""Style of what matters less. `$text-muted` is for style sheets only: in a Content it loses its share."""


def plain(text: str, style: str = "") -> Content:
    """Return a text as it is, without control characters; brackets in it are brackets."""
    return Content.styled(printable(text), style) if style else Content(printable(text))


def plain_line(text: str, style: str = "") -> Content:
    """Return a text as one line."""
    return Content.styled(one_line(text), style) if style else Content(one_line(text))
