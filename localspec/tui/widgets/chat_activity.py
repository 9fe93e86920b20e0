"""The line above the prompt: what is going on, what went wrong, or what can be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.tui.widgets.chat_figures import bar

Kind = Literal["hint", "work", "failure"]

_MARKS: dict[Kind, tuple[str, str]] = {
    "hint": ("", ""),
    "work": ("● ", "$text-accent"),
    "failure": ("! ", "$text-error"),
}
_BAR_WIDTH = 16


@dataclass(frozen=True, slots=True)
class Activity:
    """What the line says. The text may be foreign; the key is our own."""

    text: str = ""
    kind: Kind = "hint"
    fraction: float | None = None
    """How much is done; None for no bar."""
    key: str = ""
    """What a key does, such as `esc stops`; never cut off."""


class ChatActivity(Widget):
    """Always one line, so that nothing jumps."""

    DEFAULT_CSS = """
    ChatActivity { height: 1; padding: 0 2; color: $text-muted; }
    """

    activity: reactive[Activity] = reactive(Activity)
    """What is shown."""

    def render(self) -> Content:
        """Return the line, cut to the width: the key stays."""
        width = max(1, self.content_size.width)
        activity = self.activity
        mark, style = _MARKS[activity.kind]
        key = one_line(activity.key)
        key = f"   {key}" if key and activity.text else key
        shown_bar = "" if activity.fraction is None else f" {bar(activity.fraction, _BAR_WIDTH)}"
        if activity.fraction is not None:
            shown_bar += f" {percent_text(min(1.0, max(0.0, activity.fraction)))}"
        room = max(1, width - len(key) - len(shown_bar) - len(mark))
        text = Content(one_line(activity.text)).truncate(room, ellipsis=True)
        text_style = style if activity.kind == "failure" else ""
        return Content.assemble(
            (mark, style), text.stylize(text_style) if text_style else text, (shown_bar, "$primary"), (key, "bold")
        ).truncate(width, ellipsis=True)
