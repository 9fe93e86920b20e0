"""One line with a value that the arrow keys turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import DASH
from localspec.tui.plain import plain_line

_MOST = 200
"""Characters that are looked at of a value: no line is longer."""

_ARROW = 2
"""Columns of an arrow with its space."""


class FitKnob(Widget, can_focus=True):
    """Shows a value between two arrows. It only says that it was turned; what comes of it is the screen's business."""

    DEFAULT_CSS = """
    FitKnob {
        height: 1;
        width: 1fr;
        &:focus { background: $primary-muted; color: $text; text-style: bold; }
        &:hover { background: $surface-lighten-1; }
        &:disabled { color: $text-disabled; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,minus", "step(-1)", "Less", id="fit.less", tooltip="The next smaller value", show=False),
        Binding("right,plus", "step(1)", "More", id="fit.more", tooltip="The next larger value", show=False),
        Binding("enter,space", "open", "Enter a value", id="fit.enter", tooltip="Type or choose a value"),
        Binding("up", "app.focus_previous", "Up", id="fit.up", tooltip="To the knob before", show=False),
        Binding("down", "app.focus_next", "Down", id="fit.down", tooltip="To the next knob", show=False),
    ]

    value: reactive[str] = reactive(DASH)
    """What it stands at. Foreign text."""

    @dataclass
    class Stepped(Message):
        """It was turned."""

        knob: FitKnob
        steps: int

        @property
        def control(self) -> FitKnob:
            """The knob, for selectors."""
            return self.knob

    @dataclass
    class Opened(Message):
        """A value is to be typed or chosen."""

        knob: FitKnob

        @property
        def control(self) -> FitKnob:
            """The knob, for selectors."""
            return self.knob

    def render(self) -> Content:
        """Return the value between its arrows, cut to the width."""
        room = max(1, self.content_size.width - 2 * _ARROW)
        value = plain_line(self.value[:_MOST]).truncate(room, ellipsis=True)
        if self.is_disabled:
            return Content.assemble("  ", value)
        return Content.assemble(
            ("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK} ", "dim"),
            value,
            (" \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}", "dim"),
        )

    def action_step(self, steps: int) -> None:
        """Say that it was turned."""
        self.post_message(self.Stepped(self, steps))

    def action_open(self) -> None:
        """Say that a value is wanted."""
        self.post_message(self.Opened(self))

    def on_click(self, event: Click) -> None:
        """An arrow turns, the value between opens."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is None:
            return
        end = 2 * _ARROW + min(plain_line(self.value[:_MOST]).cell_length, max(1, self.content_size.width - 2 * _ARROW))
        if offset.x < _ARROW:
            self.action_step(-1)
        elif end - _ARROW <= offset.x < end:
            self.action_step(1)
        else:
            self.action_open()
