"""What a step of each width costs on this machine, measured on the loaded models."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Literal

from localspec.engine.events import StepCost, StepsMeasured, StepsProgress
from localspec.engine.llama.context import LlamaContext
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.model import Cancelled
from localspec.engine.requests import MeasureSteps
from localspec.errors import UsageError

MIN_SAMPLES = 3
"""Steps of each width that are taken, however short the budget."""

MAX_SAMPLES = 200

_PREFILL_TOKENS = 256
"""Tokens of the timed prefill; fewer where the context is smaller."""

Report = Callable[[StepsProgress], None]


def measure_steps(
    target: LoadedModel,
    draft: LoadedModel | None,
    request: MeasureSteps,
    report: Report,
    is_aborted: Callable[[], bool],
    clock: Callable[[], float] = perf_counter,
) -> StepsMeasured:
    """Time prefill and steps of several widths, on the target and then on the draft (width 1 only).

    Steps of all widths follow each other in turn, so that a machine that slows down slows all of them. Every step reads
    the text's own next tokens, since a mixture's experts depend on them, at the same depth; it is taken back
    afterwards. Rows of logits are asked for all positions, as a verification does. Caches are empty afterwards.

    Args:
        target: read first.
        draft: None for none.
        request: text, widths, depth and seconds for both models together.
        report: hears how far it is.
        is_aborted: whether to stop.
        clock: seconds.

    Raises:
        UsageError: the text or the context is too short, a width is out of range, or the memory cannot roll back.
        Cancelled: an abort was asked for.
        DecodeError: a step failed.
    """
    widths = tuple(sorted(set(request.widths) | {1}))
    if widths[0] < 1 or widths[-1] > target.context.settings.n_batch:
        raise UsageError(
            f"A step of {widths[0] if widths[0] < 1 else widths[-1]} tokens cannot be measured.",
            "Widths lie between 1 and --n-batch.",
        )
    if not 0.0 < request.seconds <= 3600.0:
        raise UsageError(f"{request.seconds} seconds make no measurement.", "Choose between 1 and 3600.")
    parts: tuple[tuple[Literal["target", "draft"], LoadedModel, tuple[int, ...]], ...] = (("target", target, widths),)
    if draft is not None:
        parts += (("draft", draft, (1,)),)
    budget = request.seconds / len(parts)
    measured: dict[str, tuple[float | None, int, tuple[StepCost, ...]]] = {}
    for model, loaded, its_widths in parts:
        run = _Steps(loaded, request, its_widths, is_aborted, clock)
        started = clock()
        try:
            prefill_tps = run.prefill()
            for num_rounds in run.rounds(started + budget):
                share = min(1.0, max((clock() - started) / budget, num_rounds / MAX_SAMPLES))
                report(StepsProgress(request.id, model, share, run.costs()))
        finally:
            loaded.context.clear()
        measured[model] = prefill_tps, run.depth, run.costs()
    prefill_tps, depth, costs = measured["target"]
    own = measured.get("draft", (None, 0, ()))
    return StepsMeasured(request.id, depth, prefill_tps, costs, own[0], own[2][0] if own[2] else None)


class _Steps:
    """The steps of one model."""

    def __init__(
        self,
        loaded: LoadedModel,
        request: MeasureSteps,
        widths: Sequence[int],
        is_aborted: Callable[[], bool],
        clock: Callable[[], float],
    ) -> None:
        self._context: LlamaContext = loaded.context
        self._widths = widths
        self._is_aborted = is_aborted
        self._clock = clock
        if not loaded.can_roll_back:
            raise UsageError(
                f"{loaded.model.name} cannot take back tokens, so its steps cannot be repeated.",
                "Speculation is not possible with it, whatever its steps cost.",
            )
        tokens = loaded.model.vocabulary.tokenize(request.text, add_special=True, parse_special=False)
        if len(tokens) < 2:
            raise UsageError("There is no text to measure with.", "Give some text.")
        self.depth = min(request.depth, self._context.n_ctx - max(widths) - 1)
        if self.depth < 1:
            raise UsageError(
                f"A context of {self._context.n_ctx} tokens is too small to measure steps of {max(widths)}.",
                "Use a larger context (--n-ctx).",
            )
        needed = self.depth + max(widths)
        self._tokens = (tokens * (needed // len(tokens) + 1))[:needed]
        self._seen: dict[int, list[float]] = {width: [] for width in widths}

    def prefill(self) -> float | None:
        """Read the text up to the depth, after a warm-up, and return tokens per second."""
        context, tokens = self._context, self._tokens[: self.depth]
        context.clear()
        # The first steps of a context build its graphs, and page in weights that are mapped.
        context.prefill(tokens[: min(16, self.depth)])
        context.clear()
        counted = tokens[:_PREFILL_TOKENS]
        started = self._clock()
        context.prefill(counted)
        elapsed = self._clock() - started
        if len(tokens) > len(counted):
            context.prefill(tokens[len(counted) :])
        return len(counted) / elapsed if elapsed > 0.0 else None

    def rounds(self, deadline: float) -> Iterator[int]:
        """Time one step of each width at a time, up and down in turn, until the deadline; yields how many rounds."""
        for width in self._widths:
            self._step(width)
        num_done = 0
        while num_done < MAX_SAMPLES and (num_done < MIN_SAMPLES or self._clock() < deadline):
            for width in self._widths if num_done % 2 == 0 else tuple(reversed(self._widths)):
                self._seen[width].append(self._step(width))
            num_done += 1
            yield num_done

    def _step(self, width: int) -> float:
        if self._is_aborted():
            raise Cancelled
        part = self._tokens[self.depth : self.depth + width]
        started = self._clock()
        self._context.decode(part, width)
        elapsed = self._clock() - started
        self._context.truncate(self.depth)
        return elapsed

    def costs(self) -> tuple[StepCost, ...]:
        """Return what is known by now, narrow steps first."""
        return tuple(_cost(width, seen) for width, seen in self._seen.items() if seen)


def _cost(width: int, seen: Sequence[float]) -> StepCost:
    ordered = sorted(seen)
    quarter = len(ordered) // 4
    return StepCost(width, statistics.median(ordered), ordered[quarter], ordered[-1 - quarter], len(ordered))
