"""Figures in the document of a run: its estimates, and the trials of an arm. Its form is that of records.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from localspec.engine.values import SpeculationSettings
from localspec.methods import settings_read_by
from localspec.metrics.comparison import PairedRate, interpolate_rate
from localspec.metrics.statistics import Estimate
from localspec.store.values import Record

_USUAL = asdict(SpeculationSettings())
"""What an arm had of a setting that its release did not know yet."""


def estimate_of(record: Mapping[str, Any] | None) -> Estimate | None:
    """Return an estimate as it was before it was written down."""
    if record is None or record.get("median") is None:
        return None
    return Estimate(record["median"], record.get("low"), record.get("high"), record.get("pairs") or 0)


def arm_trials(workload: Record, arm_name: str) -> list[Record]:
    """Return an arm's trials in order of pairs. A closing baseline run is in no arm's figures."""
    found = [trial for trial in workload.get("trials") or () if trial["arm"] == arm_name and not _is_closing(trial)]
    return sorted(found, key=lambda trial: int(trial["pair"]))


def trial_rates(workload: Record, arm_name: str) -> list[float]:
    """Return the decode_tps of an arm's trials; a trial that was too short to have one is left out."""
    return [trial["decode_tps"] for trial in arm_trials(workload, arm_name) if trial.get("decode_tps")]


def trial_speedups(workload: Record, arm_name: str) -> list[float]:
    """Return the paired ratios that an arm's speedup is the median of."""
    baseline = next((arm for arm in workload["arms"] if arm["method"] == "off"), None)
    if baseline is None or baseline["name"] == arm_name:
        return []
    by_pair = {trial["pair"]: trial for trial in arm_trials(workload, baseline["name"])}
    closing = next((trial for trial in workload.get("trials") or () if _is_closing(trial)), None)
    ratios = []
    for trial in arm_trials(workload, arm_name):
        partner = by_pair.get(trial["pair"])
        if partner is None:
            continue
        rate = partner["decode_tps"]
        if closing is not None and closing["pair"] == trial["pair"] and rate and closing["decode_tps"]:
            before, after = (partner["place"], rate), (closing["place"], closing["decode_tps"])
            rate = interpolate_rate(before, after, trial["place"])
        if (ratio := PairedRate(rate, trial["decode_tps"]).ratio) is not None:
            ratios.append(ratio)
    return ratios


def arm_settings(arm: Record) -> tuple[object, ...]:
    """Return what tells ways of drafting apart, whatever they are called."""
    method = str(arm["method"])
    return (method, *((name, arm.get(name, _USUAL.get(name))) for name in settings_read(arm)))


def settings_read(arm: Record) -> tuple[str, ...]:
    """Return the names of the settings that make a difference to an arm."""
    return settings_read_by(str(arm["method"]), str(arm.get("verification", "exact")))


def find_arm(workload: Record, wanted: Record) -> Record | None:
    """Return the arm that drafts in the same way, or else the one of the same name and method; None for neither."""
    arms = workload["arms"]
    same = (arm for arm in arms if arm_settings(arm) == arm_settings(wanted))
    namesakes = (arm for arm in arms if (arm["name"], arm["method"]) == (wanted["name"], wanted["method"]))
    return next(same, None) or next(namesakes, None)


def find_workload_record(document: Record, name: str) -> Record | None:
    """Return a workload by its name."""
    return next((workload for workload in document["workloads"] if workload["name"] == name), None)


def prompt_sizes(workload: Record) -> str:
    """Return how many tokens each prompt has, in order of their names; empty if that is not known."""
    names = dict.fromkeys(arm["name"] for arm in workload["arms"])
    trials = [trial for name in names for trial in arm_trials(workload, name)]
    sizes = {str(trial.get("prompt")): trial.get("num_prompt_tokens") for trial in trials}
    return ", ".join(str(sizes[name]) for name in sorted(sizes) if sizes[name] is not None)


def file_name(model: Record | None) -> str:
    """Return the name of a model's file, on whatever system it lay; empty without a model."""
    path = "" if model is None else str(model.get("path") or model.get("name") or "")
    return path.replace("\\", "/").rpartition("/")[2]


def _is_closing(trial: Record) -> bool:
    return bool(trial.get("is_closing"))
