"""The real loop over a made-up text on a made-up machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localspec.engine.distribution import Distribution
from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.model import Progress
from localspec.engine.pacing import Pacing
from localspec.engine.speculative import speculate
from tests.simulation.machines import Clock, Machine
from tests.simulation.texts import Text
from tests.toys import PlacedDrafter


class MadeUpTarget:
    """A target whose token at position t is t + 1, and whose steps take simulated time."""

    def __init__(self, machine: Machine, clock: Clock, length: int) -> None:
        self._machine = machine
        self._clock = clock
        self._length = length
        self._tokens: list[int] = [1]

    @property
    def n_ctx(self) -> int:
        return self._length + 64

    @property
    def n_vocab(self) -> int:
        return self._length + 128

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    def decode(self, tokens: Sequence[int], num_logits: int) -> None:
        self._clock.spend(self._machine.cost(len(tokens)))
        self._tokens.extend(tokens)

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> None:
        raise NotImplementedError

    def truncate(self, length: int) -> None:
        del self._tokens[length:]

    def keep_prefix(self, tokens: Sequence[int]) -> int:
        raise NotImplementedError

    def clear(self) -> None:
        self._tokens.clear()

    def argmax(self, row: int) -> int:
        raise NotImplementedError

    def argmax_with_probability(self, row: int) -> tuple[int, float]:
        raise NotImplementedError


class MadeUpSampler:
    """Draws the text's own token; wrong proposals are 0, which no position has."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._position = 1

    def sample(self, row: int) -> int:
        self._position += 1
        self._clock.age()
        return self._position

    def distribution(self, row: int, before: Sequence[int] = ()) -> Distribution:
        raise NotImplementedError

    def accept(self, token: int) -> None:
        raise NotImplementedError


class MadeUpDraftModel(PlacedDrafter):
    """A draft model whose steps take simulated time."""

    def __init__(self, text: Text, clock: Clock, step: float, catch_up: float) -> None:
        super().__init__("draft")
        self._text = text
        self._clock = clock
        self._step = step
        self._catch_up = catch_up
        self._seen = 0
        self.num_steps = 0

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        super().begin(prompt, progress)
        self._seen = 0

    @property
    def num_unseen(self) -> int:
        return max(self.position - self._seen, 1)

    @property
    def is_free(self) -> bool:
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        text, start = self._text, self.position
        self._clock.spend((self.num_unseen - 1) * self._catch_up)
        tokens: list[int] = []
        shown: list[float] = []
        while True:
            self._clock.spend(self._step)
            self.num_steps += 1
            position = min(start + len(tokens), text.length - 1)
            tokens.append(start + len(tokens) + 2 if text.is_right[position] else 0)
            shown.append(text.confidence[position])
            if len(tokens) == limit:
                break
            if go_on is not None and not go_on(len(tokens), shown[-1]):
                break
        self._seen = start + len(tokens) - 1
        return Draft(tuple(tokens), "n_max" if len(tokens) == limit else "not_worth", tuple(shown))

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        self._seen = min(self._seen, self.position + num_accepted)
        super().observe(tokens, num_accepted)


class MadeUpCopier(PlacedDrafter):
    """A free drafter."""

    def __init__(self, text: Text) -> None:
        super().__init__("copier")
        self._text = text

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        text, start = self._text, self.position
        match = text.match_length[min(start, text.length - 1)]
        if not match:
            return Draft((), "no_match")
        tokens = []
        for offset in range(limit):
            position = min(start + offset, text.length - 1)
            tokens.append(start + offset + 2 if text.copies[position] else 0)
        return Draft(tuple(tokens), "n_max", match_length=match)


class MadeUpCascade(PlacedDrafter):
    """Both, the free one first."""

    def __init__(self, members: tuple[Drafter, ...]) -> None:
        super().__init__("cascade")
        self.members = members

    def begin(self, prompt: Sequence[int], progress: Progress | None = None) -> None:
        for member in self.members:
            member.begin(prompt)

    @property
    def num_unseen(self) -> int:
        return max(member.num_unseen for member in self.members)

    @property
    def is_free(self) -> bool:
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = Draft((), "no_match")
        for member in self.members:
            draft = member.draft(limit, go_on)
            if draft.tokens:
                break
        return draft

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        for member in self.members:
            member.observe(tokens, num_accepted)


@dataclass(frozen=True, slots=True)
class Run:
    """How long a text took."""

    spent: tuple[float, ...]
    """Plain steps' worth of time by number of tokens emitted, from 0 on; without noise."""

    def cost(self, first: int = 0, last: int | None = None) -> float:
        """Return the time of tokens first to last."""
        return self.spent[-1 if last is None else last] - self.spent[first]


def play(
    text: Text,
    machine: Machine,
    drafter: Drafter | None,
    pacing: Pacing,
    clock: Clock,
    num_tokens: int | None = None,
) -> Run:
    """Generate the whole text, or its first tokens; time within a round is spread evenly over its tokens."""
    length = text.length if num_tokens is None else num_tokens
    target = MadeUpTarget(machine, clock, text.length)
    if drafter is not None:
        drafter.begin((1,))
    begun = clock.spent
    spent = [0.0]
    rounds = speculate(target, MadeUpSampler(clock), drafter, pacing, length + 1, lambda token: None, clock=clock)
    next(rounds)
    for done in rounds:
        passed, before = clock.spent - begun, spent[-1]
        count = len(done.emitted)
        spent.extend(before + (passed - before) * (index + 1) / count for index in range(count))
    return Run(tuple(spent))
