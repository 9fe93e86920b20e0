"""A search for pictures: while it goes on, and what it found."""

from __future__ import annotations

from dataclasses import replace

from localspec.session.tuning.space import N_MAX, P_MIN
from localspec.session.tuning.values import HeatCell
from localspec.tui.state import Workbench
from localspec.tui.tuning_state import TuneOutcome, TuneSnapshot, Way, best_cell

CELLS = tuple(
    HeatCell(n_max, p_min, 1.42 - 0.06 * abs(n_max - 4) - 0.3 * abs(p_min - 0.3), 1 + (n_max + place) % 4)
    for place, p_min in enumerate(P_MIN)
    for n_max in N_MAX
    if (n_max + place) % 3
)

WAYS = (
    Way("draft n_max 4, p_min 0.3", 1.42, 4, is_best=True),
    Way("auto up to 16", 1.37, 4),
    Way("cascade n_max 4, p_min 0.5", 1.21, 2, is_running=True),
    Way("suffix n_max 8", 1.08, 2),
    Way("ngram n_max 4", 0.94, 1),
)

RUNNING = TuneSnapshot(
    stage="search",
    stages=(("load", "done"), ("threads", "done"), ("drafting", "now"), ("confirm", "to_come")),
    doing="cascade n_max 4, p_min 0.5 runs",
    elapsed_s=98.0,
    budget_s=300.0,
    stage_left_s=61.0,
    cells=CELLS,
    best_cell=best_cell(CELLS),
    running_cell=(8, 0.5),
    ways=WAYS,
)

OUTCOME = TuneOutcome(
    sentences=(
        "Best here: draft n_max 4, p_min 0.3, 1.41x (1.36 to 1.45) (edit 1.62x (1.55 to 1.70); "
        "chat 1.22x (1.15 to 1.28)).",
        "auto up to 16: 1.36x (1.31 to 1.40).",
        "off itself gains 1.08x by threads 4: no drafts are needed for that.",
    ),
    notes=("This machine runs on battery: it may be slower then, and the best settings may be others.",),
    tone="won",
    run_id=7,
    arm="draft",
    advice=Workbench(),
)

DONE = replace(RUNNING, doing="", running_cell=None)
