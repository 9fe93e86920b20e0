"""What of the machine's state, while a search ran, makes its figures uncertain."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.engine.values import SpeculationSettings
from localspec.methods import is_adaptive
from localspec.metrics.drift import drift_note
from localspec.session.condition_marks import comparable
from localspec.session.tuning.values import TuningPlan


def condition_notes(
    plan: TuningPlan,
    baseline_runs: Sequence[tuple[str, float]],
    on_battery: bool,
    throttled: bool | None,
    is_confirmed: bool,
) -> tuple[str, ...]:
    """Return sentences on what to know of the figures.

    Args:
        plan: of the search.
        baseline_runs: prompt and decode_tps of all runs without drafts, in order.
        on_battery: whether the machine ran on battery for any part of it.
        throttled: whether the hardware slowed itself down; None if that is not known.
        is_confirmed: whether it came to a confirmation.
    """
    notes = []
    if on_battery:
        notes.append(battery_note())
    if throttled:
        notes.append(
            "The hardware slowed itself down meanwhile. Every ratio is to neighbouring runs, so that it holds for a "
            "machine in that state; a cooler one may gain otherwise."
        )
    if note := drift_note(comparable(baseline_runs)):
        notes.append(note)
    for workload in plan.workloads if is_confirmed else ():
        if len(workload.prompts) < 2 and plan.temperature_of(workload) <= 0.0:
            notes.append(f"{workload.name} has a single prompt, so it was confirmed on the one that was searched with.")
    return tuple(notes)


def cold_start_note(settings: Sequence[SpeculationSettings]) -> str:
    """Return what to know of settings with adaptive lengths; empty where there are none."""
    if not any(is_adaptive(given.method, given.pacing) for given in settings):
        return ""
    return (
        "Adaptive drafting began every run knowing nothing of these models, and in a chat it begins with what it has "
        "learnt, so that its figure is a low one."
    )


def battery_note() -> str:
    """Return what to know of figures that were measured on battery."""
    return (
        "This machine runs on battery: it may be slower then, and the best settings may be others. They are marked; "
        "tune again on mains for what holds there."
    )
