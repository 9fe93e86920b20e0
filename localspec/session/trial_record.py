"""One measured generation as a record, round by round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from localspec.engine.events import RoundFinished
from localspec.engine.values import Beliefs
from localspec.metrics.speculation import SpeculationStats
from localspec.session.trial import Trial
from localspec.store.values import Record

_ROUND_COLUMNS: dict[str, Callable[[RoundFinished], int | float | str]] = {
    "drafter": lambda round_: round_.drafter,
    "match_length": lambda round_: round_.match_length,
    "drafted": lambda round_: len(round_.drafted),
    "accepted": lambda round_: round_.num_accepted,
    "emitted": lambda round_: len(round_.emitted),
    "num_cut": lambda round_: round_.num_cut,
    "num_discarded": lambda round_: round_.num_discarded,
    "n_past": lambda round_: round_.n_past,
    "at_s": lambda round_: round(round_.at_s, 6),
    "draft_s": lambda round_: round(round_.draft_s, 6),
    "verify_s": lambda round_: round(round_.verify_s, 6),
    "sample_s": lambda round_: round(round_.sample_s, 6),
    "total_s": lambda round_: round(round_.total_s, 6),
}

_PACING_COLUMNS: dict[str, Callable[[Beliefs], int | float]] = {
    "expected_tokens": lambda beliefs: round(beliefs.expected_tokens, 4),
    "expected_s": lambda beliefs: round(beliefs.expected_s, 6),
    "plain_s": lambda beliefs: round(beliefs.plain_s, 6),
    "acceptance": lambda beliefs: round(beliefs.acceptance, 4),
    "needed": lambda beliefs: round(beliefs.needed, 4),
    "is_resting": lambda beliefs: int(beliefs.is_resting),
    "is_exploring": lambda beliefs: int(beliefs.is_exploring),
}
"""Of rounds whose length was adaptive."""


def trial_record(trial: Trial) -> Record:
    """Return one measured generation, with what each round drafted and accepted."""
    stats, latency = trial.stats, trial.latency
    return {
        "arm": trial.arm,
        "pair": trial.pair,
        "place": trial.place,
        "prompt": trial.prompt_name,
        "is_closing": False,
        "num_prompt_tokens": len(trial.prompt_tokens),
        "decode_tps": trial.decode_tps,
        "prefill_tps": latency.prefill_tps,
        "prefill_s": latency.prefill_s,
        "ttft_s": latency.ttft_s,
        "tpot_s": asdict(latency.gaps) if latency.gaps is not None else None,
        "longest_gap_s": latency.longest_gap_s,
        "num_tokens": stats.num_tokens,
        "num_rounds": stats.num_rounds,
        "num_target_passes": stats.num_target_passes,
        "num_draft_tokens": stats.num_draft_tokens,
        "num_accepted_tokens": stats.num_accepted_tokens,
        "num_cut": stats.num_cut,
        "num_discarded": stats.num_discarded,
        "acceptance_rate": stats.acceptance_rate,
        "mean_accepted_length": stats.mean_accepted_length,
        "accepted_lengths": list(stats.accepted_lengths),
        "draft_stops": dict(stats.draft_stops),
        "by_drafter": drafters_record(stats),
        "pacing_stats": pacing_record(stats),
        "draft_s": stats.draft_s,
        "verify_s": stats.verify_s,
        "sample_s": stats.sample_s,
        "own_s": stats.own_s,
        "finish_reason": trial.finish_reason,
        "peak_rss_bytes": trial.peak_rss_bytes,
        "rounds": {
            **{name: [value(round_) for round_ in trial.rounds] for name, value in _ROUND_COLUMNS.items()},
            **_pacing_columns(trial.rounds),
        },
    }


def round_record(round_: RoundFinished) -> Record:
    """Return one round: the same items as the columns of a trial's rounds."""
    return {name: value(round_) for name, value in _ROUND_COLUMNS.items()}


def drafters_record(stats: SpeculationStats) -> Record:
    """Return what each drafter proposed and what was kept of it, by the drafters' names."""
    return {
        name: {**asdict(share), "acceptance_rate": share.acceptance_rate} for name, share in stats.by_drafter.items()
    }


def pacing_record(stats: SpeculationStats) -> Record | None:
    """Return what adaptive drafting chose and expected; None where no length was adaptive."""
    pacing = stats.pacing
    if not pacing.num_rounds:
        return None
    last = pacing.last
    return {
        "num_rounds": pacing.num_rounds,
        "num_resting": pacing.num_resting,
        "num_exploring": pacing.num_exploring,
        "resting_share": pacing.resting_share,
        "lengths": list(pacing.lengths),
        "expected_tokens": pacing.expected_tokens,
        "num_tokens": pacing.num_tokens,
        "expected_s": pacing.expected_s,
        "total_s": pacing.total_s,
        "acceptance_now": None if last is None else last.acceptance,
        "needed_now": None if last is None else last.needed,
        "is_resting_now": pacing.is_resting,
    }


def _pacing_columns(rounds: Sequence[RoundFinished]) -> Record:
    if all(round_.beliefs is None for round_ in rounds):
        return {}
    return {
        name: [None if round_.beliefs is None else value(round_.beliefs) for round_ in rounds]
        for name, value in _PACING_COLUMNS.items()
    }
