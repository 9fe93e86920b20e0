"""What a list of runs shows of each, taken from its document."""

from __future__ import annotations

import json
import math
import ntpath
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from localspec.metrics.drift import is_unusable
from localspec.store.values import Record


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Columns of a run; their meaning is that of RunSummary."""

    target_name: str = ""
    draft_name: str = ""
    workloads: tuple[str, ...] = ()
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    best_arm: str = ""
    is_unusable: bool = False
    build: str = ""
    device: str = ""


def facts_of(document: Record) -> RunFacts:
    """Return a document's facts; what it lacks is empty.

    The speedup over several workloads is the geometric mean of their medians, for the arm with the highest among
    those that were compared on the most workloads. Its bounds are the geometric means of theirs: wider than a joint
    interval would be, never narrower. Without an interval on each workload there is none. Workloads whose baseline
    drifted beyond use do not count as long as there are others. Of a suite only method `auto` counts.
    """
    workloads = _records(document.get("workloads"))
    if isinstance(document.get("suite"), dict):
        # Of a suite it is what `auto` reached: each fixed setting was measured where it was best.
        workloads = [{**workload, "arms": _autos_of(workload)} for workload in workloads]
    best = best_speedup([workload for workload in workloads if not is_unusable_workload(workload)])
    has_only_unusable = best is None and (best := best_speedup(workloads)) is not None
    build, device = _record(document.get("build")), _record(document.get("device"))
    versions = (("llama.cpp", build.get("llama_cpp")), ("llama-cpp-python", build.get("llama_cpp_python")))
    return RunFacts(
        target_name=_file_name(document.get("target")),
        draft_name=_file_name(document.get("draft")),
        workloads=tuple(str(entry.get("name", "")) for entry in workloads),
        speedup=best[1] if best else None,
        speedup_low=best[2] if best else None,
        speedup_high=best[3] if best else None,
        best_arm=best[0] if best else "",
        is_unusable=has_only_unusable,
        build=", ".join(f"{name} {version}" for name, version in versions if version),
        device=str(device.get("description") or device.get("name") or ""),
    )


def best_speedup(workloads: Sequence[Record]) -> tuple[str, float, float | None, float | None] | None:
    """Return the best arm's name, speedup and its bounds over all workloads; None if nothing was compared."""
    by_arm: dict[str, list[Record]] = {}
    for workload in workloads:
        for arm in _records(workload.get("arms")):
            estimate = _record(arm.get("speedup"))
            if _is_positive(estimate.get("median")):
                by_arm.setdefault(str(arm.get("name", "")), []).append(estimate)
    most = max(map(len, by_arm.values()), default=0)
    found = [
        (name, median, _mean(estimates, "low"), _mean(estimates, "high"))
        for name, estimates in by_arm.items()
        if len(estimates) == most and (median := _mean(estimates, "median")) is not None
    ]
    return max(found, key=lambda item: item[1], default=None)


def _autos_of(workload: Record) -> list[Record]:
    return [arm for arm in _records(workload.get("arms")) if arm.get("method") in ("off", "auto")]


def is_unusable_workload(workload: Record) -> bool:
    """Whether the baseline changed so much while a workload was measured that none of its figures can be relied on."""
    return is_unusable([rate for _, rate in baseline_runs(workload)])


def baseline_runs(workload: Record) -> list[tuple[str, float]]:
    """Return prompt and decode_tps of a workload's runs without drafts, in the order in which they ran."""
    baselines = {str(arm.get("name", "")) for arm in _records(workload.get("arms")) if arm.get("method") == "off"}
    runs = [trial for trial in _records(workload.get("trials")) if trial.get("arm") in baselines]
    known = [trial for trial in runs if _is_positive(trial.get("decode_tps"))]
    return [(str(trial.get("prompt", "")), float(trial["decode_tps"])) for trial in sorted(known, key=_place)]


def workloads_text(facts: RunFacts) -> str:
    """Return the workloads' names as they lie in the database."""
    return json.dumps(facts.workloads)


def _mean(estimates: Sequence[Record], name: str) -> float | None:
    values = [estimate.get(name) for estimate in estimates]
    known = [float(value) for value in values if _is_positive(value) and isinstance(value, int | float)]
    return statistics.geometric_mean(known) if len(known) == len(values) else None


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0.0


def _place(trial: Record) -> float:
    place = trial.get("place")
    return float(place) if isinstance(place, int | float) else 0.0


def _file_name(model: object) -> str:
    path = str(_record(model).get("path") or _record(model).get("name") or "")
    # The stricter of both customs, since a database may have come from another system.
    return ntpath.basename(path).removesuffix(".gguf")


def _record(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def _records(value: object) -> list[Record]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
