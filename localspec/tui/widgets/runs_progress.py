"""What is going on, in a line: words, how far it is, and how to stop it."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import percent_text
from localspec.session.plain_text import one_line
from localspec.tui.keyed import keyed
from localspec.tui.plain import MUTED
from localspec.tui.widgets.bar_rows import bar_text

_BAR = 16


class RunsProgress(Widget):
    """Takes no room while nothing goes on."""

    DEFAULT_CSS = """
    RunsProgress { height: 1; display: none; padding: 0 1; background: $boost; }
    RunsProgress.-active { display: block; }
    """

    text: reactive[str] = reactive("")
    """What goes on; empty for nothing."""
    fraction: reactive[float | None] = reactive(None)
    """How much of it is done; None where that is not known."""
    is_stoppable: reactive[bool] = reactive(False)
    """Whether a key ends it."""

    def watch_text(self, text: str) -> None:
        """Come and go."""
        self.set_class(bool(text), "-active")

    def render(self) -> Content:
        """Return the line."""
        stop = (keyed("  {runs.back} stops"), MUTED) if self.is_stoppable else ""
        bar: tuple[str, str] | str = ""
        if self.fraction is not None:
            bar = (f"{bar_text(self.fraction, _BAR):<{_BAR}} {percent_text(self.fraction):>5}  ", "$primary")
        return Content.assemble(bar, one_line(self.text), stop).truncate(max(1, self.content_size.width), ellipsis=True)
