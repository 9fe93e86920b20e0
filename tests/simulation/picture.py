"""Pictures of regret over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("svg")

from matplotlib.figure import Figure

COLOURS = {
    "off": "#7f7f7f",
    "fixed 3": "#bcbd22",
    "+2 / -1": "#ff7f0e",
    "dynamic threshold": "#9467bd",
    "joint confidence": "#8c564b",
    "epsilon-greedy": "#17becf",
    "UCB": "#1f77b4",
    "localspec": "#d62728",
}

_MOST = 150.0
"""Plain steps shown; most policies lose more."""


def draw_regret(curves: Mapping[str, Mapping[str, Sequence[float]]], marks: Sequence[int], path: Path) -> None:
    """Write a panel for each machine.

    Args:
        curves: by machine and policy, regret in plain steps by token.
        marks: tokens at which the text changes.
        path: of the SVG file.
    """
    with matplotlib.rc_context({"svg.hashsalt": "localspec", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(10.0, 3.6), layout="constrained")
        panels = figure.subplots(1, len(curves))
        for panel, (title, lines) in zip(panels, curves.items(), strict=True):
            for mark in marks:
                panel.axvline(mark, color="#dddddd", linewidth=0.8, zorder=0)
            for name, values in lines.items():
                width = 2.2 if name == "localspec" else 1.2
                panel.plot(range(len(values)), values, label=name, color=COLOURS[name], linewidth=width)
            panel.set_title(title)
            panel.set_xlabel("tokens")
            panel.set_ylim(bottom=min(0.0, *(min(values) for values in lines.values())) - 5.0, top=_MOST)
        panels[0].set_ylabel("lost against being told, plain steps")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=8, frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
