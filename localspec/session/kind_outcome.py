"""What drafting does for each kind of a person's own texts, and the setting that follows for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from localspec.session.drafting_text import settings_phrase
from localspec.session.my_chats import is_own, kind_of
from localspec.session.run_document import Figure, RunArm, RunWorkload
from localspec.session.verdict import factor_text
from localspec.session.workload_kind import Kind
from localspec.store.values import Record


@dataclass(frozen=True, slots=True)
class KindOutcome:
    """One kind of text."""

    kind: Kind
    arm: RunArm
    """The way of drafting that did best."""
    speedup: Figure
    pays: bool | None
    """None: no clear difference, or the machine was too unsteady to tell."""

    @property
    def text(self) -> str:
        """The outcome in a few words, such as `pays for code 1.60x (1.42 to 1.80; draft n_max 4)`."""
        how = settings_phrase(self.arm)
        low, high = self.speedup.low, self.speedup.high
        interval = how if low is None or high is None else f"{factor_text(low)} to {factor_text(high)}; {how}"
        figure = f"{factor_text(self.speedup.median)}x ({interval})"
        if self.pays is None and low is None:
            return f"was measured too little to judge for {self.kind}: {figure}"
        if self.pays is None:
            return f"makes no clear difference for {self.kind}: {figure}"
        return f"pays for {self.kind} {figure}" if self.pays else f"costs in {self.kind} {figure}"


def kind_outcomes(workloads: Sequence[RunWorkload]) -> tuple[KindOutcome, ...]:
    """Return the outcome of each workload of own chats that has a speed to judge by, the highest speedup first."""
    found = []
    for workload in workloads:
        kind = kind_of(workload.name) if is_own(workload.name) else None
        ranked = [(arm.speedup.median, arm, arm.speedup) for arm in workload.speculative if arm.speedup is not None]
        if kind is None or not ranked:
            continue
        # What is surely faster goes before what only looks so.
        _, arm, speedup = max(ranked, key=lambda item: (item[1].verdict == "faster", item[0]))
        is_clear = workload.is_reliable and arm.verdict in ("faster", "slower")
        found.append(KindOutcome(kind, arm, speedup, arm.verdict == "faster" if is_clear else None))
    return tuple(sorted(found, key=lambda outcome: -outcome.speedup.median))


def outcomes_of(document: Record) -> tuple[KindOutcome, ...]:
    """Return the outcomes of a run's document; none where it cannot be read."""
    try:
        return kind_outcomes([RunWorkload.model_validate(item) for item in document["workloads"]])
    except (KeyError, ValidationError):
        return ()


def outcome_line(outcomes: Sequence[KindOutcome]) -> str:
    """Return all outcomes as one sentence; empty without any."""
    if not outcomes:
        return ""
    text = ", ".join(outcome.text for outcome in outcomes)
    return f"In your chats drafting {text}."


def outcome_record(outcomes: Sequence[KindOutcome]) -> Record:
    """Return the outcomes by kind as JSON has them: arm, speedup ({median, low, high, pairs}) and whether it pays."""
    return {
        outcome.kind: {"arm": outcome.arm.name, "speedup": outcome.speedup.model_dump(), "pays": outcome.pays}
        for outcome in outcomes
    }


def arms_by_kind(workloads: Sequence[RunWorkload]) -> Mapping[Kind, RunArm]:
    """Return the way of drafting to use for each kind of own text that was measured: the best that pays, or none.

    Kinds without a speed to judge by are left out.
    """
    baselines = {kind_of(workload.name): workload.baseline for workload in workloads}
    chosen = {}
    for outcome in kind_outcomes(workloads):
        arm = outcome.arm if outcome.pays else baselines[outcome.kind]
        if arm is not None:
            chosen[outcome.kind] = arm
    return chosen
