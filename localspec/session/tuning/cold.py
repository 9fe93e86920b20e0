"""What changes with a load only: threads, flash attention, cache types, placement of the draft.

Each way of loading is timed by its steps, which takes seconds, and no answers are needed. llama.cpp takes n_threads for
steps of one token and n_threads_batch for wider ones, and the draft's context has threads of its own, so that one load
with k threads for everything tells about all three: the best of each are put together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from localspec.engine.events import StepCost, StepsMeasured
from localspec.engine.values import ContextSettings, KvType
from localspec.errors import EngineDiedError, LocalspecError
from localspec.hardware.cores import Cores
from localspec.metrics.prediction import expected_tokens_per_round
from localspec.session.tuning.values import ColdChoice, ColdTrial, Knob

WIDTHS: Final = (1, 2, 3, 5, 9)
LEAST_GAIN: Final = 0.03
"""A way of loading must be faster by this much, and its usual times lie apart from those of the one before."""
_ASSUMED_ACCEPTANCE: Final = 0.7
"""For weighing wide steps before anything is drafted."""
_OF_THE_DRAFT: Final = frozenset({"draft_threads", "draft_placement"})
"""What changes nothing for an answer without drafts."""

Contexts = tuple[ContextSettings, ContextSettings]
"""Of target and draft."""

Change = Callable[[Contexts], Contexts | None]
"""Returns None where there is nothing to change."""

Measure = Callable[[ContextSettings, ContextSettings], Awaitable[StepsMeasured]]
"""Load in this way and time steps."""


@dataclass(frozen=True, slots=True)
class ColdKnobs:
    """What may be tried."""

    cores: Cores
    has_gpu: bool
    has_draft: bool
    fixed: frozenset[Knob] = frozenset()
    kv_types: tuple[KvType, ...] = ()

    @property
    def searches_draft_threads(self) -> bool:
        """Whether the draft may get other threads than the target. Who states threads means those of both."""
        return self.has_draft and not self.fixed & {"threads", "draft_threads"}


def thread_counts(cores: Cores, has_gpu: bool = False) -> tuple[int, ...]:
    """Return the numbers of threads worth a try beside the usual one, likely ones first."""
    physical, logical = cores.physical, cores.logical
    counts = [physical - 1, math.ceil(physical / 2), logical, math.ceil(physical / 4)]
    if has_gpu:
        counts = [min(4, physical), 1]
    return tuple(dict.fromkeys(n for n in counts if 1 <= n != physical))


async def screen(
    measure: Measure,
    contexts: Contexts,
    knobs: ColdKnobs,
    has_time: Callable[[], bool],
    on_try: Callable[[str], None],
) -> ColdChoice:
    """Try ways of loading, and return the best one; ties go to what was given.

    Args:
        measure: loads and times. What it raises is why a way is not possible.
        contexts: as given.
        knobs: what may be tried.
        has_time: whether one more way may be tried.
        on_try: hears which.

    Raises:
        EngineDiedError: the engine died while loading what was given.
        LocalspecError: what was given could not be timed.
    """
    run = _Screen(measure, has_time, on_try)
    base = await run.must_try("as given", contexts)
    chosen, changes = contexts, dict[str, str]()
    reference = base
    has_own_threads = knobs.searches_draft_threads and contexts[0].n_threads == contexts[1].n_threads == 0
    if "threads" not in knobs.fixed and contexts[0].n_threads == 0:
        by_threads = {
            count: trial
            for count in thread_counts(knobs.cores, knobs.has_gpu)
            if (trial := await run.attempt(f"threads {count}", _with_threads(contexts, count))) is not None
        }
        chosen, changes = _best_threads(reference, by_threads, contexts, knobs.cores.physical, has_own_threads)
    if changes:
        # The parts were measured apart: together, later, and against what was given.
        together = await run.attempt(", ".join(changes.values()), chosen)
        if together is None or not _is_faster(together, reference, changes.keys() == {"draft_threads"}):
            chosen, changes = contexts, {}
        else:
            reference = together
    for name, knob, change in _others(knobs, has_own_threads):
        tried = None if knob in knobs.fixed else change(chosen)
        if tried is None:
            continue
        trial = await run.attempt(name, tried)
        if trial is not None and _is_faster(trial, reference, knob == "draft_threads"):
            chosen, reference = (trial.context, trial.draft_context), trial
            changes[knob] = name
    notes = []
    if changes:
        again = await run.attempt("as given, again", contexts)
        is_of_draft = changes.keys() == {"draft_threads"}
        if again is not None and not _is_faster(reference, again, is_of_draft):
            notes.append("What seemed a faster way of loading was not so when tried again; it stays as given.")
            chosen, changes, reference = contexts, {}, again
    if kv := changes.get("kv"):
        notes.append(f"{kv} changes the text a little, whatever is drafted: it was allowed, and is faster here.")
    gain = None
    if changes.keys() - _OF_THE_DRAFT:
        first, last = base.step_s(1), reference.step_s(1)
        gain = first / last if first and last else None
    return ColdChoice(*chosen, tuple(changes.values()), gain, tuple(run.trials), tuple(notes))


class _Screen:
    def __init__(self, measure: Measure, has_time: Callable[[], bool], on_try: Callable[[str], None]) -> None:
        self._measure = measure
        self._has_time = has_time
        self._on_try = on_try
        self.trials: list[ColdTrial] = []

    async def must_try(self, name: str, contexts: Contexts) -> ColdTrial:
        self._on_try(name)
        measured = await self._measure(*contexts)
        trial = ColdTrial(name, *contexts, measured.costs, measured.draft)
        self.trials.append(trial)
        return trial

    async def attempt(self, name: str, contexts: Contexts) -> ColdTrial | None:
        """Return what was measured; None if there was no time, or it is not possible."""
        if not self._has_time():
            return None
        try:
            return await self.must_try(name, contexts)
        except EngineDiedError:
            raise
        except LocalspecError as error:
            self.trials.append(ColdTrial(name, *contexts, (), None, error.message))
            return None


def round_s(trial: ColdTrial, draft_step_s: float | None = None) -> float | None:
    """Return the time for a token of the best draft length at a usual acceptance; None where it is not known."""
    step = trial.draft_step_s if draft_step_s is None else draft_step_s
    times = [
        (cost.median_s + (cost.width - 1) * (step or 0.0))
        / expected_tokens_per_round(_ASSUMED_ACCEPTANCE, cost.width - 1)
        for cost in trial.costs
        if cost.width > 1
    ]
    return min(times, default=None)


def best_length(trial: ColdTrial | None) -> int:
    """Return the draft length that pays best at a usual acceptance by what steps cost; 4 where that is not known."""
    costs = [cost for cost in trial.costs if cost.width > 1] if trial is not None else []
    if trial is None or not costs:
        return 4
    step = trial.draft_step_s or 0.0
    best = min(
        costs,
        key=lambda cost: (
            (cost.median_s + (cost.width - 1) * step) / expected_tokens_per_round(_ASSUMED_ACCEPTANCE, cost.width - 1)
        ),
    )
    return best.width - 1


def _with_threads(contexts: Contexts, count: int) -> Contexts:
    target, draft = contexts
    # The draft's own that were stated stay.
    own = replace(draft, n_threads=count, n_threads_batch=count) if draft.n_threads == 0 else draft
    return replace(target, n_threads=count, n_threads_batch=count), own


def _best_threads(
    base: ColdTrial, by_threads: dict[int, ColdTrial], contexts: Contexts, usual: int, has_own_threads: bool
) -> tuple[Contexts, dict[str, str]]:
    measured = {usual: base, **by_threads}
    if has_own_threads:
        single = _least(measured, usual, lambda trial: trial.step_s(1))
        # Clearly better than with as many as the target's, since those need no words.
        drafting = _least(measured, single, lambda trial: trial.draft_step_s)
    else:
        single = drafting = _least(measured, usual, lambda trial: _single_s(trial, base))
    wide = _least(measured, usual, lambda trial: round_s(trial, 0.0))
    changes = {"threads": f"threads {single}"} if single != usual else {}
    if wide != single:
        changes["threads_batch"] = f"threads-batch {wide}"
    has_other = bool(changes)
    target, draft = contexts
    if has_other:
        target = replace(target, n_threads=single, n_threads_batch=wide if wide != single else 0)
    if drafting != single:
        changes["draft_threads"] = f"draft threads {drafting}"
        draft = replace(draft, n_threads=drafting, n_threads_batch=wide)
    elif has_other and draft.n_threads == 0:
        draft = replace(draft, n_threads=target.n_threads, n_threads_batch=target.n_threads_batch)
    return (target, draft), changes


def _single_s(trial: ColdTrial, base: ColdTrial) -> float | None:
    """Return one figure for a plain step and a drafted token: steps of one token, the draft's too, have n_threads.

    Wide steps, which have threads of their own, are taken as they are with the base's.
    """
    step, drafted = trial.step_s(1), round_s(base, trial.draft_step_s)
    return math.sqrt(step * drafted) if step and drafted else step


def _least(measured: dict[int, ColdTrial], usual: int, cost: Callable[[ColdTrial], float | None]) -> int:
    """Return the number of threads of the least cost; the usual one unless another is clearly better."""
    own = cost(measured[usual])
    if own is None:
        return usual
    best, least = usual, own * (1.0 - LEAST_GAIN)
    for count, trial in measured.items():
        value = cost(trial)
        if value is not None and value < least:
            best, least = count, value
    return best


def _others(knobs: ColdKnobs, has_own_threads: bool) -> tuple[tuple[str, Knob, Change], ...]:
    tried: list[tuple[str, Knob, Change]] = []
    if knobs.has_gpu and knobs.has_draft:
        # What is best beside a GPU, often a single one, is too few for a model on the processor.
        num_threads = knobs.cores.physical if has_own_threads else 0
        to_processor = functools.partial(_draft_on_processor, num_threads=num_threads)
        tried.append(("draft on the processor", "draft_placement", to_processor))
        for count in thread_counts(knobs.cores) if has_own_threads else ():
            with_count = functools.partial(_with_draft_threads, count=count)
            tried.append((f"draft threads {count}", "draft_threads", with_count))
    tried.append(("flash attention off", "flash_attn", _without_flash_attn))
    tried += [(f"KV {kv}", "kv", functools.partial(_with_kv, kv=kv)) for kv in knobs.kv_types]
    return tuple(tried)


def _draft_on_processor(contexts: Contexts, num_threads: int) -> Contexts | None:
    target, draft = contexts
    if draft.n_gpu_layers == 0:
        return None
    threads = num_threads or draft.n_threads
    return target, replace(
        draft, n_gpu_layers=0, n_threads=threads, n_threads_batch=num_threads or draft.n_threads_batch
    )


def _with_draft_threads(contexts: Contexts, count: int) -> Contexts | None:
    target, draft = contexts
    # On a GPU they hardly matter, and loads take time.
    return (target, replace(draft, n_threads=count)) if draft.n_gpu_layers == 0 else None


def _without_flash_attn(contexts: Contexts) -> Contexts | None:
    target, draft = contexts
    # llama.cpp needs flash attention for quantised values.
    if not target.flash_attn or {target.type_v, draft.type_v} - {"f32", "f16", "bf16"}:
        return None
    return replace(target, flash_attn=False), replace(draft, flash_attn=False)


def _with_kv(contexts: Contexts, kv: KvType) -> Contexts | None:
    target, draft = contexts
    if (target.type_k, target.type_v) == (kv, kv):
        return None
    return (
        replace(target, type_k=kv, type_v=kv, flash_attn=True),
        replace(draft, type_k=kv, type_v=kv, flash_attn=True),
    )


def _is_faster(trial: ColdTrial, other: ColdTrial, is_of_draft: bool = False) -> bool:
    """Whether both plain steps and drafted tokens together are clearly faster; of what is the draft's, the latter."""
    pairs = [(round_s(trial), round_s(other))]
    if not is_of_draft:
        pairs.append((trial.step_s(1), other.step_s(1)))
    known = [math.log(one / two) for one, two in pairs if one and two]
    if not known or sum(known) / len(known) > math.log(1.0 - LEAST_GAIN):
        return False
    if any(value > -math.log(1.0 - LEAST_GAIN) for value in known):
        return False  # A gain in one that is paid for by the other is a matter of what is drafted.
    mine, its = (_all_costs(one) for one in (trial, other))
    better = [key for key in mine.keys() & its.keys() if mine[key].median_s < (1.0 - LEAST_GAIN) * its[key].median_s]
    # What only seems faster has times that mix with the other's.
    return bool(better) and 2 * sum(mine[key].high_s <= its[key].low_s for key in better) > len(better)


def _all_costs(trial: ColdTrial) -> dict[int, StepCost]:
    """Return what was timed by width; the draft's step is 0."""
    return {**{cost.width: cost for cost in trial.costs}, **({} if trial.draft is None else {0: trial.draft})}
