"""Policies on the same texts and machines, and how they stand beside off, the best fixed length and the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.pacing import Pacing
from localspec.engine.values import SpeculationSettings
from tests.simulation.machines import Clock, Machine
from tests.simulation.play import MadeUpCascade, MadeUpCopier, MadeUpDraftModel, Run, play
from tests.simulation.policies import Bandit, DynamicThreshold, Fixed, Greedy, JointThreshold, PlusTwoMinusOne, Told
from tests.simulation.texts import MakeText, Text

CAP = 16
FIXED = (1, 2, 3, 4, 5, 6, 7, 8, 11, 15)
ARMS = (0, 1, 2, 3, 4, 6, 8)

OURS = "localspec"
TOLD = "told"


@dataclass(frozen=True, slots=True)
class Setting:
    """One cell of the table."""

    machine: Machine
    step: float
    """A draft step in plain steps of the target."""
    has_copier: bool = False
    has_model: bool = True

    def drafter(self, text: Text, clock: Clock) -> Drafter:
        """Make what drafts."""
        members: list[Drafter] = []
        if self.has_copier:
            members.append(MadeUpCopier(text))
        if self.has_model:
            members.append(MadeUpDraftModel(text, clock, self.step, self.step * self.machine.reading))
        return members[0] if len(members) == 1 else MadeUpCascade(tuple(members))


MakePacing = Callable[[Text, Setting, Clock, int], Pacing]


def ours(clock: Clock, state: str = "") -> AdaptivePacing:
    """Make the real pacing."""
    return AdaptivePacing(SpeculationSettings(method="auto", n_max=CAP), clock=clock, state=state)


POLICIES: dict[str, MakePacing] = {
    "off": lambda text, setting, clock, seed: Fixed(0),
    "+2 / -1": lambda text, setting, clock, seed: PlusTwoMinusOne(CAP),
    "dynamic threshold": lambda text, setting, clock, seed: DynamicThreshold(CAP),
    "joint confidence": lambda text, setting, clock, seed: JointThreshold(CAP),
    "epsilon-greedy": lambda text, setting, clock, seed: Greedy(ARMS, seed),
    "UCB": lambda text, setting, clock, seed: Bandit(ARMS),
    OURS: lambda text, setting, clock, seed: ours(clock),
    TOLD: lambda text, setting, clock, seed: Told(text, setting.machine, setting.step, CAP),
}


def run(setting: Setting, make_text: MakeText, make_pacing: MakePacing, length: int, seed: int) -> Run:
    """Play one text by one policy from a cold start."""
    text = make_text(length, seed)
    clock = Clock(seed)
    return play(text, setting.machine, setting.drafter(text, clock), make_pacing(text, setting, clock, seed), clock)


def fixed(length: int) -> MakePacing:
    """Make a policy of one length."""
    return lambda text, setting, clock, seed: Fixed(length)


def total_cost(setting: Setting, make_text: MakeText, make_pacing: MakePacing, length: int, seeds: range) -> float:
    """Return the time of several texts in plain steps."""
    return sum(run(setting, make_text, make_pacing, length, seed).cost() for seed in seeds)


def best_fixed(setting: Setting, make_text: MakeText, length: int, seeds: range) -> tuple[int, float]:
    """Return the fixed length of the least time over all the texts, 0 (off) included, and that time."""
    costs = {0: float(length * len(seeds))}
    for count in FIXED:
        costs[count] = total_cost(setting, make_text, fixed(count), length, seeds)
    best = min(costs, key=lambda count: costs[count])
    return best, costs[best]


def converse(setting: Setting, make_text: MakeText, length: int, num_answers: int, seeds: range) -> list[float]:
    """Return the time of each answer of conversations, summed over the seeds; what is learnt stays between answers."""
    costs = [0.0] * num_answers
    for seed in seeds:
        clock = Clock(seed)
        pacing = ours(clock)
        for answer in range(num_answers):
            text = make_text(length, seed * num_answers + answer)
            pacing.begin()
            costs[answer] += play(text, setting.machine, setting.drafter(text, clock), pacing, clock).cost()
    return costs
