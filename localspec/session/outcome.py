"""What a comparison found, as values that the front ends and the JSON read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from localspec.engine.values import SamplingSettings, SpeculationState
from localspec.errors import LocalspecError
from localspec.metrics.comparison import PairedRate, Verdict, compare_rates, interpolate_rate, judge
from localspec.metrics.drift import drift_note
from localspec.metrics.speculation import SpeculationStats, sum_stats
from localspec.metrics.statistics import Estimate, bootstrap_median, median
from localspec.session.arms import Arm
from localspec.session.same_text import SameText
from localspec.session.trial import Trial


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One arm's trials. An arm that could not be switched on has none, and no speedup."""

    arm: Arm
    state: SpeculationState | None
    """As the engine gave it; None if the arm was not reached."""
    has_run: bool
    reason: str
    """Why it has not run; empty if it has."""
    trials: tuple[Trial, ...]
    """In order of pairs."""
    decode_tps: Estimate | None
    speedup: Estimate | None
    """Against the baseline; None for the baseline itself."""
    verdict: Verdict | None
    same_text: SameText | None

    @property
    def stats(self) -> SpeculationStats:
        """Counts and times summed over the trials."""
        return sum_stats(trial.stats for trial in self.trials)

    @property
    def ttft_s(self) -> float | None:
        """Median over the trials, in seconds."""
        return _median([trial.latency.ttft_s for trial in self.trials])

    @property
    def tpot_s(self) -> float | None:
        """Median over the trials of the mean time per output token, in seconds."""
        return _median([trial.latency.tpot_s for trial in self.trials])

    @property
    def prefill_tps(self) -> float | None:
        """Median over the trials."""
        return _median([trial.latency.prefill_tps for trial in self.trials])

    def gap_percentile(self, name: str) -> float | None:
        """Return the median over the trials of their `p50`, `p95` or `p99` time per token, in seconds."""
        gaps = [trial.latency.gaps for trial in self.trials]
        return _median([getattr(gap, name) if gap is not None else None for gap in gaps])

    @property
    def peak_rss_bytes(self) -> int | None:
        """Largest resident size of the engine process at the end of a trial. It never falls while a process lives."""
        return max((trial.peak_rss_bytes for trial in self.trials), default=None)

    @property
    def device_used_bytes(self) -> int | None:
        """Most bytes in use on the GPUs at the end of a trial."""
        return max((trial.device_used_bytes for trial in self.trials), default=None)

    @property
    def finish_reason(self) -> str | None:
        """Why the trials ended; `mixed` if not all for the same reason."""
        reasons = {trial.finish_reason for trial in self.trials}
        return next(iter(reasons)) if len(reasons) == 1 else "mixed" if reasons else None


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """One workload's comparison, complete or ended early."""

    workload_name: str
    arms: tuple[ArmResult, ...]
    """The baseline first."""
    closing: Trial | None
    """Baseline run after an odd number of pairs; it is in no arm's figures."""
    num_pairs: int
    """Pairs that were wanted."""
    sampling: SamplingSettings
    is_interrupted: bool
    """It ended early, by the user's wish or by a failure."""
    notes: tuple[str, ...]

    @property
    def baseline(self) -> ArmResult:
        """The arm without drafts."""
        return self.arms[0]

    @property
    def speculative(self) -> tuple[ArmResult, ...]:
        """The arms with drafts."""
        return self.arms[1:]

    @property
    def leading(self) -> ArmResult | None:
        """The first arm with drafts that has run."""
        return next((result for result in self.speculative if result.has_run), None)


class ComparisonInterrupted(asyncio.CancelledError):
    """A comparison was cancelled; `result` holds what was measured until then."""

    def __init__(self, result: ComparisonResult) -> None:
        super().__init__("comparison interrupted")
        self.result = result


class ComparisonFailed(LocalspecError):
    """The engine failed after something had been measured; `result` holds that, and `failure` says why it ended."""

    def __init__(self, result: ComparisonResult, failure: LocalspecError) -> None:
        super().__init__(failure.message, failure.hint)
        self.result = result
        self.failure = failure


def evaluate_arm(
    arm: Arm,
    state: SpeculationState | None,
    reason: str,
    trials: Sequence[Trial],
    baseline: Sequence[Trial],
    closing: Trial | None,
    same_text: SameText | None,
    bootstrap_seed: int,
) -> ArmResult:
    """Return an arm's figures; those of an arm with a `reason` not to have run are None.

    Args:
        trials: this arm's; of each its pair's baseline, if it was measured, is among `baseline`.
        baseline: the baseline's trials.
        closing: baseline run after the last of an odd number of pairs.
        bootstrap_seed: the same seed gives the same intervals.
    """
    kept = () if reason else tuple(sorted(trials, key=lambda trial: trial.pair))
    rates = [trial.decode_tps for trial in kept if trial.decode_tps is not None]
    decode_tps = bootstrap_median(rates, np.random.default_rng(bootstrap_seed)) if rates else None
    speedup: Estimate | None = None
    if not arm.is_baseline:
        pairs = paired_rates(kept, baseline, closing)
        speedup = compare_rates(pairs, np.random.default_rng(bootstrap_seed))
    return ArmResult(
        arm=arm,
        state=state,
        has_run=bool(kept),
        reason=reason or ("" if kept else "it was not reached"),
        trials=kept,
        decode_tps=decode_tps,
        speedup=speedup,
        verdict=judge(speedup) if speedup is not None else None,
        same_text=same_text if kept else None,
    )


def comparison_notes(baseline: Sequence[Trial], closing: Trial | None, num_pairs: int) -> tuple[str, ...]:
    """Return sentences on what makes the figures uncertain."""
    runs = sorted((*baseline, *((closing,) if closing else ())), key=lambda trial: trial.place)
    drift = drift_note([run.decode_tps for run in runs if run.decode_tps is not None])
    few = f"Only {num_pairs} paired run{'s' if num_pairs > 1 else ''}: take three or more." if num_pairs < 3 else ""
    return tuple(note for note in (drift, few) if note)


def paired_rates(trials: Sequence[Trial], baseline: Sequence[Trial], closing: Trial | None) -> list[PairedRate]:
    by_pair = {trial.pair: trial for trial in baseline}
    pairs = []
    for trial in trials:
        partner = by_pair.get(trial.pair)
        if partner is None:
            continue
        rate = partner.decode_tps
        if closing is not None and closing.pair == trial.pair and rate and closing.decode_tps:
            rate = interpolate_rate((partner.place, rate), (closing.place, closing.decode_tps), trial.place)
        pairs.append(PairedRate(rate, trial.decode_tps))
    return pairs


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
