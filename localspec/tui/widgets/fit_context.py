"""The context as a line to slide along, from 256 positions to what the target was trained for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from localspec.planning.notes import CONTEXT_PADDING
from localspec.session.figures import DASH

MIN_TOP = 8192
"""The least that the line's end stands for."""

_VALUE = 13
"""Columns kept for the figure."""


@dataclass(frozen=True, slots=True)
class ContextScale:
    """What the line shows."""

    n_ctx: int = 4096
    """As the knob stands; 0 for the most that fits."""
    planned: int = 0
    """Positions of the plan; 0 while there is none."""
    largest: int = 0
    """The most that fits; 0 if nothing does, or it is not known."""
    trained: int = 0
    """What the target was trained for; 0 while it is not known."""

    @property
    def shown(self) -> int:
        """Positions of the mark."""
        return self.n_ctx or self.planned

    @property
    def top(self) -> int:
        """Positions at the line's end."""
        return max(MIN_TOP, self.trained, self.shown)

    def column(self, n_ctx: int, width: int) -> int:
        """Return where positions lie on a line of that width; a doubling is everywhere as long."""
        share = math.log2(max(n_ctx, CONTEXT_PADDING) / CONTEXT_PADDING) / math.log2(self.top / CONTEXT_PADDING)
        return min(width - 1, int(share * (width - 1) + 0.5))

    def positions(self, column: int, width: int) -> int:
        """Return the positions at a column, on a multiple of 256."""
        share = min(1.0, max(0.0, column / max(1, width - 1)))
        num_pieces: float = (self.top / CONTEXT_PADDING) ** share
        return CONTEXT_PADDING * max(1, round(num_pieces))


class FitContext(Widget, can_focus=True):
    """A slider. It only says where it was moved to."""

    DEFAULT_CSS = """
    FitContext {
        height: 1;
        width: 1fr;
        &:focus { background: $primary-muted; color: $text; text-style: bold; }
        &:hover { background: $surface-lighten-1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,minus", "step(-1)", "Less", id="fit.context.less", tooltip="256 or 1024 less", show=False),
        Binding("right,plus", "step(1)", "More", id="fit.context.more", tooltip="256 or 1024 more", show=False),
        Binding("pageup", "double(1)", "Double", id="fit.context.double", tooltip="Twice the context", show=False),
        Binding("pagedown", "double(-1)", "Halve", id="fit.context.halve", tooltip="Half the context", show=False),
        Binding("home", "set(256)", "Least", id="fit.context.least", tooltip="256 positions", show=False),
        Binding("end,m", "set(0)", "Max", id="fit.context.max", tooltip="As many positions as fit"),
        Binding("enter,space", "open", "Enter a value", id="fit.context.enter", tooltip="Type a number, 32k or max"),
        Binding("up", "app.focus_previous", "Up", id="fit.context.up", tooltip="To the knob before", show=False),
        Binding("down", "app.focus_next", "Down", id="fit.context.down", tooltip="To the next knob", show=False),
    ]

    scale: reactive[ContextScale] = reactive(ContextScale)
    """What is shown."""

    @dataclass
    class Stepped(Message):
        """It was moved by some steps."""

        steps: int

    @dataclass
    class Doubled(Message):
        """It is to be twice or, below 0, half."""

        direction: int

    @dataclass
    class Chosen(Message):
        """It was put to a place; 0 for the most that fits."""

        n_ctx: int

    class Opened(Message):
        """A number is to be typed."""

    def render(self) -> Content:
        """Return the line with its mark, the end of what fits, and the figure."""
        scale, width = self.scale, self._track
        mark = scale.column(scale.shown, width) if scale.shown else 0
        edge = scale.column(scale.largest, width) if scale.largest else width
        cells = ["━" if column <= edge else "·" for column in range(width)]
        styles = ["$primary" if column <= mark else "dim" for column in range(width)]
        if 0 < edge < width:
            cells[edge], styles[edge] = "┃", ""
        if scale.shown:
            cells[mark], styles[mark] = "●", "$text-error" if scale.largest and scale.shown > scale.largest else ""
        figure = str(scale.shown or DASH)
        value = f"max {figure}" if scale.n_ctx == 0 else figure
        return Content.assemble(*zip(cells, styles, strict=True), f" {value}")

    def action_step(self, steps: int) -> None:
        """Say that it was moved."""
        self.post_message(self.Stepped(steps))

    def action_double(self, direction: int) -> None:
        """Say that it is to be twice or half."""
        self.post_message(self.Doubled(direction))

    def action_set(self, n_ctx: int) -> None:
        """Say where it was put."""
        self.post_message(self.Chosen(n_ctx))

    def action_open(self) -> None:
        """Say that a number is wanted."""
        self.post_message(self.Opened())

    def on_click(self, event: Click) -> None:
        """The line is put where it was hit; the figure opens."""
        event.stop()
        offset = event.get_content_offset(self)
        if offset is not None and offset.x < self._track:
            self.action_set(self.scale.positions(offset.x, self._track))
        else:
            self.action_open()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Turn the wheel for more."""
        if self.has_focus:
            event.stop()
            self.action_step(1)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Turn the wheel for less."""
        if self.has_focus:
            event.stop()
            self.action_step(-1)

    @property
    def _track(self) -> int:
        return max(2, self.content_size.width - _VALUE)
