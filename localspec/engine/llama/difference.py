"""Why two outputs of the same model differ: rounding between step shapes, or an error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from localspec.engine.events import DifferenceExplained
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.sampler import LlamaSampler
from localspec.engine.model import Progress
from localspec.engine.requests import ExplainDifference
from localspec.errors import UsageError

_BEST_CANDIDATES = 10

Ids = npt.NDArray[np.intp]
Logits = npt.NDArray[np.float32]


def explain_difference(context: LlamaContext, request: ExplainDifference, progress: Progress) -> DifferenceExplained:
    """Replay the common text in single steps, then in the speculative arm's batches, and compare the rows.

    Both replays start from an empty cache, so an arm whose cache had gone wrong is not reproduced by them. The noise is
    the largest logit difference between the two over the ten best candidates of every replayed position: two
    candidates can change places only where their gap is below twice that.

    Args:
        context: is cleared before and after.
        request: what both arms emitted, and the speculative arm's rounds.
        progress: called with (tokens replayed, tokens in all).

    Raises:
        UsageError: there is nothing to replay, or it does not fit the context.
        Cancelled: an abort was asked for.
        DecodeError: a step failed.
    """
    length = len(request.prompt) + len(request.common)
    if not request.prompt or length > context.n_ctx or len(request.drafted) != len(request.num_accepted):
        raise UsageError(
            f"{length} tokens cannot be replayed here.", "Use the context and rounds of the compared runs."
        )
    is_single = (((), 0) for _ in request.common)
    total, done = 2 * length, 0
    candidates: list[tuple[Ids, Logits]] = []
    single_token = batched_token = -1
    for choice, row in _rows(context, request, is_single):
        ids = np.argpartition(row, -_BEST_CANDIDATES)[-_BEST_CANDIDATES:]
        candidates.append((ids, row[ids]))
        single_token = choice
        done += 1
        progress(done, total)
    noise = 0.0
    batches = zip(request.drafted, request.num_accepted, strict=True)
    for (ids, single), (choice, row) in zip(candidates, _rows(context, request, batches), strict=False):
        noise = max(noise, float(np.abs(row[ids] - single).max()))
        batched_token = choice
        done += 1
        progress(done, total)
    context.clear()
    progress(total, total)
    best = np.sort(candidates[-1][1])
    return DifferenceExplained(request.id, float(best[-1] - best[-2]), noise, single_token, batched_token)


def _rows(
    context: LlamaContext, request: ExplainDifference, rounds: Iterator[tuple[tuple[int, ...], int]]
) -> Iterator[tuple[int, Logits]]:
    """Yield the sampler's choice and the logits after the prompt and after each common token."""
    context.clear()
    context.prefill(request.prompt)
    banned = tuple(context.model.vocabulary.end_tokens) if request.ignore_eog else ()
    sampler = LlamaSampler(context, request.sampling, request.prompt, banned)
    try:
        yield sampler.sample(0), context.logits(0)
        position = 0
        while position < len(request.common):
            drafted, num_accepted = next(rounds, ((), 0))
            start = len(context.tokens)
            room = context.n_ctx - start - 1
            context.decode((request.common[position], *drafted[:room]), min(len(drafted), room) + 1)
            num_kept = min(num_accepted + 1, len(request.common) - position)
            for row in range(num_kept):
                yield sampler.sample(row), context.logits(row)
            context.truncate(start + num_kept)
            position += num_kept
    finally:
        sampler.close()
