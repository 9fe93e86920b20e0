from __future__ import annotations

import random
from statistics import median
from types import SimpleNamespace
from typing import cast

from localspec.engine.values import SpeculationSettings
from localspec.session.arms import Arm
from localspec.session.head_to_head import against_the_best, head_to_head
from localspec.session.outcome import ArmResult
from localspec.session.trial import Trial


def arm(name: str, *rates: float | None) -> ArmResult:
    trials = tuple(
        cast(Trial, SimpleNamespace(pair=pair, decode_tps=rate)) for pair, rate in enumerate(rates) if rate != 0.0
    )
    speculation = SpeculationSettings("off" if name == "off" else "ngram")
    return ArmResult(Arm(name, speculation), None, True, "", trials, None, None, None, None)


def speedup(off: ArmResult, one: ArmResult) -> float:
    ratio = head_to_head(off, one)
    assert ratio is not None
    return ratio.median


def test_an_arm_is_held_against_what_was_best_in_the_other_pairs() -> None:
    off = arm("off", 10.0, 10.0, 10.0)
    steady, lucky_once = arm("steady", 12.0, 12.0, 12.0), arm("lucky", 30.0, 10.0, 10.0)
    ratio = against_the_best(off, [steady, lucky_once], arm("auto", 12.0, 12.0, 12.0))
    assert ratio is not None and ratio.pairs == 3
    # In pairs 1 and 2 `lucky` is known by 30 and 10, at 2.0 the best, and runs at 10; in pair 0 `steady` is.
    assert ratio.median == 1.2


def test_where_none_was_faster_in_the_other_pairs_the_baseline_is_the_best() -> None:
    ratio = against_the_best(arm("off", 10.0, 20.0), [arm("slow", 9.0, 19.0)], arm("auto", 11.0, 22.0))
    assert ratio is not None and ratio.median == 1.1


def test_fewer_than_two_whole_pairs_are_no_comparison() -> None:
    assert against_the_best(arm("off", 10.0), [arm("fixed", 12.0)], arm("auto", 11.0)) is None
    assert against_the_best(arm("off", 10.0, None), [], arm("auto", 11.0, 11.0)) is None


def test_an_arm_that_lacks_a_pair_is_not_chosen_in_it() -> None:
    off, fixed = arm("off", 10.0, 10.0, 10.0), arm("fixed", 20.0, 20.0, 0.0)
    ratio = against_the_best(off, [fixed], arm("auto", 20.0, 20.0, 10.0))
    assert ratio is not None and ratio.median == 1.0


def test_among_equals_luck_is_no_handicap() -> None:
    dice = random.Random(7)
    plain, held_out = [], []
    for _ in range(100):
        off, auto, *fixed = (
            arm(name, *(100.0 * dice.lognormvariate(0.0, 0.07) for _ in range(6))) for name in ("off", "auto", *"abcd")
        )
        best = max(fixed, key=lambda one: speedup(off, one))
        ratio, honest = head_to_head(best, auto), against_the_best(off, fixed, auto)
        assert ratio is not None and honest is not None
        plain.append(ratio.median)
        held_out.append(honest.median)
    assert median(plain) < 0.985
    assert 0.99 < median(held_out) < 1.01
