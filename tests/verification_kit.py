"""What losslessness is tested with: toy distributions over texts, dice that walk through every outcome, chi-square."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import TypeVar

import numpy as np

from localspec.engine.dice import Dice, Weights
from localspec.engine.distribution import Distribution
from localspec.engine.drafting.draft_model import DraftModelDrafter, Drawing
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.model import Progress
from localspec.engine.pacing import FixedPacing, Pacing
from localspec.engine.speculative import Round, speculate
from localspec.engine.values import FinishReason, SpeculationSettings
from localspec.engine.verification import Verify

PROMPT = (0, 1)
Text = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToyChain:
    """A distribution of the next token for every text: logits of the last tokens, then a user's chain on them."""

    n_vocab: int = 3
    seed: int = 0
    order: int = 2
    spread: float = 1.5
    penalty: float = 0.0
    """Taken off the logit of a token for each time that the text has it."""
    top_p: float = 1.0
    forbids: Callable[[Text, int], bool] = field(default=lambda text, token: False)

    def following(self, text: Sequence[int]) -> Distribution:
        return _following(self, tuple(text))


@cache
def _following(chain: ToyChain, text: Text) -> Distribution:
    rng = random.Random(repr((chain.seed, text[-chain.order :])))
    logits = np.array([rng.gauss(0.0, chain.spread) for _ in range(chain.n_vocab)])
    logits -= [chain.penalty * text.count(token) for token in range(chain.n_vocab)]
    logits[[chain.forbids(text, token) for token in range(chain.n_vocab)]] = -np.inf
    weights = np.exp(logits - logits.max())
    order = np.argsort(-weights)
    cumulative = np.cumsum(weights[order]) / weights.sum()
    weights[order[1:][cumulative[:-1] >= chain.top_p]] = 0.0
    ids = weights.nonzero()[0].astype(np.int32)
    return Distribution(ids, weights[ids] / weights[ids].sum())


class TextModel:
    """A sequence model whose rows are the texts themselves, so that a row out of place is noticed."""

    def __init__(self, n_vocab: int, n_ctx: int = 64, spend: Callable[[], None] = lambda: None) -> None:
        self._n_vocab = n_vocab
        self._n_ctx = n_ctx
        self._spend = spend
        self._tokens: list[int] = []
        self.rows: list[Text] = []

    @property
    def n_ctx(self) -> int:
        return self._n_ctx

    @property
    def n_vocab(self) -> int:
        return self._n_vocab

    @property
    def tokens(self) -> Sequence[int]:
        return self._tokens

    def decode(self, tokens: Sequence[int], num_logits: int) -> None:
        self._spend()
        self._tokens.extend(tokens)
        assert len(self._tokens) <= self._n_ctx
        length = len(self._tokens)
        self.rows = [tuple(self._tokens[:end]) for end in range(length - num_logits + 1, length + 1)]

    def prefill(self, tokens: Sequence[int], progress: Progress | None = None) -> None:
        self.decode(tokens, 1)

    def truncate(self, length: int) -> None:
        del self._tokens[length:]

    def keep_prefix(self, tokens: Sequence[int]) -> int:
        self.truncate(0)
        return 0

    def clear(self) -> None:
        self.truncate(0)

    def argmax(self, row: int) -> int:
        raise AssertionError("nothing here is greedy")

    def argmax_with_probability(self, row: int) -> tuple[int, float]:
        raise AssertionError("nothing here is greedy")


class ChainSampler:
    """A sampler of a toy chain over a text model's rows. Its history and the row must tell of the same text."""

    def __init__(self, model: TextModel, chain: ToyChain, prompt: Sequence[int], dice: Dice) -> None:
        self._model = model
        self._chain = chain
        self._dice = dice
        self._num_prompt = len(prompt)
        self._text = list(prompt)

    @property
    def accepted(self) -> Text:
        return tuple(self._text[self._num_prompt :])

    def sample(self, row: int) -> int:
        found = self.distribution(row, ())
        token = int(found.ids[self._dice.choose(found.probabilities)])
        self.accept(token)
        return token

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        text = (*self._text, *prefix)
        assert self._model.rows[row] == text
        return self._chain.following(text)

    def accept(self, token: int) -> None:
        self._text.append(token)


class EveryOutcome:
    """Dice that walk through every outcome of a procedure, depth first, each with its exact probability."""

    def __init__(self) -> None:
        self._options: list[list[tuple[int, float]]] = []
        self._place = 0

    def happens(self, probability: float) -> bool:
        share = min(max(probability, 0.0), 1.0)
        return self._decide([(1, share), (0, 1.0 - share)]) == 1

    def choose(self, weights: Weights) -> int:
        assert weights.min() >= 0.0
        return self._decide(list(enumerate((weights / weights.sum()).tolist())))

    def _decide(self, options: Sequence[tuple[int, float]]) -> int:
        if self._place == len(self._options):
            self._options.append([option for option in options if option[1] > 0.0])
        self._place += 1
        return self._options[self._place - 1][0][0]

    def outcomes(self, procedure: Callable[[], T]) -> Iterator[tuple[float, T]]:
        while True:
            self._place = 0
            result = procedure()
            assert self._place == len(self._options)
            yield math.prod(options[0][1] for options in self._options), result
            while self._options and len(self._options[-1]) == 1:
                self._options.pop()
            if not self._options:
                return
            self._options[-1].pop(0)


def total_by(outcomes: Iterator[tuple[float, T]], key: Callable[[T], Text]) -> dict[Text, float]:
    """Sum probabilities by what `key` says of an outcome."""
    totals: dict[Text, float] = {}
    for probability, outcome in outcomes:
        totals[key(outcome)] = totals.get(key(outcome), 0.0) + probability
    return totals


def texts_of(chain: ToyChain, length: int, end: int | None = None, text: Text = ()) -> dict[Text, float]:
    """The exact probability of every answer of `length` tokens, shorter ones that end included, that begins so."""
    if len(text) == length or (end is not None and text[-1:] == (end,)):
        return {text: 1.0}
    found = chain.following((*PROMPT, *text))
    totals: dict[Text, float] = {}
    for token, share in zip(found.ids.tolist(), found.probabilities.tolist(), strict=True):
        for longer, probability in texts_of(chain, length, end, (*text, token)).items():
            totals[longer] = share * probability
    return totals


class Misreporting:
    """A draft's sampler that draws from one chain and says that it drew from another."""

    def __init__(self, inner: ChainSampler, claimed: Callable[[Distribution], Distribution]) -> None:
        self._inner = inner
        self._claimed = claimed

    def sample(self, row: int) -> int:
        return self._inner.sample(row)

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        return self._claimed(self._inner.distribution(row, prefix))

    def accept(self, token: int) -> None:
        self._inner.accept(token)


def drawn_drafter(chain: ToyChain, dice: Dice, p_min: float = 0.0) -> DraftModelDrafter:
    """The engine's own drafter over a toy chain, which has begun with the prompt."""
    model = TextModel(chain.n_vocab)
    drafter = DraftModelDrafter(model, "toy", p_min)
    drafter.begin(PROMPT)
    drafter.draw(Drawing(ChainSampler(model, chain, PROMPT, dice), dice))
    return drafter


def generate(
    target: ToyChain,
    drafter: Drafter | None,
    verify: Verify,
    dice: Dice,
    *,
    max_tokens: int,
    n_max: int = 2,
    n_min: int = 0,
    end: int | None = None,
    reason: FinishReason = "stop",
    limits: Sequence[int] = (),
    num_rounds: int | None = None,
    pacing: Pacing | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    spend: Callable[[], None] = lambda: None,
) -> list[Round]:
    """One answer of the real loop over toy chains, or its first rounds; with `limits`, drafts of these lengths."""
    model = TextModel(target.n_vocab, spend=spend)
    model.prefill(PROMPT)
    sampler = ChainSampler(model, target, PROMPT, dice)
    fixed = FixedPacing(SpeculationSettings("draft", n_max=n_max, n_min=n_min))
    if limits:
        lengths = iter([*limits, *[0] * max_tokens])
        fixed.limit = lambda room: min(next(lengths), room)  # type: ignore[method-assign]
    answer = speculate(
        model, sampler, drafter, pacing or fixed, max_tokens, lambda t: reason if t == end else None, clock, verify
    )
    rounds = list(islice(answer, num_rounds))
    assert sampler.accepted == emitted(rounds)
    return rounds


def emitted(rounds: Sequence[Round]) -> Text:
    return tuple(token for done in rounds for token in done.emitted)


def largest_error(found: Mapping[Text, float], wanted: Mapping[Text, float]) -> float:
    """The largest difference of two distributions."""
    return max(abs(found.get(key, 0.0) - wanted.get(key, 0.0)) for key in {*found, *wanted})


def chi_square_p(counts: Mapping[Text, int], wanted: Mapping[Text, float]) -> float:
    """Probability of a fit at least as bad as this one, cells of fewer than 5 expected pooled.

    The tail is Wilson and Hilferty's (1931), whose error matters to no threshold of a power of ten.
    """
    total = sum(counts.values())
    if any(wanted.get(key, 0.0) <= 0.0 for key, count in counts.items() if count):
        return 0.0
    cells: list[tuple[float, float]] = []
    rare = (0.0, 0.0)
    for key, probability in wanted.items():
        cell = (float(counts.get(key, 0)), total * probability)
        if cell[1] >= 5.0:
            cells.append(cell)
        else:
            rare = (rare[0] + cell[0], rare[1] + cell[1])
    if rare[1] >= 5.0:
        cells.append(rare)
    freedom = len(cells) - 1
    assert freedom > 0, "there is nothing to compare"
    statistic = sum((seen - expected) ** 2 / expected for seen, expected in cells)
    scale = 2.0 / (9.0 * freedom)
    return 0.5 * math.erfc(((statistic / freedom) ** (1 / 3) - (1.0 - scale)) / math.sqrt(2.0 * scale))
