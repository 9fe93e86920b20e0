"""From a workload's record to the numbers that a picture shows. Nothing is drawn and nothing is worded here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from localspec.metrics.statistics import median, percentile
from localspec.session.arms import BASELINE_NAME
from localspec.session.records import Record
from localspec.session.reporting.reading import finite, items, name, number, numbers, objects, part, text

MIN_ROUNDS: Final = 8
"""Fewer rounds that checked equally many tokens say nothing about what that costs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and its 95 % interval, if there is one."""

    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ArmSpeed:
    """How fast an arm was on one workload."""

    workload: str
    arm: str
    tps: Interval | None
    speedup: Interval | None
    """None for the baseline, and for an arm without complete pairs."""
    verdict: str


@dataclass(frozen=True, slots=True)
class PositionAcceptance:
    """How often the token at each place of a draft was accepted, place 1 first."""

    arm: str
    of_all_rounds: tuple[float, ...]
    given_earlier: tuple[float | None, ...]
    """Of the rounds that had a token there and accepted all before it; None where there was no such round."""
    num_reached: tuple[int, ...]
    """Rounds that `given_earlier` rests on; empty if the records do not tell."""
    num_rounds: int

    def is_sure(self, index: int) -> bool:
        """Say whether enough rounds came as far as a place, from 0; true where it is not known."""
        return index >= len(self.num_reached) or self.num_reached[index] >= MIN_ROUNDS


@dataclass(frozen=True, slots=True)
class VerifyPoint:
    """What a target pass costs that checks some draft tokens, in plain steps of the baseline."""

    num_checked: int
    cost: float
    """Median."""
    low: float
    """Lower quartile."""
    high: float
    """Upper quartile."""
    num_rounds: int


@dataclass(frozen=True, slots=True)
class TimeSplit:
    """Seconds per emitted token of an arm's rounds, by what they were used for. The prefill is not in them."""

    arm: str
    draft_s: float
    verify_s: float
    sample_s: float
    own_s: float

    @property
    def total_s(self) -> float:
        """All of it."""
        return self.draft_s + self.verify_s + self.sample_s + self.own_s


@dataclass(frozen=True, slots=True)
class AcceptedLengths:
    """Item m of `counts`: rounds with drafts that accepted exactly m tokens."""

    arm: str
    counts: tuple[int, ...]

    @property
    def num_rounds(self) -> int:
        """Rounds with drafts."""
        return sum(self.counts)

    @property
    def tokens_per_round(self) -> float:
        """Tau: 1 + accepted tokens / rounds with drafts."""
        return 1.0 + sum(length * count for length, count in enumerate(self.counts)) / self.num_rounds


def interval(record: object, *keys: str) -> Interval | None:
    """Return a median with its interval; None if there is no positive one."""
    found = part(record, *keys)
    middle = number(found, "median")
    return None if middle is None or middle <= 0.0 else Interval(middle, number(found, "low"), number(found, "high"))


def is_baseline(arm: Record) -> bool:
    """Say whether an arm drafts nothing."""
    return text(arm, "method") == "off" or text(arm, "name") == BASELINE_NAME


def verdict_of(arm: Record) -> str:
    """Return the stored verdict; documents of earlier versions call too few pairs no clear difference."""
    verdict, speedup = text(arm, "verdict"), interval(arm, "speedup")
    is_bare = speedup is not None and speedup.low is None
    return "too_little_to_judge" if verdict == "no_clear_difference" and is_bare else verdict


def arm_speeds(workload: Record) -> tuple[ArmSpeed, ...]:
    """Return the arms that have run, the baseline first."""
    return tuple(
        ArmSpeed(
            workload=name(workload, "name"),
            arm=name(arm, "name"),
            tps=interval(arm, "decode_tps"),
            speedup=interval(arm, "speedup"),
            verdict=verdict_of(arm),
        )
        for arm in _arms_that_ran(workload)
    )


def position_acceptance(workload: Record) -> tuple[PositionAcceptance, ...]:
    """Return the arms that drafted."""
    found = []
    for arm in _arms_that_ran(workload):
        of_all = numbers(arm, "acceptance_by_position")
        num_rounds = number(arm, "num_rounds")
        if is_baseline(arm) or not of_all or not num_rounds:
            continue
        given = tuple(finite(item) for item in items(arm, "conditional_acceptance_by_position"))
        reached = _num_reached(trials_of(workload, text(arm, "name")))
        found.append(PositionAcceptance(name(arm, "name"), tuple(of_all), given, reached, int(num_rounds)))
    return tuple(found)


def verify_costs(workloads: Iterable[Record]) -> tuple[VerifyPoint, ...]:
    """Return the cost of a target pass by the number of draft tokens that it checks, 0 (the plain step) first.

    Each pass is divided by the median plain step of its own workload's baseline, since long texts make every step
    slower. A number with fewer than MIN_ROUNDS passes is left out. Empty if the baseline has too few steps, or the
    records do not say how long a pass took.
    """
    costs: dict[int, list[float]] = {}
    for workload in workloads:
        baseline_names = {text(arm, "name") for arm in objects(workload, "arms") if is_baseline(arm)}
        passes = [
            (text(trial, "arm") in baseline_names, drafted, verify_s)
            for trial in objects(workload, "trials")
            for drafted, verify_s in _passes(trial)
        ]
        plain = [verify_s for is_plain, drafted, verify_s in passes if is_plain and drafted == 0]
        if len(plain) < MIN_ROUNDS:
            continue
        step_s = median(plain)
        for is_plain, drafted, verify_s in passes:
            if drafted > 0 or is_plain:
                costs.setdefault(drafted, []).append(verify_s / step_s)
    return tuple(
        VerifyPoint(checked, median(found), percentile(found, 25.0), percentile(found, 75.0), len(found))
        for checked, found in sorted(costs.items())
        if len(found) >= MIN_ROUNDS
    )


def time_splits(workload: Record) -> tuple[TimeSplit, ...]:
    """Return the arms whose times are known, the baseline first."""
    found = []
    for arm in _arms_that_ran(workload):
        tokens = number(arm, "num_tokens")
        times = [number(arm, key) for key in ("draft_s", "verify_s", "sample_s", "own_s")]
        known = [max(0.0, item) for item in times if item is not None]
        if tokens and tokens > 0 and len(known) == len(times) and sum(known) > 0.0:
            found.append(TimeSplit(name(arm, "name"), *(item / tokens for item in known)))
    return tuple(found)


def accepted_lengths(workload: Record) -> tuple[AcceptedLengths, ...]:
    """Return the arms that drafted, summed over their trials."""
    found = []
    for arm in _arms_that_ran(workload):
        counts: list[int] = []
        for trial in trials_of(workload, text(arm, "name")):
            lengths = [int(count) for count in numbers(trial, "accepted_lengths") or [] if count >= 0]
            counts += [0] * (len(lengths) - len(counts))
            for length, count in enumerate(lengths):
                counts[length] += count
        if sum(counts):
            found.append(AcceptedLengths(name(arm, "name"), tuple(counts)))
    return tuple(found)


def trials_of(workload: Record, arm: str) -> list[Record]:
    """Return an arm's trials; the baseline's closing run, which is in no figures, is left out."""
    return [
        trial
        for trial in objects(workload, "trials")
        if text(trial, "arm") == arm and trial.get("is_closing") is not True
    ]


def columns(trial: Record, *names: str) -> list[list[float]] | None:
    """Return columns of a trial's rounds, all equally long; None if one is missing."""
    found = [numbers(trial, "rounds", column) for column in names]
    kept = [column for column in found if column is not None]
    if len(kept) < len(names) or len({len(column) for column in kept}) != 1:
        return None
    return kept


def _num_reached(trials: Iterable[Record]) -> tuple[int, ...]:
    """Return for each place of a draft in how many rounds a token stood there after all before it were accepted."""
    counts: list[int] = []
    for trial in trials:
        for drafted, accepted in zip(*(columns(trial, "drafted", "accepted") or ((), ())), strict=True):
            num_reached = int(min(drafted, accepted + 1))
            counts += [0] * (num_reached - len(counts))
            for place in range(num_reached):
                counts[place] += 1
    return tuple(counts)


def _passes(trial: Record) -> Sequence[tuple[int, float]]:
    """Return drafted tokens and verify time of each pass but the first, whose time is the prefill's."""
    found = columns(trial, "drafted", "verify_s")
    if found is None:
        return ()
    return [(int(drafted), verify_s) for drafted, verify_s in zip(*found, strict=True)][1:]


def _arms_that_ran(workload: Record) -> list[Record]:
    return [arm for arm in objects(workload, "arms") if arm.get("has_run") is True and text(arm, "name")]
