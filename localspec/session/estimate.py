"""What speculation should gain by the cost model: from figures that a person states, or from a kept run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from localspec.errors import UsageError
from localspec.metrics.prediction import LengthPrediction, best_length, predict_lengths, predict_mix
from localspec.session.run_document import RunArm, RunDocument, RunTrial, RunWorkload
from localspec.store.values import Record

MAX_LENGTH = 128
"""Longest draft that an estimate is made for."""

MIN_ROUNDS = 5
"""With fewer rounds of one length the median of their time is not called measured."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """One arm of a kept run: what was measured of it, and what the cost model makes of that."""

    workload: str
    arm: str
    acceptance: tuple[float, ...]
    """By position, given that all before were accepted."""
    draft_cost: float
    """Time of one drafted token in plain steps."""
    verify_costs: tuple[float, ...]
    """Item i: time of a round that drafted i + 1 tokens, without the drafting, in plain steps."""
    num_rounds: tuple[int, ...]
    """Item n: rounds that drafted n tokens; those of a trial's first round are left out."""
    lengths: tuple[LengthPrediction, ...]
    predicted: float | None
    """Speedup of the rounds as they were, short drafts and plain steps among them."""
    measured: float | None
    low: float | None
    high: float | None

    @property
    def best(self) -> LengthPrediction:
        """The length to draft."""
        return best_length(self.lengths)

    @property
    def difference(self) -> float | None:
        """Predicted / measured - 1."""
        return self.predicted / self.measured - 1.0 if self.predicted and self.measured else None

    def is_measured(self, n: int) -> bool:
        """Whether enough rounds drafted n tokens to know their cost; other costs are read off between neighbours."""
        return n < len(self.num_rounds) and self.num_rounds[n] >= MIN_ROUNDS


def estimate_stated(
    acceptance: float, n_max: int, draft_cost: float, verify_costs: Sequence[float] = ()
) -> tuple[LengthPrediction, ...]:
    """Return what each draft length up to n_max gains.

    Args:
        acceptance: chance that a draft token is accepted given that those before it were.
        n_max: longest draft.
        draft_cost: of one draft step, in plain steps of the target.
        verify_costs: none for 1; one for all lengths; or t(2)/t(1), t(3)/t(1) and so on, one for each length.

    Raises:
        UsageError: one of them makes no sense.
    """
    if not 1 <= n_max <= MAX_LENGTH:
        raise UsageError(f"A draft of {n_max} tokens makes no sense.", f"Set --n-max to 1 to {MAX_LENGTH}.")
    if not 0.0 <= acceptance <= 1.0:
        raise UsageError(
            f"An acceptance of {acceptance:g} makes no sense: it is the share of draft tokens that are accepted.",
            "Give --acceptance a number from 0 to 1, such as 0.7.",
        )
    if not 0.0 <= draft_cost < 1000.0:
        raise UsageError(
            f"A draft cost of {draft_cost:g} makes no sense: it is a draft step's time / a step of the target.",
            "Give --draft-cost 0 or more, such as 0.15.",
        )
    for cost in verify_costs:
        if not 0.0 < cost < 1000.0:
            raise UsageError(
                f"A verify cost of {cost:g} makes no sense: it is a verification's time / a plain step of the target.",
                "Give --verify-cost numbers over 0; 1 is as fast as a plain step.",
            )
    if 1 < len(verify_costs) < n_max:
        raise UsageError(
            f"There are {len(verify_costs)} verify costs, but drafts of up to {n_max} tokens.",
            f"Give one for all, or {n_max}: t(2)/t(1) to t({n_max + 1})/t(1).",
        )
    costs = verify_costs[:n_max] if len(verify_costs) > 1 else tuple(verify_costs) * n_max
    return predict_lengths((acceptance,) * n_max, draft_cost, costs)


def estimate_run(document: RunDocument, workload: str = "", arm: str = "") -> tuple[RunEstimate, ...]:
    """Return an estimate for each arm with drafts of a kept run, in the order of the run.

    Args:
        document: the run's.
        workload: the only one to look at; empty for all.
        arm: likewise.

    Raises:
        UsageError: there is no such workload or arm, or nothing of what is asked for was drafted.
    """
    workloads = document.named(workload)
    known = dict.fromkeys(item.name for chosen in workloads for item in chosen.arms if item.method != "off")
    if arm and arm.casefold() not in {name.casefold() for name in known}:
        raise UsageError(f"The run has no arm with drafts {arm!r:.80}.", f"It has: {', '.join(known) or 'none'}.")
    found = [
        estimate
        for chosen in workloads
        for item in chosen.speculative
        if not arm or item.name.casefold() == arm.casefold()
        if (estimate := _estimate_arm(chosen, item)) is not None
    ]
    if not any(chosen.speculative for chosen in workloads):
        raise UsageError(
            "Nothing was measured with drafts there, so there is nothing to estimate from.",
            "Choose another run or workload.",
        )
    if not found:
        raise UsageError(
            "Nothing was drafted there, so there is nothing to estimate from.", "Choose another run, workload or arm."
        )
    return tuple(found)


def shortened(estimate: RunEstimate, n_max: int) -> RunEstimate:
    """Return an estimate for drafts of at most n_max tokens. What the run did stays as it is.

    Raises:
        UsageError: the run drafted no such length.
    """
    longest = estimate.lengths[-1].n
    if not 1 <= n_max <= longest:
        raise UsageError(
            f"An estimate for {n_max} tokens would be a guess: {estimate.arm} on {estimate.workload} drafted 1 to "
            f"{longest}.",
            f"Set --n-max to 1 to {longest}, or measure longer drafts: localspec bench --n-max {max(1, n_max)}",
        )
    return replace(estimate, lengths=estimate.lengths[: n_max + 1])


def lengths_record(lengths: Sequence[LengthPrediction]) -> list[Record]:
    """Return predictions as JSON has them."""
    return [{**asdict(length), "speedup": length.speedup} for length in lengths]


def run_estimate_record(estimate: RunEstimate) -> Record:
    """Return an arm's estimate as JSON has it."""
    lengths = [
        {**record, "is_measured": estimate.is_measured(record["n"])} for record in lengths_record(estimate.lengths)
    ]
    return {
        **asdict(estimate),
        "lengths": lengths,
        "best_n": estimate.best.n,
        "difference": estimate.difference,
    }


def _estimate_arm(workload: RunWorkload, arm: RunArm) -> RunEstimate | None:
    baseline = workload.baseline
    if baseline is None or not arm.num_draft_tokens or arm.draft_s is None:
        return None
    plain = [total_s for drafted, _, total_s in _rounds(workload, baseline.name, 0.0) if drafted == 0]
    step_s = statistics.median(plain) if plain else 0.0
    if step_s <= 0.0:
        return None
    # Medians throughout: with a mean here and there, one slow moment of the machine would weigh on one side only.
    rounds = _rounds(workload, arm.name, arm.draft_s / arm.num_draft_tokens)
    per_token_s = statistics.median([draft_s / drafted for drafted, draft_s, _ in rounds if drafted] or [0.0])
    times: dict[int, list[float]] = {}
    for drafted, draft_s, total_s in rounds:
        times.setdefault(drafted, []).append(total_s - draft_s)
    longest = max(times, default=0)
    acceptance = _acceptance(arm, longest)
    if not acceptance:
        return None
    costs = _filled({n: max(1e-9, statistics.median(seen) / step_s) for n, seen in times.items() if n}, longest)
    counts = tuple(len(times.get(n, ())) for n in range(longest + 1))
    lengths = predict_lengths(acceptance, per_token_s / step_s, costs)
    speedup = arm.speedup
    return RunEstimate(
        workload=workload.name,
        arm=arm.name,
        acceptance=acceptance,
        draft_cost=per_token_s / step_s,
        verify_costs=costs,
        num_rounds=counts,
        lengths=lengths,
        predicted=predict_mix(lengths, counts),
        measured=None if speedup is None else speedup.median,
        low=None if speedup is None else speedup.low,
        high=None if speedup is None else speedup.high,
    )


def _acceptance(arm: RunArm, longest: int) -> tuple[float, ...]:
    """Return the acceptance at each position, none if it is not known of the first.

    A position that no draft reached takes the last known value. It weighs next to nothing: had drafts come so far
    with any likelihood, one would have.
    """
    found: list[float] = []
    for value in arm.conditional_acceptance_by_position or ():
        if value is None or not 0.0 <= value <= 1.0:
            break
        found.append(value)
    return tuple([*found, *found[-1:] * longest][:longest])


def _rounds(workload: RunWorkload, arm: str, per_token_s: float) -> list[tuple[int, float, float]]:
    """Return of each round how much was drafted, how long that took, and how long the round. A trial's first round is
    left out: it is the prefill's.

    Args:
        per_token_s: time of a drafted token, for rounds that did not keep theirs.
    """
    trials: list[RunTrial] = [trial for trial in workload.trials if trial.arm == arm]
    found = []
    for trial in trials:
        rounds = trial.rounds
        own = rounds.draft_s if len(rounds.draft_s) == len(rounds.drafted) else None
        for index, (drafted, total_s) in enumerate(zip(rounds.drafted, rounds.total_s, strict=False)):
            if index:
                found.append((drafted, drafted * per_token_s if own is None else own[index], total_s))
    return found


def _filled(known: dict[int, float], longest: int) -> tuple[float, ...]:
    """Return a cost for each length from 1 on. One that was not seen lies on the line between its neighbours."""
    points = sorted({0: 1.0, **known}.items())
    costs = []
    for n in range(1, longest + 1):
        before = max((point for point in points if point[0] <= n), key=lambda point: point[0])
        after = min((point for point in points if point[0] >= n), key=lambda point: point[0])
        share = (n - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        costs.append(before[1] + share * (after[1] - before[1]))
    return tuple(costs)
