"""The map of n_max x p_min: how fast a draft model of that length and cut-off is against no drafts."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from localspec.tui.plain import MUTED
from localspec.tui.tuning_state import TuneSnapshot
from localspec.tui.widgets.flowing_lines import FlowingLines

_LABEL = 6
_CELL = 8
"""Cells of a column at most."""
_LEAST_CELL = 5
BEST, RUNNING = "◆", "▸"
_STEPS = ((0.5, 60), (0.2, 45), (0.05, 30), (0.0, 15))
"""From this distance to 1 on a cell is shaded so much, in percent."""


class TuneHeat(FlowingLines):
    """Figures first: shades of two colours only repeat them, and marks tell the best one and the one that runs."""

    snapshot: reactive[TuneSnapshot] = reactive(TuneSnapshot, layout=True)
    """The search."""

    def lines_for(self, width: int) -> list[Content]:
        """Return the map."""
        return heat_lines(self.snapshot, width)


def heat_lines(shown: TuneSnapshot, width: int) -> list[Content]:
    """Return the map in lines of at most `width` cells; where columns do not fit, those of long drafts are left out."""
    # What a search stands on takes a while to import, and the first paint of the app does without it.
    from localspec.session.tuning.space import N_MAX, P_MIN

    size = max(_LEAST_CELL, min(_CELL, (width - _LABEL) // len(N_MAX)))
    columns = N_MAX[: max(1, (width - _LABEL) // size)]
    ratios = {(cell.n_max, cell.p_min): cell for cell in shown.cells}
    lines = [Content.assemble((f"{'p_min':<{_LABEL}}", MUTED), *((f"{n_max:>{size}}", "bold") for n_max in columns))]
    for p_min in P_MIN:
        parts = [(f"{p_min:<{_LABEL}g}", "bold")]
        for n_max in columns:
            place = (n_max, p_min)
            cell = ratios.get(place)
            mark = RUNNING if place == shown.running_cell else BEST if place == shown.best_cell else " "
            if cell is None:
                parts.append((f"{mark}{'·':>{size - 1}}", MUTED))
                continue
            # One pair alone says little.
            weight = " bold" if place == shown.best_cell else " dim" if cell.num_pairs < 2 else ""
            parts.append((f"{mark}{ratio_text(cell.ratio):>{size - 1}}", f"{shade(cell.ratio)}{weight}"))
        lines.append(Content.assemble(*parts))
    legend = f"1.20: 20 % faster than off  {BEST} best  {RUNNING} now  · untried  dim: one pair"
    return [*lines, *(Content.styled(line.plain, MUTED) for line in Content(legend).wrap(max(1, width)))]


def ratio_text(ratio: float) -> str:
    """Return a ratio in at most four characters."""
    return f"{ratio:.2f}" if ratio < 9.995 else f"{min(ratio, 9999.0):.0f}"


def shade(ratio: float) -> str:
    """Return the style of a ratio: green over 1, red under it, fuller with the distance."""
    colour = "$success" if ratio >= 1.0 else "$error"
    distance = abs(ratio - 1.0)
    percent = next(percent for least, percent in _STEPS if distance >= least)
    return f"$foreground on {colour} {percent}%"
