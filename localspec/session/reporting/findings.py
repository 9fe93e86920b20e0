"""Titles of pictures, each a sentence that states what the picture shows."""

from __future__ import annotations

from collections.abc import Sequence

from localspec.session.arms import BASELINE_NAME
from localspec.session.reporting.figures import milliseconds, rate, share, times
from localspec.session.reporting.rate_traces import RateTraces
from localspec.session.reporting.series import AcceptedLengths, ArmSpeed, PositionAcceptance, TimeSplit, VerifyPoint


def speedup_finding(speeds: Sequence[ArmSpeed]) -> str:
    """Return on how many workloads drafts are clearly faster, and where most."""
    compared = [speed for speed in speeds if speed.speedup is not None]
    workloads = list(dict.fromkeys(speed.workload for speed in compared))
    faster = [speed for speed in compared if speed.verdict == "faster"]
    slower = [speed for speed in compared if speed.verdict == "slower"]
    if faster:
        best = max(faster, key=_median)
        where = list(dict.fromkeys(speed.workload for speed in faster))
        much = f"{times(_median(best))} with {best.arm} on {best.workload}"
        if len(workloads) == 1:
            return f"Drafts are faster: {much}"
        if len(where) == len(workloads):
            return f"Drafts are faster on all {len(workloads)} workloads: {much}"
        return f"Drafts are faster on {len(where)} of {len(workloads)} workloads: {much}"
    if slower and len(slower) == len(compared):
        worst = min(slower, key=_median)
        return f"Drafts make it slower here: down to {times(_median(worst))} with {worst.arm} on {worst.workload}"
    if slower:
        return "Drafts are nowhere clearly faster here, and slower on some workloads"
    if compared and all(speed.verdict == "too_little_to_judge" for speed in compared):
        return "Too little was measured to judge drafts by"
    return "No clear difference between drafts and none"


def rate_finding(workload: str, found: RateTraces) -> str:
    """Return how fast the arms wrote."""
    rates = [(trace.arm, trace.median_tps) for trace in found.traces if trace.median_tps is not None]
    if not rates:
        return f"{workload}: tokens per second in the course of an answer"
    (fastest, most), *others = sorted(rates, key=lambda item: -item[1])
    rest = "".join(f", {arm} {rate(tps)}" for arm, tps in others)
    return f"{workload}: {fastest} writes {rate(most)} tokens per second{rest}"


def time_finding(workload: str, splits: Sequence[TimeSplit]) -> str:
    """Return how long a token took with each arm."""
    first, *others = splits
    rest = "".join(f", {milliseconds(split.total_s).removesuffix(' ms')} {_with(split.arm)}" for split in others)
    return f"{workload}: {milliseconds(first.total_s)} per token {_with(first.arm)}{rest}"


def acceptance_finding(workload: str, found: Sequence[PositionAcceptance]) -> str:
    """Return how far the drafts of the arm with the best first token get."""
    best = max(found, key=lambda arm: arm.of_all_rounds[0])
    first, last = best.of_all_rounds[0], best.of_all_rounds[-1]
    if len(best.of_all_rounds) == 1:
        return f"{workload}: of {best.arm}'s drafted tokens {share(first)} are accepted"
    last_place = len(best.of_all_rounds)
    return (
        f"{workload}: {best.arm}'s first token is accepted in {share(first)} of rounds, token {last_place} in "
        f"{share(last)}"
    )


def verify_finding(points: Sequence[VerifyPoint]) -> str:
    """Return what the widest pass costs."""
    widest = points[-1]
    tokens = "1 draft token" if widest.num_checked == 1 else f"{widest.num_checked} draft tokens"
    return f"Checking {tokens} takes {widest.cost:.1f} plain steps, for up to {widest.num_checked + 1} tokens"


def length_finding(workload: str, found: Sequence[AcceptedLengths]) -> str:
    """Return tokens per round."""
    parts = [f"{arm.arm} {arm.tokens_per_round:.2f}" for arm in found]
    return f"{workload}: a round with drafts gives {', '.join(parts)} tokens on average"


def _with(arm: str) -> str:
    return "without drafts" if arm == BASELINE_NAME else f"with {arm}"


def _median(speed: ArmSpeed) -> float:
    return speed.speedup.median if speed.speedup is not None else 0.0
