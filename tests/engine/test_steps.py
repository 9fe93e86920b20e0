"""Measuring what steps cost: what is timed, in which order, and how it ends."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from localspec.engine.events import StepsMeasured, StepsProgress
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.steps import MIN_SAMPLES, measure_steps
from localspec.engine.model import Cancelled
from localspec.engine.requests import MeasureSteps
from localspec.errors import UsageError
from tests.engine_kit import load_model

TEXT = "some text that is read while steps are timed, again and again. " * 4


class Clock:
    """Each look at it is a millisecond later."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def __call__(self) -> float:
        return next(self._ticks) / 1000.0


def measure(
    target: LoadedModel, draft: LoadedModel | None = None, widths: tuple[int, ...] = (2, 4), seconds: float = 0.1
) -> tuple[StepsMeasured, list[StepsProgress]]:
    heard: list[StepsProgress] = []
    request = MeasureSteps(7, TEXT, widths, depth=32, seconds=seconds)
    return measure_steps(target, draft, request, heard.append, lambda: False, Clock()), heard


def test_every_width_is_timed_equally_often_and_one_is_always_among_them(tiny_target: LoadedModel) -> None:
    answer, heard = measure(tiny_target)
    assert (answer.id, answer.depth) == (7, 32)
    assert [cost.width for cost in answer.costs] == [1, 2, 4]
    assert len({cost.num_steps for cost in answer.costs}) == 1
    # On this clock each step takes one tick; the two quarters enclose the median.
    assert [cost.median_s for cost in answer.costs] == pytest.approx([0.001] * 3)
    assert all(cost.low_s <= cost.median_s <= cost.high_s for cost in answer.costs)
    assert answer.prefill_tps == pytest.approx(32_000)
    assert heard[-1].fraction == 1.0
    assert [one.fraction for one in heard] == sorted(one.fraction for one in heard)


def test_a_draft_has_single_steps_of_its_own(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    answer, heard = measure(tiny_target, tiny_draft)
    assert answer.draft is not None
    assert answer.draft.width == 1
    assert answer.draft_prefill_tps == pytest.approx(32_000)
    assert {one.model for one in heard} == {"target", "draft"}


def test_without_a_draft_nothing_is_said_of_one(tiny_target: LoadedModel) -> None:
    answer, _ = measure(tiny_target)
    assert (answer.draft, answer.draft_prefill_tps) == (None, None)


def test_however_short_the_time_there_are_some_steps_and_caches_are_empty_afterwards(tiny_target: LoadedModel) -> None:
    answer, _ = measure(tiny_target, seconds=1e-6)
    assert {cost.num_steps for cost in answer.costs} == {MIN_SAMPLES}
    assert list(tiny_target.context.tokens) == []


def test_an_abort_ends_it_with_empty_caches(tiny_target: LoadedModel) -> None:
    looks = itertools.count()
    with pytest.raises(Cancelled):
        measure_steps(tiny_target, None, MeasureSteps(1, TEXT), lambda event: None, lambda: next(looks) > 5)
    assert list(tiny_target.context.tokens) == []


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (MeasureSteps(1, ""), "no text"),
        (MeasureSteps(1, TEXT, widths=(0,)), "step of 0"),
        (MeasureSteps(1, TEXT, widths=(65,)), "step of 65"),
        (MeasureSteps(1, TEXT, seconds=0.0), "seconds"),
        (MeasureSteps(1, TEXT, seconds=float("nan")), "seconds"),
    ],
)
def test_what_cannot_be_measured_is_refused(tiny_target: LoadedModel, request_: MeasureSteps, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        measure_steps(tiny_target, None, request_, lambda event: None, lambda: False)


def test_a_memory_that_cannot_roll_back_is_refused(tiny_files: dict[str, Path]) -> None:
    mamba = load_model(tiny_files["mamba"])
    try:
        with pytest.raises(UsageError, match="take back"):
            measure_steps(mamba, None, MeasureSteps(1, TEXT), lambda event: None, lambda: False)
    finally:
        mamba.close()
