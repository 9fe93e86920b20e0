"""Published ways to choose the draft length, beside localspec's."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.pacing import Outcome
from localspec.engine.values import Beliefs
from tests.simulation.machines import Machine
from tests.simulation.texts import Text


class Policy:
    """What all of them share: a length for the round, and what became of it."""

    @property
    def beliefs(self) -> Beliefs | None:
        return None

    def length(self) -> int:
        raise NotImplementedError

    def propose(self, drafter: Drafter, room: int) -> Draft:
        limit = min(self.length(), room)
        return drafter.draft(limit) if limit > 0 else Draft((), "off")

    def learn(self, outcome: Outcome) -> None:
        pass


class Fixed(Policy):
    """Always the same."""

    def __init__(self, length: int) -> None:
        self._length = length

    def length(self) -> int:
        return self._length


class PlusTwoMinusOne(Policy):
    """transformers' schedule: all accepted, then two more, else one fewer; it begins with 5 and never goes under 1."""

    def __init__(self, cap: int) -> None:
        self._length = 5.0
        self._cap = cap

    def length(self) -> int:
        return min(int(self._length), self._cap)

    def learn(self, outcome: Outcome) -> None:
        if outcome.num_accepted == len(outcome.draft.tokens):
            self._length += 2
        else:
            self._length = max(1.0, self._length - 1)


class DynamicThreshold(Policy):
    """transformers' dynamic assistant: up to 20 tokens while the confidence is above a threshold that is fitted to
    the pairs seen so far (least false positives + 3 false negatives on the ROC curve), 0.4 before."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._threshold = 0.4
        self._seen: list[tuple[float, bool]] = []

    def propose(self, drafter: Drafter, room: int) -> Draft:
        limit = min(self._cap, room)
        if limit < 1:
            return Draft((), "off")
        return drafter.draft(limit, lambda count, confidence: confidence >= self._threshold)

    def learn(self, outcome: Outcome) -> None:
        shown = outcome.draft.probabilities or ()
        for index in range(min(outcome.num_accepted + 1, len(shown))):
            self._seen.append((shown[index], index < outcome.num_accepted))
        num_right = sum(right for _, right in self._seen)
        num_wrong = len(self._seen) - num_right
        if len(self._seen) <= 5 or not num_right or not num_wrong:
            return
        best = math.inf
        above_right = above_wrong = 0
        for confidence, right in sorted(self._seen, reverse=True):
            above_right += right
            above_wrong += not right
            score = above_wrong / num_wrong + 3 * (1 - above_right / num_right)
            if score < best:
                best, self._threshold = score, confidence


class JointThreshold(Policy):
    """SpecDec++'s rule with the draft's confidence for its trained head: on while the chance that something was wrong
    is under 0.7."""

    def __init__(self, cap: int) -> None:
        self._cap = cap

    def propose(self, drafter: Drafter, room: int) -> Draft:
        limit = min(self._cap, room)
        if limit < 1:
            return Draft((), "off")
        joint = 1.0

        def go_on(count: int, confidence: float) -> bool:
            nonlocal joint
            joint *= confidence
            return 1.0 - joint < 0.7

        return drafter.draft(limit, go_on)


class Bandit(Policy):
    """UCB over lengths, 0 included, rewarded by tokens per time; old rounds count less."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = tuple(lengths)
        self._tokens = [0.0] * len(lengths)
        self._time = [0.0] * len(lengths)
        self._count = [0.0] * len(lengths)
        self._arm = 0

    def length(self) -> int:
        for arm, count in enumerate(self._count):
            if count == 0.0:
                self._arm = arm
                return self._lengths[arm]
        rates = [tokens / time for tokens, time in zip(self._tokens, self._time, strict=True)]
        best, total = max(rates), sum(self._count)
        scores = [
            rate / best + 0.3 * math.sqrt(math.log(total + 1.0) / count)
            for rate, count in zip(rates, self._count, strict=True)
        ]
        self._arm = scores.index(max(scores))
        return self._lengths[self._arm]

    def learn(self, outcome: Outcome) -> None:
        for values in (self._tokens, self._time, self._count):
            for arm in range(len(values)):
                values[arm] *= 0.99
        self._tokens[self._arm] += outcome.num_emitted
        self._time[self._arm] += outcome.total_s
        self._count[self._arm] += 1.0


class Greedy(Policy):
    """Epsilon-greedy over lengths: one round in ten at random, else the arm of the best tokens per time lately."""

    def __init__(self, lengths: Sequence[int], seed: int) -> None:
        self._random = random.Random(seed)
        self._lengths = tuple(lengths)
        self._rates = [0.0] * len(lengths)
        self._arm = 0

    def length(self) -> int:
        unseen = [arm for arm, rate in enumerate(self._rates) if rate == 0.0]
        if unseen:
            self._arm = unseen[0]
        elif self._random.random() < 0.1:
            self._arm = self._random.randrange(len(self._lengths))
        else:
            self._arm = self._rates.index(max(self._rates))
        return self._lengths[self._arm]

    def learn(self, outcome: Outcome) -> None:
        rate = outcome.num_emitted / outcome.total_s
        old = self._rates[self._arm]
        self._rates[self._arm] = rate if old == 0.0 else old + 0.1 * (rate - old)


class Told(Policy):
    """The reference: told the acceptance at each position and all costs, it takes the length of the most tokens per
    time, of the free drafter or of the draft model. It does not know the outcomes, nor the confidence."""

    def __init__(self, text: Text, machine: Machine, step: float, cap: int) -> None:
        self._text = text
        self._machine = machine
        self._step = step
        self._cap = cap
        self._position = 0

    def propose(self, drafter: Drafter, room: int) -> Draft:
        text, position = self._text, min(self._position, self._text.length - 1)
        best, chosen, length = 1.0, None, 0
        for member in getattr(drafter, "members", (drafter,)):
            if member.is_free and not text.match_length[position]:
                continue
            chance = text.copy_acceptance[position] if member.is_free else text.acceptance[position]
            tokens = joint = 1.0
            for count in range(1, min(self._cap, room) + 1):
                joint *= chance
                tokens += joint
                cost = self._machine.cost(count + 1) + (0.0 if member.is_free else count * self._step)
                if tokens / cost > best:
                    best, chosen, length = tokens / cost, member, count
        return chosen.draft(length) if chosen is not None else Draft((), "off")

    def learn(self, outcome: Outcome) -> None:
        self._position += outcome.num_emitted
