"""The document of a run that never came to an end."""

from __future__ import annotations

from localspec.errors import StoreError
from localspec.session.arms import Arm
from localspec.session.kept_trials import comparison_of
from localspec.session.measurement import MeasurementPlan
from localspec.session.records import workload_record
from localspec.session.run_request import plan_of
from localspec.store.values import Record, StoredRun


def rebuilt_document(stored: StoredRun) -> Record:
    """Return a document of the `bench --json` form from a run's opening and its finished trials.

    Raises:
        StoreError: what was kept cannot be read.
    """
    plan = plan_of(stored.request)
    begun = [str(record.get("workload")) for record in (*stored.trials, *stored.rounds)]
    entries = []
    try:
        for workload in plan.workloads:
            trials = [record for record in stored.trials if record["workload"] == workload.name]
            if not trials:
                continue
            sampling = plan.sampling_for(workload)
            is_interrupted = begun[-1] == workload.name
            arms, trials, num_pairs = _furthest(plan, trials)
            result = comparison_of(workload.name, arms, sampling, num_pairs, trials, is_interrupted)
            entry = workload_record(result)
            entry["title"] = workload.title
            entry["temperature"] = sampling.temperature
            entry["is_copy_heavy"] = workload.is_copy_heavy
            entries.append(entry)
        unfinished = _unfinished(stored.rounds)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StoreError(
            f"The trials of run {stored.summary.id} cannot be read: {type(error).__name__}.",
            "Delete this run; the others are not touched.",
        ) from error
    is_lost = stored.summary.state == "lost"
    return {
        **stored.request.get("frame", {}),
        "workloads": entries,
        "interrupted": True,
        "failure": "The process that measured ended without a word." if is_lost else None,
        "unfinished": unfinished,
    }


def _furthest(plan: MeasurementPlan, trials: list[Record]) -> tuple[tuple[Arm, ...], list[Record], int]:
    """Return arms, trials and pairs of a workload's last comparison that compared anything; a suite makes several."""
    parts = list(dict.fromkeys(record.get("part", "") for record in trials))
    if parts == [""]:
        return plan.arms, trials, plan.num_pairs
    baseline = plan.arms[0].name
    comparing = [part for part in parts if _compares(trials, part, baseline)]
    own = [record for record in trials if _is_of(record, (comparing or parts)[-1])]
    names = {baseline, *(record["arm"] for record in own)}
    arms = tuple(arm for arm in plan.arms if arm.name in names)
    return arms, own, 1 + max(int(record["pair"]) for record in own)


def _compares(trials: list[Record], part: object, baseline: str) -> bool:
    """Whether a pair of this part has both a run without drafts and another: one that has only begun shows nothing."""
    own = [record for record in trials if _is_of(record, part)]
    plain = {(record["pair"], record["prompt"]) for record in own if record["arm"] == baseline}
    return any(record["arm"] != baseline and (record["pair"], record["prompt"]) in plain for record in own)


def _is_of(record: Record, part: object) -> bool:
    return bool(record.get("part", "") == part)


def _unfinished(rounds: tuple[Record, ...]) -> Record | None:
    """Return the trial under way: where it belongs, and its rounds in columns."""
    if not rounds:
        return None
    where = ("workload", "arm", "pair")
    return {
        **{name: rounds[0][name] for name in where},
        "rounds": {name: [record[name] for record in rounds] for name in rounds[0] if name not in where},
    }
