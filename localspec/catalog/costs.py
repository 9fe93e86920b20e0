"""What a draft step costs, measured by what a target step does: one figure and one wording for it everywhere."""

from __future__ import annotations

from localspec.catalog.families import MIN_TIMES_SMALLER


def share_text(ratio: float) -> str:
    """Return a ratio of costs for people, rounded in one way everywhere; what is over the limit never looks like it."""
    text = f"{ratio:.2f}"
    limit = 1.0 / MIN_TIMES_SMALLER
    return f"{limit + 0.01:.2f}" if ratio > limit and float(text) <= limit else text


def cost_words(ratio: float) -> str:
    """Return what a draft step reads, as a part of a sentence."""
    share = f"{share_text(ratio)} of" if ratio < 1.0 else f"{share_text(ratio)} times"
    return f"reads {share} what a target step reads"


def too_dear_words(ratio: float) -> str:
    """Return why a draft is too large to pay; empty if it is not."""
    if ratio * MIN_TIMES_SMALLER <= 1.0:
        return ""
    return f"too dear to pay: it {cost_words(ratio)}; a quarter or less is worth trying"
