"""The keys of a screen, in its last line: one widget, since there are many keys and they change with every focus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Leave, MouseDown, MouseMove
from textual.reactive import var
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from localspec.session.plain_text import one_line
from localspec.tui.active_keys import keys_in_order


@dataclass(frozen=True, slots=True)
class ShownKey:
    """One key with what it does."""

    key: str
    """As Textual calls it."""
    display: str
    words: str
    tooltip: str = ""
    is_enabled: bool = True

    @property
    def width(self) -> int:
        """Cells that it takes."""
        return cell_len(self.display) + 1 + cell_len(self.words)


@dataclass(frozen=True, slots=True)
class PlacedKey:
    """A key and its first cell."""

    start: int
    shown: ShownKey

    @property
    def end(self) -> int:
        """The first cell behind it."""
        return self.start + self.shown.width


class KeyLine(Widget):
    """Shows the keys that can be pressed now, as many as there is room for; a click presses one.

    The palette's key stands at the right end, so that it is there however narrow the screen is.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"keys--key", "keys--words", "keys--hover", "keys--off"}
    DEFAULT_CSS = """
    KeyLine {
        dock: bottom;
        height: 1;
        padding: 0 1;
        background: $footer-background;
        color: $footer-foreground;
        & > .keys--key { color: $footer-key-foreground; text-style: bold; }
        & > .keys--words { color: $footer-description-foreground; }
        & > .keys--hover { text-style: underline; }
        & > .keys--off { text-style: dim; }
    }
    """

    hovered: var[str] = var("")
    """The key under the pointer."""

    def __init__(self) -> None:
        """Begin without keys: the screen knows them when it is drawn."""
        super().__init__()
        self._placed: tuple[PlacedKey, ...] = ()

    @property
    def keys(self) -> tuple[ShownKey, ...]:
        """The keys that are shown."""
        return tuple(one.shown for one in self._placed)

    def on_mount(self) -> None:
        """Follow the keys of the screen."""
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width = self.content_size.width
        self._placed = placed_keys(*self._current(), width)
        base = self.rich_style
        segments: list[Segment] = []
        column = 0
        for one in self._placed:
            style = base
            if not one.shown.is_enabled:
                style += self.get_component_rich_style("keys--off", partial=True)
            if one.shown.key == self.hovered:
                style += self.get_component_rich_style("keys--hover", partial=True)
            key_style = style + self.get_component_rich_style("keys--key", partial=True)
            words_style = style + self.get_component_rich_style("keys--words", partial=True)
            segments += [
                Segment(" " * (one.start - column), base),
                Segment(one.shown.display, key_style),
                Segment(f" {one.shown.words}", words_style),
            ]
            column = one.end
        return Strip(segments).adjust_cell_length(width, base)

    def _current(self) -> tuple[list[ShownKey], ShownKey | None]:
        """Return the keys in order, and the palette's."""
        by_action: dict[str, ShownKey] = {}
        palette = None
        for _, binding, is_enabled, tooltip in keys_in_order(self.screen):
            display = one_line(self.app.get_key_display(binding))
            shown = ShownKey(binding.key, display, one_line(binding.description), tooltip, is_enabled)
            if binding.action == "command_palette":
                palette = shown
            elif binding.show:
                by_action.setdefault(binding.action, shown)
        return list(by_action.values()), palette if self.app.ENABLE_COMMAND_PALETTE else None

    def _at(self, x: int) -> ShownKey | None:
        column = x - self.styles.padding.left
        return next((one.shown for one in self._placed if one.start <= column < one.end), None)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Press the key under the pointer."""
        event.stop()
        shown = self._at(event.x)
        if shown is not None and shown.is_enabled:
            self.app.simulate_key(shown.key)
        elif shown is not None:
            self.app.bell()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Tell of the key under the pointer."""
        shown = self._at(event.x)
        self.hovered = "" if shown is None else shown.key
        tooltip = None if shown is None else one_line(shown.tooltip or shown.words)
        if self.tooltip != tooltip:
            self.tooltip = tooltip

    def on_leave(self, event: Leave) -> None:
        """Let go of the key."""
        self.hovered = ""

    def watch_hovered(self) -> None:
        """Show which it is."""
        self.refresh()


def placed_keys(keys: Sequence[ShownKey], last: ShownKey | None, width: int) -> tuple[PlacedKey, ...]:
    """Return where keys stand on a line of so many cells; those without room are left out.

    Args:
        keys: from the left, two cells apart.
        last: at the right end, which it keeps however many others there are; None for none.
        width: cells.
    """
    end = width
    placed: list[PlacedKey] = []
    if last is not None:
        end = max(0, width - last.width)
        placed.append(PlacedKey(end, last))
        end -= 2
    column = 0
    row = []
    for key in keys:
        if column + key.width > end:
            break
        row.append(PlacedKey(column, key))
        column += key.width + 2
    return (*row, *placed)
