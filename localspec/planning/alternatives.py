"""A smaller file of the draft: what it would bring, by the difference of sizes, since it is not here to be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localspec.planning.fitting import Fitting, Trial, at_context
from localspec.planning.gains import Basis, context_words
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.search import Sample, predicted, predicted_largest
from localspec.planning.values import DraftAlternative, PlanRow, TradeOffer


async def smaller_draft(
    fitting: Fitting, basis: Basis, alternatives: Sequence[DraftAlternative]
) -> tuple[TradeOffer, ...]:
    """Return the largest of the smaller files that brings all that is wished for, or else the one that brings most.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
        MeasuresSpentError: the limit on measures is reached.
    """
    if basis.start > basis.goal or not alternatives:
        return ()
    low, high = await fitting.trial(basis.wishes, basis.start), await fitting.trial(basis.wishes, basis.goal)
    now = sum(row.weights_bytes for row in low.rows if row.model == "draft")
    smaller = sorted((other for other in alternatives if other.weights_bytes < now), key=lambda it: -it.weights_bytes)
    best: tuple[int, DraftAlternative] | None = None
    for other in smaller:
        n_ctx = _estimate(fitting, low, high, other.weights_bytes / now)
        if n_ctx >= basis.useful and (best is None or n_ctx > best[0]):
            best = n_ctx, other
    if best is None:
        return ()
    n_ctx, other = best
    text = (
        f"The draft as {other.quantisation}: {context_words(basis, n_ctx, 'about ')}; "
        "its drafts may be accepted a little less often"
    )
    return (TradeOffer("smaller_draft", text, at_context(basis.wishes, n_ctx), n_ctx, is_estimate=True),)


def _estimate(fitting: Fitting, low: Trial, high: Trial, share: float) -> int:
    """Return about the largest context that fits with draft weights of that share; 0 if not even the lower one does."""
    bottom, top = (Sample(trial.n_ctx // CONTEXT_PADDING, _scaled(trial.rows, share)) for trial in (low, high))
    if not fitting.fits(bottom.rows):
        return 0
    if bottom.step >= top.step or fitting.fits(predicted(bottom, top, top.step)):
        return high.n_ctx
    return CONTEXT_PADDING * predicted_largest(bottom, top, bottom.step, top.step, fitting.fits)


def _scaled(rows: Sequence[PlanRow], share: float) -> tuple[PlanRow, ...]:
    return tuple(
        replace(row, weights_bytes=int(row.weights_bytes * share)) if row.model == "draft" else row for row in rows
    )
