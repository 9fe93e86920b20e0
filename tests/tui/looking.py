"""What an app shows at this moment."""

from __future__ import annotations

from typing import Any

from textual.app import App


def notices(app: App[Any]) -> str:
    """Return what it has given notice of."""
    return "\n".join(notice.message for notice in app._notifications)


def screen_text(app: App[Any]) -> str:
    """Return all that is on the screen."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    assert len(strips) == height and all(strip.cell_length <= width for strip in strips)
    return "\n".join(strip.text for strip in strips)
