"""A probe as JSON has it."""

from __future__ import annotations

from dataclasses import asdict

from localspec.engine.values import DeviceInfo
from localspec.session.loading import context_notes
from localspec.session.probe_words import verdict_sentence
from localspec.session.probing import ProbeReport, needed_rows
from localspec.session.records import Record, device_record, model_record
from localspec.session.step_curve import LengthNeed, NeededAcceptance, StepCurve

SCHEMA = 1
"""Raised when a key changes its meaning or goes; not when one is added."""


def probe_record(report: ProbeReport) -> Record:
    """Return the JSON document of a probe."""
    plan, examination, target, draft = report.plan, report.examination, report.loaded.target, report.loaded.draft
    host = examination.profile.host
    throttled = report.was_throttled
    in_force = ("n_ctx", "n_threads", "n_threads_batch", "n_gpu_layers", "type_k", "type_v", "flash_attn")
    return {
        "schema": SCHEMA,
        "build": None if examination.build is None else asdict(examination.build),
        "device": device_record(
            [DeviceInfo(**asdict(device)) for device in examination.profile.devices],
            target.n_gpu_layers,
            power_source=host.power,
            throttling=None if throttled is None else "the hardware slowed itself down" if throttled else "none",
            host=asdict(host),
            drivers=examination.profile.drivers,
        ),
        "target": model_record(target, None),
        "draft": None if draft is None else model_record(draft, None),
        "settings": {
            **asdict(plan.context),
            **{name: getattr(target, name) for name in in_force},
            "draft_context": None if draft is None else {name: getattr(draft, name) for name in in_force},
            "text": plan.text_name,
            "seconds": plan.seconds,
        },
        "depths": [_curve_record(curve) for curve in report.curves],
        "notes": [asdict(note) for note in (*examination.notes, *context_notes(report.loaded))],
        "memory_notes": list(report.memory_notes),
        "interrupted": report.is_interrupted,
        "failure": None if report.failure is None else report.failure.message,
    }


def _curve_record(curve: StepCurve) -> Record:
    costs, fitted, rises = curve.costs, curve.fitted_costs, curve.rises
    return {
        "depth": curve.depth,
        "is_complete": curve.is_complete,
        "prefill_tps": curve.prefill_tps,
        "steps": [
            {
                **asdict(step),
                "cost": costs[step.width],
                "fitted_cost": fitted[step.width],
                "clear_rise": rises.get(step.width),
                "all_accepted_tps": step.width / step.median_s,
            }
            for step in curve.steps
        ],
        "spread": curve.spread,
        "verdict": verdict_sentence(curve),
        "draft": None
        if curve.draft is None
        else {**asdict(curve.draft), "cost": curve.draft_cost, "prefill_tps": curve.draft_prefill_tps},
        "needed": [_needed_record(row) for row in needed_rows(curve)],
    }


def _needed_record(row: NeededAcceptance) -> Record:
    return {
        "draft_cost": row.draft_cost,
        "is_measured": row.is_measured,
        "best": None if row.best is None else _need_record(row.best),
        "lengths": [_need_record(need) for need in row.lengths],
    }


def _need_record(need: LengthNeed) -> Record:
    return {"n": need.n, "acceptance": need.acceptance, "low": need.low, "high": need.high}
