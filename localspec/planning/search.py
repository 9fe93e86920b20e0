"""The largest context, and the most layers on GPUs, that fit: few measures, exact all the same.

What a model takes is nearly linear in its context and its layers, in pieces: a line through two measured points gives
the next guess, and its neighbour proves it. Two things are assumed: that more never needs less, and that a cache which
is in proportion to the context at two lengths is so at others. By the second a neighbour need not be measured if it is
too large by its cache alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from localspec.planning.devices import DeviceBytes
from localspec.planning.fitting import Fitting, Trial, with_layers, without_layers
from localspec.planning.footprint import ModelRole
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.values import PlanRow, Wishes

_GUESSES_BEFORE_HALVING = 3

Fits = Callable[[Iterable[DeviceBytes]], bool]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is taken at one step of a search."""

    step: int
    rows: tuple[PlanRow, ...]


@dataclass(frozen=True, slots=True)
class PredictedBytes:
    """What one model would take on one device, by the line through two samples."""

    device: str
    total_bytes: int


async def largest(
    low: Sample,
    high: Sample,
    rows_at: Callable[[int], Awaitable[Sequence[PlanRow]]],
    fits: Fits,
    least: Callable[[Sample, Sample, int], Sequence[PlanRow]] | None = None,
) -> int:
    """Return the largest step that fits.

    Args:
        low: known, or assumed, to fit.
        high: known not to fit.
        rows_at: measures a step between the two.
        fits: the test.
        least: says from two samples what a step takes at least; None if nothing can be said.
    """
    bottom, top = low.step, high.step
    older, newer = low, high
    guesses = 0
    while top - bottom > 1:
        if guesses < _GUESSES_BEFORE_HALVING:
            step = predicted_largest(older, newer, bottom + 1, top - 1, fits)
            guesses += 1
        else:
            step = (bottom + top) // 2
            guesses = 0
        sample = Sample(step, tuple(await rows_at(step)))
        if fits(sample.rows):
            bottom = step
            if least is not None and not fits(least(low, sample, step + 1)):
                return bottom
        else:
            top = step
        older, newer = newer, sample
    return bottom


def predicted_largest(first: Sample, second: Sample, bottom: int, top: int, fits: Fits) -> int:
    """Return the largest step from bottom to top that fits by the line through two samples; bottom if none does."""
    while bottom < top:
        step = (bottom + top + 1) // 2
        if fits(predicted(first, second, step)):
            bottom = step
        else:
            top = step - 1
    return bottom


def predicted(first: Sample, second: Sample, step: int) -> tuple[PredictedBytes, ...]:
    """Return what is taken at a step by the line through two samples of different steps, never less than nothing."""
    known: dict[tuple[str, ModelRole], list[int]] = {}
    for index, sample in enumerate((first, second)):
        for row in sample.rows:
            known.setdefault((row.device, row.model), [0, 0])[index] += row.total_bytes
    width = second.step - first.step
    return tuple(
        PredictedBytes(device, max(0, at_first + (at_second - at_first) * (step - first.step) // width))
        for (device, _), (at_first, at_second) in known.items()
    )


def least_with_cache(first: Sample, second: Sample, step: int) -> tuple[PlanRow, ...]:
    """Return what a step after the second sample takes at least: its caches, where they go with the context."""
    known = {(row.device, row.model): row.kv_bytes * second.step for row in first.rows}
    return tuple(
        replace(row, kv_bytes=row.kv_bytes * step // second.step)
        if known.get((row.device, row.model)) == row.kv_bytes * first.step
        else row
        for row in second.rows
    )


async def most_context(fitting: Fitting, wishes: Wishes, fitting_trial: Trial, n_ctx: int, cap: int) -> int:
    """Return the largest context that fits with the wished placement, exact to 256.

    Args:
        fitting: measures.
        wishes: their n_ctx is passed over.
        fitting_trial: what fits at n_ctx.
        n_ctx: a multiple of 256, as is cap.
        cap: to look no further than.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    if n_ctx >= cap:
        return n_ctx
    at_cap = await fitting.trial(wishes, cap)
    if at_cap.fits:
        return cap

    async def rows_at(step: int) -> Sequence[PlanRow]:
        return (await fitting.trial(wishes, step * CONTEXT_PADDING)).rows

    low = Sample(n_ctx // CONTEXT_PADDING, fitting_trial.rows)
    high = Sample(cap // CONTEXT_PADDING, at_cap.rows)
    return CONTEXT_PADDING * await largest(low, high, rows_at, fitting.fits, least_with_cache)


async def steady_context(fitting: Fitting, wishes: Wishes, least: int, n_ctx: int) -> tuple[int, str]:
    """Return a context of which one can say now that it fits a while later too, and "about " where that is less.

    Host memory is what sways; a context that GPUs bound is returned as it is.

    Args:
        fitting: measures.
        wishes: their n_ctx is passed over.
        least: a context that fits; a multiple of 256, as is n_ctx. Nothing below it is returned.
        n_ctx: the largest that fits now.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
        MeasuresSpentError: the limit on measures is reached.
    """
    top = await fitting.trial(wishes, n_ctx)
    if fitting.holds(top.rows):
        return n_ctx, ""
    if n_ctx <= least:
        return n_ctx, "about "
    low = Sample(least // CONTEXT_PADDING, (await fitting.trial(wishes, least)).rows)
    high = Sample(n_ctx // CONTEXT_PADDING, top.rows)
    step = predicted_largest(low, high, low.step, high.step - 1, fitting.holds)
    found = await fitting.trial(wishes, step * CONTEXT_PADDING)
    return (step * CONTEXT_PADDING if found.fits else least), "about "


async def most_layers(fitting: Fitting, wishes: Wishes, role: ModelRole, whole: Trial) -> Wishes:
    """Return the wishes with as many layers of a model on GPUs as these hold, none if not even that is known to fit.

    Args:
        fitting: measures.
        wishes: with all layers on GPUs.
        role: of the model whose layers move to host memory.
        whole: what the wishes take, which the GPUs do not hold.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """

    async def rows_at(step: int) -> Sequence[PlanRow]:
        return (await fitting.trial(with_layers(wishes, role, step))).rows

    low = Sample(0, without_layers(whole.rows, role))
    high = Sample(max(1, whole.num_layers(role)), whole.rows)
    return with_layers(wishes, role, await largest(low, high, rows_at, fitting.gpus_fit))
