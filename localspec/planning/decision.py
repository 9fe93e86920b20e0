"""What is possible of some wishes, and what is given up for it.

The rule: as wished; or else with less context, down to the least that is worth having, since a layer in host memory
slows every token and a shorter context none; or else with part of the models in host memory; or else without the draft.
In host memory go first the experts of a mixture, of which a token uses few; then layers of the target; then layers of
the draft, since a round reads the draft once for each drafted token and the target only once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from localspec.planning.fitting import Fitting, Trial, at_context, padded, with_layers
from localspec.planning.search import most_context, most_layers
from localspec.planning.values import Verdict, Wishes


@dataclass(frozen=True, slots=True)
class Bounds:
    """Contexts that a plan looks at, multiples of 256."""

    asked: int
    """0 for the most that fits."""
    floor: int
    """The least that is worth having, or all that is asked for."""
    cap: int
    """What the target was trained for, or what is asked for if that is more."""

    @property
    def goal(self) -> int:
        """The most that is wished for."""
        return self.asked or self.cap


@dataclass(frozen=True, slots=True)
class Placed:
    """How far one pair of models was brought."""

    verdict: Verdict
    wishes: Wishes
    """With the layers and the context that were found."""
    trial: Trial
    """What they take; of the last attempt where nothing fits."""
    short_bytes: int = 0
    """Where nothing fits: what all memories together hold too little; 0 if that is not what is in the way."""

    @property
    def fits(self) -> bool:
        """Whether it can be carried out."""
        return self.verdict != "DOES_NOT_FIT"


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome."""

    placed: Placed
    bounds: Bounds
    as_wished: Trial
    """All of it, at the context asked for, or at the least one where the most is asked for."""
    max_n_ctx: int
    """With the placement that was found; 0 where nothing fits."""

    @property
    def verdict(self) -> Verdict:
        """In a word."""
        return self.placed.verdict

    @property
    def n_ctx(self) -> int:
        """Positions of the plan; where nothing fits, of what was wished for."""
        return self.placed.trial.n_ctx if self.placed.fits else self.as_wished.n_ctx

    @property
    def is_whole(self) -> bool:
        """Whether nothing but context is given up."""
        return self.verdict in ("FITS", "FITS_WITH_LESS_CONTEXT")


async def decide(fitting: Fitting, wishes: Wishes) -> Decision:
    """Return the best that is possible of the wishes.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    bounds = await find_bounds(fitting, wishes)
    as_wished = await fitting.trial(wishes, wishes.target.n_ctx or bounds.floor)
    placed = await place(fitting, wishes, bounds)
    if not placed.fits and wishes.draft is not None:
        alone = await place(fitting, replace(wishes, draft=None), bounds)
        placed = replace(alone, verdict="FITS_WITHOUT_DRAFT") if alone.fits else alone
    if not placed.fits:
        return Decision(placed, bounds, as_wished, 0)
    n_ctx = placed.trial.n_ctx
    if bounds.asked and n_ctx >= bounds.asked:
        n_ctx = await most_context(fitting, placed.wishes, placed.trial, n_ctx, bounds.cap)
    return Decision(placed, bounds, as_wished, n_ctx)


async def find_bounds(fitting: Fitting, wishes: Wishes) -> Bounds:
    """Return which contexts to look at; the target's file says what it was trained for.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    least = padded(max(1, wishes.min_ctx))
    first = await fitting.trial(wishes, wishes.target.n_ctx or least)
    trained = padded(max(0, first.footprint.target.n_ctx_train))
    asked = padded(wishes.target.n_ctx)
    floor = min(least, asked or trained or least)
    return Bounds(asked, floor, max(asked, trained, floor))


async def place(fitting: Fitting, wishes: Wishes, bounds: Bounds) -> Placed:
    """Return these very models as wished, with less context, or with part of them in host memory.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    attempts: list[tuple[Wishes, Trial]] = []
    if bounds.asked:
        trial = await fitting.trial(wishes)
        if trial.fits:
            return Placed("FITS", wishes, trial)
        attempts.append((wishes, trial))
    if bounds.asked != bounds.floor:
        lowest = at_context(wishes, bounds.floor)
        trial = await fitting.trial(lowest)
        if trial.fits:
            return await _grown(fitting, Placed("FITS_WITH_LESS_CONTEXT", lowest, trial), bounds)
        attempts.append((lowest, trial))
    last = Placed("DOES_NOT_FIT", *attempts[-1])
    for at_attempt, trial in attempts:
        if not fitting.has_gpu:
            break
        last = await _hopeless(fitting, at_attempt) or await offload_part(fitting, at_attempt, trial)
        if last.fits:
            return last if at_attempt.target.n_ctx == wishes.target.n_ctx else await _grown(fitting, last, bounds)
    return last


async def offload_part(fitting: Fitting, wishes: Wishes, whole: Trial) -> Placed:
    """Return the wishes with as much on GPUs as these hold, at the wished context.

    Args:
        fitting: measures.
        wishes: numbers of layers that are not -1 stay as they are.
        whole: what the wishes take, which does not fit.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    if whole.gpus_fit:
        # The host is what overflows: every layer more in its memory makes that worse.
        return Placed("DOES_NOT_FIT", wishes, whole)
    if whole.footprint.target.num_experts and wishes.target.n_gpu_layers < 0 and not wishes.target.experts_on_cpu:
        with_experts = replace(wishes, target=replace(wishes.target, experts_on_cpu=True))
        trial = await fitting.trial(with_experts)
        if trial.fits:
            return Placed("FITS_WITH_PARTIAL_OFFLOAD", with_experts, trial)
        if not trial.gpus_fit:
            placed = await fewer_layers(fitting, with_experts, trial)
            if placed.fits:
                return placed
    return await fewer_layers(fitting, wishes, whole)


async def fewer_layers(fitting: Fitting, wishes: Wishes, whole: Trial) -> Placed:
    """Return the wishes with as many layers on GPUs as these hold, the draft's before the target's.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
    """
    trial = whole
    if wishes.target.n_gpu_layers < 0:
        wishes = await most_layers(fitting, wishes, "target", trial)
        trial = await fitting.trial(wishes)
    if not trial.gpus_fit and wishes.draft is not None and wishes.draft.n_gpu_layers < 0:
        wishes = await most_layers(fitting, wishes, "draft", trial)
        trial = await fitting.trial(wishes)
    return Placed("FITS_WITH_PARTIAL_OFFLOAD" if trial.fits else "DOES_NOT_FIT", wishes, trial)


async def _hopeless(fitting: Fitting, wishes: Wishes) -> Placed | None:
    """Return an outcome if no number of layers can help: one measure that may save many.

    With no layer on a GPU nothing lies in two memories, and GPUs hold the least that they must for computing.
    """
    bare = wishes
    if wishes.target.n_gpu_layers < 0:
        bare = with_layers(bare, "target", 0)
    if wishes.draft is not None and wishes.draft.n_gpu_layers < 0:
        bare = with_layers(bare, "draft", 0)
    if bare == wishes:
        return None
    trial = await fitting.trial(bare)
    short_bytes = sum(row.total_bytes - row.compute_bytes for row in trial.rows) - fitting.budget_bytes
    if trial.gpus_fit and short_bytes <= 0:
        return None
    return Placed("DOES_NOT_FIT", bare, trial, max(0, short_bytes))


async def _grown(fitting: Fitting, placed: Placed, bounds: Bounds) -> Placed:
    """Return what fits at the least context with the most that still fits, up to what is wished for."""
    n_ctx = await most_context(fitting, placed.wishes, placed.trial, bounds.floor, bounds.goal)
    wishes = at_context(placed.wishes, n_ctx)
    verdict = placed.verdict
    if verdict == "FITS_WITH_LESS_CONTEXT" and not bounds.asked:
        verdict = "FITS"
    return Placed(verdict, wishes, await fitting.trial(wishes))
