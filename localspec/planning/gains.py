"""What a change of the wishes brings, in figures."""

from __future__ import annotations

from dataclasses import dataclass, replace

from localspec.planning.decision import Decision
from localspec.planning.fitting import Fitting, at_context
from localspec.planning.notes import CONTEXT_PADDING
from localspec.planning.search import most_context, most_layers, steady_context
from localspec.planning.values import Wishes

_LEAST_GAIN = 16
"""A sixteenth more context is worth an offer."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What a change brings."""

    wishes: Wishes
    """With the change, and the context that it makes possible."""
    n_ctx: int
    words: str


@dataclass(frozen=True, slots=True)
class Basis:
    """What changes are compared with."""

    wishes: Wishes
    decision: Decision

    @property
    def start(self) -> int:
        """The least context at which a change is worth anything."""
        if not self.decision.is_whole:
            return self.decision.bounds.floor
        return self.decision.max_n_ctx + CONTEXT_PADDING

    @property
    def goal(self) -> int:
        """The most context to look for: what was asked for and not reached, otherwise all the target can use."""
        return self.decision.bounds.cap if self.decision.verdict == "FITS" else self.decision.bounds.goal

    @property
    def useful(self) -> int:
        """The least context that is a gain."""
        if not self.decision.is_whole:
            return self.decision.bounds.floor
        reached = self.decision.max_n_ctx
        return min(self.goal, reached + max(CONTEXT_PADDING, reached // _LEAST_GAIN))


async def gain_of(fitting: Fitting, basis: Basis, changed: Wishes) -> Gain | None:
    """Return what a change brings: more context, all layers on the GPU, more of them, or the draft; None for nothing.

    Raises:
        LocalspecError: llama.cpp could not say what the models take.
        MeasuresSpentError: the limit on measures is reached.
    """
    n_ctx = await _reached(fitting, basis, changed)
    if n_ctx and n_ctx >= basis.useful:
        n_ctx, about = await steady_context(fitting, changed, basis.start, n_ctx)
        if n_ctx >= basis.useful:
            return Gain(at_context(changed, n_ctx), n_ctx, context_words(basis, n_ctx, about))
    return await _more_layers(fitting, basis, changed)


def context_words(basis: Basis, n_ctx: int, about: str = "") -> str:
    """Return what a context is, compared with the plan."""
    decision = basis.decision
    match decision.verdict:
        case "FITS":
            return f"up to {about}{n_ctx} positions instead of {decision.max_n_ctx}"
        case "FITS_WITH_LESS_CONTEXT":
            return f"context {about}{n_ctx} instead of {decision.n_ctx}"
        case "FITS_WITH_PARTIAL_OFFLOAD":
            instead = f" instead of {decision.n_ctx}" if n_ctx < decision.n_ctx else ""
            return f"all of the target on the GPU, with context {about}{n_ctx}{instead}"
        case _:
            return f"the draft fits, with context {about}{n_ctx}"


async def _reached(fitting: Fitting, basis: Basis, changed: Wishes) -> int:
    """Return the largest context that fits with the change and nothing given up besides; 0 for none of use."""
    if basis.start > basis.goal:
        return 0
    trial = await fitting.trial(changed, basis.start)
    return await most_context(fitting, changed, trial, basis.start, basis.goal) if trial.fits else 0


async def _more_layers(fitting: Fitting, basis: Basis, changed: Wishes) -> Gain | None:
    """Return how many more layers of the target the GPU then holds, where a plan has only a part of them there."""
    decision, target = basis.decision, basis.decision.placed.trial.target
    if decision.verdict != "FITS_WITH_PARTIAL_OFFLOAD" or basis.wishes.target.n_gpu_layers >= 0:
        return None
    if target.n_gpu_layers < 0 or decision.placed.trial.keeps_experts:
        return None
    at_plan = at_context(changed, decision.n_ctx)
    whole = await fitting.trial(at_plan)
    if whole.gpus_fit:
        return None
    found = await most_layers(fitting, at_plan, "target", whole)
    trial = await fitting.trial(found)
    more = found.target.n_gpu_layers
    if not trial.fits or more <= target.n_gpu_layers:
        return None
    words = f"{more} instead of {target.n_gpu_layers} of {trial.num_layers('target')} layers of the target on the GPU"
    return Gain(replace(found, target=replace(found.target, n_gpu_layers=more)), decision.n_ctx, words)
