"""Two arms that both draft, against each other, and one against the best of several."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

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


def against_the_best(
    baseline: ArmResult, fixed: Sequence[ArmResult], arm: ArmResult, bootstrap_seed: int = 1
) -> Estimate | None:
    """Return how many times as fast an arm was as the best of several, where each pair's best is known from the others.

    Whichever came out best over all pairs was lucky in them too, the more the more were tried. So in each pair the arm
    is held against the one whose median speedup over all other pairs is highest, the baseline if that is below 1.

    Args:
        baseline: what speedups are relative to.
        fixed: the others to choose from.
        arm: to be compared.
        bootstrap_seed: of the interval.

    Returns:
        The median of the pairs' ratios with its interval; None with fewer than two whole pairs.
    """
    off = _rates(baseline)
    rates = {result.arm.name: _rates(result) for result in fixed}
    own = _rates(arm)
    pairs: list[PairedRate] = []
    for pair in sorted(own.keys() & off.keys()):
        best, most = off[pair], 1.0
        for others in rates.values():
            ratios = [others[one] / off[one] for one in others.keys() & off.keys() if one != pair]
            if pair in others and ratios and (speedup := median(ratios)) > most:
                best, most = others[pair], speedup
        pairs.append(PairedRate(best, own[pair]))
    return compare_rates(pairs, np.random.default_rng(bootstrap_seed)) if len(pairs) > 1 else None


def _rates(result: ArmResult) -> dict[int, float]:
    return {trial.pair: trial.decode_tps for trial in result.trials if trial.decode_tps}


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
