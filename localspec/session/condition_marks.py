"""What of the machine's state marks a figure: battery, a slowed-down processor, a baseline that changed meanwhile.

Paired runs stay sound then, but for a machine in that state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from localspec.hardware.throttling import was_throttled
from localspec.metrics.drift import DRIFT_NOTE_SHARE, drift_share
from localspec.session.figures import percent_text
from localspec.store.run_facts import baseline_runs
from localspec.store.values import Record

if TYPE_CHECKING:
    from localspec.session.measurement import Measurement


def condition_marks(
    power: str | None, is_throttled: bool | None, baselines: Iterable[Sequence[tuple[str, float]]]
) -> tuple[str, ...]:
    """Return a phrase for each thing that marks a figure, such as `on battery`; none for a quiet machine on mains.

    Args:
        power: source, `battery` among others; None if it is not known.
        is_throttled: whether the hardware slowed itself down; None if it does not say.
        baselines: of each workload, prompt and decode_tps of its runs without drafts, in order.
    """
    marks = []
    if power == "battery":
        marks.append("on battery")
    if is_throttled:
        marks.append("while the hardware slowed itself down")
    shares = [share for runs in baselines if (share := drift_share(comparable(runs))) is not None]
    worst = max(shares, key=abs, default=0.0)
    if abs(worst) > DRIFT_NOTE_SHARE:
        change = f"{percent_text(-worst)} slower" if worst < 0.0 else f"{percent_text(worst)} faster"
        marks.append(f"while speed without drafts became {change}")
    return tuple(marks)


def comparable(runs: Sequence[tuple[str, float]]) -> tuple[float, ...]:
    """Return the rates on one prompt, the one with most time between its first and its last run.

    Speed differs from prompt to prompt, since a longer text takes longer to look back on; that is no drift.

    Args:
        runs: prompt and decode_tps, in order.
    """
    places: dict[str, list[int]] = {}
    for place, (prompt, _) in enumerate(runs):
        places.setdefault(prompt, []).append(place)
    longest = max(places.values(), key=lambda found: found[-1] - found[0], default=[])
    return tuple(runs[place][1] for place in longest)


def marks_of(measurement: Measurement) -> tuple[str, ...]:
    """Return what marks a measurement's figures."""
    baselines = []
    for result in measurement.results:
        closing = () if result.closing is None else (result.closing,)
        runs = sorted((*result.baseline.trials, *closing), key=lambda trial: trial.place)
        baselines.append([(run.prompt_name, run.decode_tps) for run in runs if run.decode_tps is not None])
    power = measurement.examination.profile.host.power
    return condition_marks(power, was_throttled(*measurement.clocks), baselines)


def marks_of_record(document: Record, names: Sequence[str]) -> tuple[str, ...]:
    """Return what marks the figures of a run's workloads.

    Args:
        document: of the run.
        names: of the workloads.
    """
    device: Any = document.get("device")
    device = device if isinstance(device, dict) else {}
    workloads: Any = document.get("workloads")
    chosen = [entry for entry in workloads or () if isinstance(entry, dict) and entry.get("name") in names]
    throttling = device.get("throttling")
    return condition_marks(
        device.get("power_source"),
        throttling not in (None, "none"),
        [baseline_runs(entry) for entry in chosen],
    )


def marks_sentence(marks: Sequence[str]) -> str:
    """Return a sentence on marked figures and what may be otherwise; empty without marks."""
    if not marks:
        return ""
    elsewhere = "on mains" if marks[0] == "on battery" else ""
    calm = "on a machine that is cool and quiet" if len(marks) > bool(elsewhere) else ""
    return f"Measured {' and '.join(marks)}: it may be otherwise {' and '.join(filter(None, (elsewhere, calm)))}."
