"""Fields to choose with. What is chosen differs by a character, so that it can be told without colours."""

from __future__ import annotations

from typing import TypeVar

from rich.segment import Segment
from textual.content import Content
from textual.strip import Strip
from textual.widgets import Checkbox, RadioButton, SelectionList
from textual.widgets._toggle_button import ToggleButton
from textual.widgets.option_list import OptionDoesNotExist

Value = TypeVar("Value")

TICKS = "[ ]", "[x]"
RADIOS = "( )", "(●)"
"""Not chosen and chosen: as wide as Textual's own."""


class MarkedRadio(RadioButton):
    """One of several."""

    def render(self) -> Content:
        """Return mark and label."""
        return _marked(self, RADIOS)


class MarkedCheckbox(Checkbox):
    """Yes or no."""

    def render(self) -> Content:
        """Return mark and label."""
        return _marked(self, TICKS)


class MarkedList(SelectionList[Value]):
    """Any of several."""

    def render_line(self, y: int) -> Strip:
        """Return a line with its mark."""
        line = super().render_line(y)
        try:
            option = self.get_option_at_index(self.scroll_offset.y + y)
        except OptionDoesNotExist:
            return line
        left, inner, right, *rest = line
        mark = TICKS[option.value in self.selected]
        if left.cell_length + inner.cell_length + right.cell_length != len(mark):
            return line
        return Strip([Segment(mark, inner.style), *rest])


def _marked(button: ToggleButton, marks: tuple[str, str]) -> Content:
    label = button.label.pad(1, 1).stylize_before(button.get_visual_style("toggle--label"))
    return Content.assemble((marks[button.value], button.get_visual_style("toggle--button")), label)
