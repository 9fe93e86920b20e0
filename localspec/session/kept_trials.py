"""Comparisons put together again from trials that were kept one by one, for runs that never came to an end."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from localspec.engine.events import EmittedToken, RoundFinished
from localspec.engine.values import Beliefs, SamplingSettings, SpeculationState
from localspec.metrics.latency import GapPercentiles, Latency
from localspec.metrics.speculation import fold_rounds
from localspec.session.arms import Arm
from localspec.session.outcome import ComparisonResult, comparison_notes, evaluate_arm
from localspec.session.trial import Trial
from localspec.store.values import Record

_STATE = TypeAdapter(SpeculationState)


def comparison_of(
    workload_name: str,
    arms: Sequence[Arm],
    sampling: SamplingSettings,
    num_pairs: int,
    records: Sequence[Record],
    is_interrupted: bool,
    bootstrap_seed: int = 1,
) -> ComparisonResult:
    """Return a workload's comparison as it was when its last trial was kept. Whether the texts agree is not known.

    Args:
        arms: those that were wanted, the baseline first.
        sampling: in force for this workload.
        num_pairs: pairs that were wanted.
        records: kept trials of this workload, in their order.
        is_interrupted: whether it ended early.

    Raises:
        KeyError, TypeError, ValueError: a record is not one of a kept trial.
    """
    trials = [trial_of(record) for record in records if not record["is_closing"]]
    closing = next((trial_of(record) for record in records if record["is_closing"]), None)
    baseline = [trial for trial in trials if trial.arm == arms[0].name]
    results = []
    for arm in arms:
        own = [trial for trial in trials if trial.arm == arm.name]
        results.append(
            evaluate_arm(
                arm=arm,
                state=own[-1].speculation if own else None,
                reason="",
                trials=own,
                baseline=baseline,
                closing=closing,
                same_text=None,
                bootstrap_seed=bootstrap_seed,
            )
        )
    notes = comparison_notes(baseline, closing, num_pairs)
    return ComparisonResult(workload_name, tuple(results), closing, num_pairs, sampling, is_interrupted, notes)


def trial_of(record: Record) -> Trial:
    """Return a kept trial as it was, without its text: tokens are counted, but all of the unknown id -1.

    Raises:
        KeyError, TypeError, ValueError: the record is not one of a kept trial.
    """
    state = _STATE.validate_python(record["speculation"])
    rounds = tuple(_round(index, record["rounds"], state) for index in range(len(record["rounds"]["drafted"])))
    decode_tps, prefill_tps, prefill_s = record["decode_tps"], record["prefill_tps"], record["prefill_s"]
    return Trial(
        arm=record["arm"],
        pair=record["pair"],
        place=record["place"],
        prompt_name=record["prompt"],
        prompt_tokens=(-1,) * record["num_prompt_tokens"],
        rounds=rounds,
        stats=dataclasses.replace(fold_rounds(rounds), draft_stops=record["draft_stops"]),
        latency=Latency(
            num_tokens=record["num_tokens"],
            ttft_s=record["ttft_s"],
            tpot_s=1.0 / decode_tps if decode_tps else None,
            gaps=GapPercentiles(**record["tpot_s"]) if record["tpot_s"] else None,
            longest_gap_s=record["longest_gap_s"],
            prefill_s=prefill_s,
            num_prefilled=round(prefill_tps * prefill_s) if prefill_tps and prefill_s else 0,
        ),
        text="",
        finish_reason=record["finish_reason"],
        speculation=state,
        peak_rss_bytes=record["peak_rss_bytes"],
        device_used_bytes=record["device_used_bytes"],
    )


def _round(index: int, columns: Record, state: SpeculationState) -> RoundFinished:
    num_accepted, num_emitted = columns["accepted"][index], columns["emitted"][index]
    return RoundFinished(
        id=0,
        index=index,
        drafter=_at(columns, "drafter", index) or state.drafter,
        drafted=(-1,) * columns["drafted"][index],
        num_accepted=num_accepted,
        num_discarded=columns["num_discarded"][index],
        emitted=tuple(
            EmittedToken(-1, "", "accepted" if place < num_accepted else "bonus") for place in range(num_emitted)
        ),
        num_cut=columns["num_cut"][index],
        draft_stop="off",
        draft_s=columns["draft_s"][index],
        verify_s=columns["verify_s"][index],
        sample_s=columns["sample_s"][index],
        total_s=columns["total_s"][index],
        at_s=columns["at_s"][index],
        n_past=columns["n_past"][index],
        match_length=_at(columns, "match_length", index) or 0,
        beliefs=_beliefs(columns, index, state),
    )


def _beliefs(columns: Record, index: int, state: SpeculationState) -> Beliefs | None:
    if _at(columns, "expected_tokens", index) is None:
        return None
    return Beliefs(
        drafter=_at(columns, "drafter", index) or state.drafter,
        limit=columns["drafted"][index],
        expected_tokens=columns["expected_tokens"][index],
        expected_s=columns["expected_s"][index],
        plain_s=columns["plain_s"][index],
        acceptance=columns["acceptance"][index],
        needed=columns["needed"][index],
        is_resting=bool(columns["is_resting"][index]),
        is_exploring=bool(columns["is_exploring"][index]),
    )


def _at(columns: Record, name: str, index: int) -> Any:
    """Return what a round has in a column; None where its release did not keep that."""
    column = columns.get(name)
    return column[index] if column else None
