"""A measurement of a few words."""

from __future__ import annotations

from pathlib import Path

from localspec.catalog.workloads import Prompt, Workload
from localspec.engine.values import ContextSettings, SamplingSettings, SpeculationSettings
from localspec.session.arms import build_arms
from localspec.session.measurement import MeasurementPlan


def small_plan(target: Path, draft: Path | None = None, num_pairs: int = 3) -> MeasurementPlan:
    """Return the plan of a prompt of one's own, answered with and without n-grams."""
    return MeasurementPlan(
        target=target,
        draft=draft,
        context=ContextSettings(n_ctx=256),
        arms=build_arms(("off", "ngram"), SpeculationSettings(n_max=3)),
        workloads=(Workload("own", "Own", "", False, None, (Prompt("own", "", "Say one two three."),)),),
        sampling=SamplingSettings(seed=7),
        is_temperature_fixed=False,
        max_tokens=12,
        num_pairs=num_pairs,
        warmup_tokens=0,
        with_hashes=True,
    )
