"""The refusal to go on without a draft model that was asked for."""

from __future__ import annotations

import shlex

from localspec.errors import ModelLoadError


def draft_refusal(
    target: str, reason: str, way_on: str = "Without --draft, n-gram drafting needs no model."
) -> ModelLoadError:
    """Return what to raise where a draft that was asked for is no pair or cannot be loaded.

    Args:
        target: what the user calls the target by.
        reason: the engine's.
        way_on: a sentence on what can be done without it.
    """
    why = reason.rstrip(".") or "the engine does not say why"
    return ModelLoadError(
        f"The draft cannot be used: {why}.",
        f"`localspec pair {shlex.quote(target)}` lists what can draft for this target. {way_on}",
    )
