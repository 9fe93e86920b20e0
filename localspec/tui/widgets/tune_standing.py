"""Where a search stands: its stages, what it does now, and how much of the time is gone."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from localspec.session.plain_text import one_line
from localspec.tui.plain import MUTED
from localspec.tui.tuning_state import StageState, TuneSnapshot

_MARKS: dict[StageState, tuple[str, str]] = {
    "done": ("✓", "$text-success"),
    "now": ("▸", "bold"),
    "to_come": ("·", MUTED),
}


class TuneStanding(Widget):
    """Three lines, always."""

    DEFAULT_CSS = """
    TuneStanding { height: 3; padding: 0 1; }
    """

    snapshot: reactive[TuneSnapshot] = reactive(TuneSnapshot)
    """The search."""
    remark: reactive[str] = reactive("")
    """What is said while none goes on; empty while one does."""

    def render(self) -> Content:
        """Return the lines, each cut to the width."""
        width = max(1, self.content_size.width)
        lines = standing_lines(self.snapshot, self.remark, width)
        return Content("\n").join([line.truncate(width, ellipsis=True) for line in lines])


def standing_lines(shown: TuneSnapshot, remark: str, width: int) -> list[Content]:
    """Return stages, what goes on or is to be said, and the time."""
    stages = Content("   ").join(
        Content.assemble(
            (f"{_MARKS[state][0]} ", _MARKS[state][1]), (one_line(name), "bold" if state == "now" else MUTED)
        )
        for name, state in shown.stages
    )
    words = Content.styled(one_line(remark), MUTED) if remark else Content(one_line(shown.doing))
    return [stages, words, _time(shown, width)]


def _time(shown: TuneSnapshot, width: int) -> Content:
    from localspec.session.tuning.budget import budget_text

    if not shown.budget_s:
        return Content("")
    text = f"{budget_text(shown.elapsed_s)} of {budget_text(shown.budget_s)}"
    if shown.doing:
        text += f", {budget_text(shown.left_s)} left"
        if shown.stage_left_s is not None and shown.stage != "confirm":
            text += f"; this stage {budget_text(shown.stage_left_s)}"
    room = max(6, min(40, width - len(text) - 2))
    filled = round(shown.share * room)
    return Content.assemble(("━" * filled, "$primary"), ("╌" * (room - filled), MUTED), f"  {text}")
