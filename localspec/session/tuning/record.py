"""The JSON document of a search. What is not known is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from localspec.session.records import Record, estimate_record
from localspec.session.tuning.confirmation import confirmation_marks
from localspec.session.tuning.values import ColdTrial, Confirmed, TuningResult, TuningTrial, WarmSetting
from localspec.session.tuning.words import result_sentences

SCHEMA: Final = 1


def tuning_record(result: TuningResult, run_id: int | None = None, profile: str = "") -> Record:
    """Return the document.

    Args:
        result: what was found.
        run_id: the confirmation's number among the kept runs; None if it is not kept.
        profile: name of the profile that was saved; empty for none.
    """
    plan, cold = result.plan, result.cold
    return {
        "schema": SCHEMA,
        "kind": "tune",
        "target": str(plan.target),
        "drafts": [str(draft) for draft in plan.drafts],
        "workloads": [workload.name for workload in plan.workloads],
        "budget_s": plan.budget_s,
        "elapsed_s": result.elapsed_s,
        "interrupted": result.is_interrupted,
        "conclusive": result.is_conclusive,
        "failure": None if result.failure is None else result.failure.message,
        "on_battery": result.on_battery,
        "confirmation_marks": list(confirmation_marks(result)),
        "winner": None if result.winner is None else _confirmed(result.winner),
        "confirmed": [_confirmed(one) for one in result.confirmed],
        "loading": {
            "changes": list(cold.changes),
            "off_gain": cold.off_gain,
            "context": asdict(cold.context),
            "draft_context": asdict(cold.draft_context) if plan.drafts else None,
            "trials": [_cold(trial) for trial in cold.trials],
        },
        "trials": [_trial(trial) for trial in result.trials],
        "heat_map": [asdict(cell) for cell in result.cells],
        "baseline_tps": list(result.baseline_tps),
        "joules_per_token": {"off": result.joules_per_token[0], "best": result.joules_per_token[1]},
        "sentences": list(result_sentences(result)),
        "notes": list(result.notes),
        "run_id": run_id,
        "profile": profile or None,
    }


def _setting(setting: WarmSetting) -> Record:
    return {**asdict(setting.speculation), "draft": None if setting.draft is None else str(setting.draft)}


def _trial(trial: TuningTrial) -> Record:
    return {
        "setting": _setting(trial.setting),
        "ratio": trial.ratio,
        "pairs": trial.num_pairs,
        "ratios": {workload: list(values) for workload, values in trial.ratios},
        "reason": trial.reason,
    }


def _confirmed(one: Confirmed) -> Record:
    return {
        "setting": _setting(one.setting),
        "arm": one.arm,
        "speedup": estimate_record(one.speedup),
        "verdict": one.verdict,
        "by_workload": {workload: estimate_record(speedup) for workload, speedup in one.by_workload},
        "reason": one.reason,
        "unsettled": one.is_unsettled,
    }


def _cold(trial: ColdTrial) -> Record:
    return {
        "name": trial.name,
        "step_s": {str(cost.width): cost.median_s for cost in trial.costs},
        "draft_step_s": trial.draft_step_s,
        "reason": trial.reason,
    }
