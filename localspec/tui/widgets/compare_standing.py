"""Where the race stands: what goes on, who is ahead, and what the pairs say by now."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.figures import number_text, percent_text
from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.race import RaceSnapshot, lead_words


class CompareStanding(Widget):
    """Two lines, calm when nothing runs."""

    DEFAULT_CSS = """
    CompareStanding { height: 2; padding: 0 1; }
    """

    race: reactive[RaceSnapshot] = reactive(RaceSnapshot)
    """Of the comparison that is under way."""
    remark: reactive[str] = reactive("")
    """What is said while none is: what to do, or what is in the way."""
    is_racing: reactive[bool] = reactive(False)
    """Whether a comparison is under way."""
    is_stopping: reactive[bool] = reactive(False)
    """Whether it was told to stop."""

    def render(self) -> Content:
        """Return both lines, each cut to the width."""
        width = max(1, self.content_size.width)
        lines = self._running_lines() if self.is_racing else (Content.styled(one_line(self.remark), "dim"), Content(""))
        return Content("\n").join([line.truncate(width, ellipsis=True) for line in lines])

    def _running_lines(self) -> tuple[Content, Content]:
        race = self.race
        stage = "stopping …" if self.is_stopping else race.stage
        first = Content.assemble((f"{percent_text(race.fraction):>5}  ", "$text-accent"), (one_line(stage), ""))
        parts: list[tuple[str, str]] = []
        if race.lead is not None:
            parts.append((lead_words(race.lead), "bold"))
        for name, speedup in race.speedups:
            width = "" if speedup.half_width is None else f" \N{PLUS-MINUS SIGN}{percent_text(speedup.half_width)}"
            pairs = f"{speedup.pairs} pair{'s' if speedup.pairs > 1 else ''}"
            parts.append((f"{one_line(name)} {number_text(speedup.median)}x{width} after {pairs}", MUTED))
        spaced = [piece for part in parts for piece in (("   ", ""), part)][1:]
        return first, Content.assemble("       ", *spaced)
