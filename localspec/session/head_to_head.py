"""Two arms that both draft, against each other."""

from __future__ import annotations

import numpy as np

from localspec.metrics.comparison import PairedRate, compare_rates, judge
from localspec.metrics.statistics import Estimate
from localspec.session.drafting_text import settings_phrase
from localspec.session.outcome import ArmResult
from localspec.session.verdict import speedup_phrase


def head_to_head(left: ArmResult, right: ArmResult, bootstrap_seed: int = 1) -> Estimate | None:
    """Return how many times as fast the right arm was: the median of the pairs' ratios; None without a whole pair.

    The order of runs is mirrored from pair to pair, so that a steady drift cancels in twos of pairs.
    """
    partners = {trial.pair: trial.decode_tps for trial in left.trials}
    pairs = [
        PairedRate(partners[trial.pair], trial.decode_tps)
        for trial in sorted(right.trials, key=lambda trial: trial.pair)
        if trial.pair in partners
    ]
    return compare_rates(pairs, np.random.default_rng(bootstrap_seed))


def head_to_head_sentence(left: ArmResult, right: ArmResult) -> str:
    """Return what may be said of one against the other; empty without a whole pair."""
    ratio = head_to_head(left, right)
    if ratio is None:
        return ""
    words = {
        "faster": "is faster",
        "slower": "is slower",
        "no_clear_difference": "makes no clear difference",
        "too_little_to_judge": "was measured too little to judge",
    }
    one, other = settings_phrase(right.arm.speculation), settings_phrase(left.arm.speculation)
    return f"Against {other}, {one} {words[judge(ratio)]}: {speedup_phrase(ratio)}."
