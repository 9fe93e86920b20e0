"""Rounds of two loops over the same text, compared one by one, and what the draft thought where they part.

Two builds, or two batch shapes, round differently (quantised weights have their activations rounded too), so a draft
whose two best candidates lie closer together than that noise may propose either. Drafted and accepted totals then
differ, though both loops do the same. So rounds are compared where both begin after the same number of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localspec.engine.llama.context import LlamaContext
from tests.bench.in_process import Run
from tests.reference_server import Completion, DraftRound, ReferenceServer

NUM_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Parting:
    """Rounds that begin after the same tokens and differ."""

    start: int
    ours: DraftRound
    theirs: DraftRound

    @property
    def place(self) -> int:
        """Emitted tokens before the draft token over which they part."""
        return self.start + min(self.ours.num_accepted, self.theirs.num_accepted)


@dataclass(frozen=True, slots=True)
class Walk:
    """Both loops' rounds over a common text."""

    num_compared: int
    num_rounds: int
    partings: tuple[Parting, ...]


def walk(ours: Sequence[DraftRound], theirs: Sequence[DraftRound], num_common: int) -> Walk:
    """Compare the rounds that begin after the same number of tokens and end within the common text.

    A last round that only tokens left over cut short may accept fewer; it is compared like the others.
    """
    by_start = {round_.start: round_ for round_ in theirs}
    reaching = [round_ for round_ in ours if round_.start + round_.num_accepted < num_common]
    shared = [round_ for round_ in reaching if round_.start in by_start]
    partings = tuple(
        Parting(round_.start, round_, by_start[round_.start]) for round_ in shared if round_ != by_start[round_.start]
    )
    return Walk(len(shared), len(reaching), partings)


def own_rounds(run: Run) -> tuple[DraftRound, ...]:
    """Return our rounds with drafts."""
    found, start = [], 0
    for round_ in run.rounds:
        if round_.drafted:
            found.append(DraftRound(start, len(round_.drafted), round_.num_accepted))
        start += len(round_.emitted)
    return tuple(found)


def num_common_tokens(run: Run, answer: Completion) -> int:
    """Return how many emitted tokens both answers have in common, by their text."""
    ours, text = [""], ""
    for round_ in run.rounds:
        for token in round_.emitted:
            text += token.text
            ours.append(text)
    theirs, num_common = "", 0
    for chunk in answer.chunks:
        theirs += chunk.text
        if chunk.num_tokens >= len(ours) or ours[chunk.num_tokens] != theirs:
            break
        num_common = chunk.num_tokens
    return num_common


LogProbabilities = npt.NDArray[np.float64]


def log_probabilities(draft: LlamaContext, row: int) -> LogProbabilities:
    """Return the log-softmax of a row's logits, shape [n_vocab]."""
    logits = draft.logits(row).astype(np.float64)
    logits -= logits.max()
    return np.asarray(logits - np.log(np.exp(logits).sum()))


def difference(ours: LogProbabilities, theirs: Mapping[int, float]) -> float:
    """Return the largest difference over the candidates that the other side named."""
    return max(abs(float(ours[token]) - value) for token, value in theirs.items())


def best_candidates(row: LogProbabilities) -> dict[int, float]:
    """Return the best candidates, best first."""
    ids = np.argsort(row)[: -NUM_CANDIDATES - 1 : -1]
    return {int(token): float(row[token]) for token in ids}


def forced_rows(
    draft: LlamaContext, prompt: Sequence[int], text: Sequence[int]
) -> tuple[list[LogProbabilities], float]:
    """Teacher-force a text through the draft.

    Returns:
        Row i is what the draft thinks before `text[i]`, read in single steps; and the noise: the largest difference
        of a best candidate's log-probability between single steps and batches of 3, 5 and 9 tokens.
    """
    draft.clear()
    draft.prefill(prompt)
    rows = []
    for token in text:
        rows.append(log_probabilities(draft, 0))
        draft.decode((token,), 1)
    noise = 0.0
    for size in (3, 5, 9):
        draft.clear()
        draft.prefill(prompt)
        for begin in range(0, len(text) - 1, size):
            batch = text[begin : min(begin + size, len(text) - 1)]
            draft.decode(batch, len(batch))
            for index in range(len(batch)):
                batched = log_probabilities(draft, index)
                noise = max(noise, difference(batched, best_candidates(rows[begin + index + 1])))
    return rows, noise


@dataclass(frozen=True, slots=True)
class Result:
    """A prompt answered by us and by another loop."""

    run: Run
    theirs: tuple[DraftRound, ...]
    num_common: int

    @property
    def walk(self) -> Walk:
        """Our rounds beside theirs."""
        return walk(own_rounds(self.run), self.theirs, self.num_common)


@dataclass(frozen=True, slots=True)
class Tie:
    """What the draft thought where two loops part, in log-probabilities of a full softmax."""

    parting: Parting
    token: int
    """What the text has there."""
    gap: float
    """From the draft's best candidate to the text's token, or to the second best if the text has the best."""
    noise: float
    """Largest difference of a best candidate between differently shaped steps, and to another build."""
    ours: dict[int, float]
    """Our build's best candidates."""
    theirs: dict[int, float]
    """The other build's; empty if there is none."""

    @property
    def is_explained(self) -> bool:
        """Whether rounding can have swapped the candidates: two candidates may move by the noise each."""
        return self.gap <= 2 * self.noise and self.parting.ours.num_drafted == self.parting.theirs.num_drafted


def find_ties(draft: LlamaContext, result: Result, other_build: ReferenceServer | None) -> list[Tie]:
    """Look at every place where a prompt's rounds part.

    Args:
        draft: is cleared before.
        result: the two loops' rounds.
        other_build: serves the same draft as its only model.
    """
    run = result.run
    rows, noise = forced_rows(draft, run.prompt, run.tokens)
    others: list[dict[int, float]] = [{} for _ in rows]
    if other_build is not None:
        texts = [(*run.prompt, *run.tokens[:length]) for length in range(len(rows))]
        others = [other_build.candidates(text, NUM_CANDIDATES) for text in texts]
        noise = max(noise, *map(difference, rows, others))
    ties = []
    for parting in result.walk.partings:
        token, row = run.tokens[parting.place], rows[parting.place]
        best = best_candidates(row)
        first, second = list(best)[:2]
        gap = float(row[first] - row[second if token == first else token])
        ties.append(Tie(parting, token, gap, noise, best, others[parting.place]))
    return ties
