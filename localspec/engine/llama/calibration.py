"""What steps cost here, timed in a moment after loading, so that adaptive pacing need not find out in an answer."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from localspec.engine.llama.loading import LoadedModel
from localspec.engine.pacing_state import DrafterState, PacingState

_TEXT = (
    "The harbour lay still in the morning, and the first boats went out past the lighthouse while the gulls "
    "followed them. In the town the bakers had been at work since three, and the smell of bread hung in the lanes. "
)
_WIDTHS = (1, 8, 4, 2, 16, 3, 6, 12, 17)
"""The most telling first: where steps are slow, the time ends before the last."""
_LONGEST_S = 2.0
_SHORTEST_S = 0.25
_PLAIN_STEPS = 30
_CATCH_UP_TOKENS = 24


def calibrate(
    target: LoadedModel,
    draft: LoadedModel | None,
    draft_name: str,
    known: PacingState | None,
    clock: Callable[[], float] = perf_counter,
) -> PacingState:
    """Time what is not known yet: steps of the target by width, and a draft step and the reading of missed tokens.

    It takes 30 plain steps or so, a quarter of a second to two seconds. Of each width the faster of two steps
    counts, as what disturbs a step makes it slower. The caches are as before afterwards; where a cache is too
    full for it, nothing is timed. Costs are measured at the depth that the caches have.

    Args:
        target: can roll back.
        draft: likewise; None for none.
        draft_name: the drafter's name in the state.
        known: from an earlier process.
        clock: seconds.

    Raises:
        Cancelled: an abort was asked for.
        DecodeError: a step failed.
    """
    step_s = dict(known.step_s) if known is not None else {}
    drafters = dict(known.drafters) if known is not None else {}
    if not step_s:
        step_s = _target_steps(target, clock)
    kept = drafters.get(draft_name)
    if draft is not None and step_s and (kept is None or not kept.step):
        costs = _draft_costs(draft, clock)
        if costs is not None:
            cells = kept.cells if kept is not None else ()
            drafters[draft_name] = DrafterState(False, cells, costs[0] / step_s[1], costs[1] / step_s[1])
    return PacingState(step_s, drafters)


def _target_steps(target: LoadedModel, clock: Callable[[], float]) -> dict[int, float]:
    tokens = _tokens(target, max(_WIDTHS))
    found: dict[int, float] = {}
    started = clock()
    # The first step of a context builds graphs and pages weights in.
    if _step(target, tokens[:1], clock) is None:
        return {}
    limit = _LONGEST_S
    for width in _WIDTHS:
        if width != 1 and clock() - started > limit:
            break
        times = [_step(target, tokens[:width], clock) for _ in range(2)]
        fastest = min((time for time in times if time is not None), default=None)
        if fastest is None or fastest <= 0.0:
            break
        found[width] = fastest
        if width == 1:
            limit = min(max(_PLAIN_STEPS * fastest, _SHORTEST_S), _LONGEST_S)
    return dict(sorted(found.items())) if 1 in found else {}


def _draft_costs(draft: LoadedModel, clock: Callable[[], float]) -> tuple[float, float] | None:
    """Return seconds of a single step and of a token that was missed, or None where there is no room."""
    tokens = _tokens(draft, _CATCH_UP_TOKENS)
    times = [_step(draft, part, clock) for part in (tokens[:1], tokens[:1], tokens[:1], tokens, tokens)]
    if any(time is None or time <= 0.0 for time in times):
        return None
    _, *singles, first, second = (time or 0.0 for time in times)
    step = min(singles)
    return step, max((min(first, second) - step) / (len(tokens) - 1), step / 64.0)


def _tokens(loaded: LoadedModel, count: int) -> list[int]:
    tokens = loaded.model.vocabulary.tokenize(_TEXT, add_special=False, parse_special=False)
    return (tokens * (count // max(len(tokens), 1) + 1))[:count] if tokens else [0] * count


def _step(loaded: LoadedModel, tokens: list[int], clock: Callable[[], float]) -> float | None:
    context = loaded.context
    length = len(context.tokens)
    if length + len(tokens) > context.n_ctx or len(tokens) > context.settings.n_batch:
        return None
    started = clock()
    context.decode(tokens, len(tokens))
    elapsed = clock() - started
    context.truncate(length)
    return elapsed
