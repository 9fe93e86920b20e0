"""Comparisons that end when they are exact enough, on an engine whose time is made up."""

from __future__ import annotations

import random

import pytest

from localspec.engine.values import SamplingSettings, SpeculationSettings
from localspec.metrics.latency import LatencyFold
from localspec.metrics.statistics import Estimate
from localspec.session.arms import PromptCase, build_arms
from localspec.session.comparison import ComparisonProgress, run_comparison
from localspec.session.outcome import ComparisonResult
from tests.scripted_engine import ScriptedEngine


async def compare(
    engine: ScriptedEngine, half_width: float | None, num_pairs: int, seen: list[ComparisonProgress]
) -> ComparisonResult:
    return await run_comparison(
        engine,
        "chat",
        (PromptCase("one", text="One."),),
        build_arms(("off", "draft"), SpeculationSettings(n_max=4)),
        SamplingSettings(),
        40,
        seen.append,
        num_pairs=num_pairs,
        half_width=half_width,
    )


async def test_a_steady_machine_needs_three_pairs_and_the_closing_run() -> None:
    engine, seen = ScriptedEngine(), list[ComparisonProgress]()
    result = await compare(engine, 0.05, 12, seen)
    methods = [method for method, _ in engine.generated[2:]]
    assert methods == ["off", "draft", "draft", "off", "off", "draft", "off"]
    assert result.num_pairs == 3 and not result.is_interrupted
    assert result.closing is not None
    assert (seen[-1].num_done, seen[-1].num_total) == (8, 9)
    known = [progress.so_far for progress in seen if progress.so_far is not None]
    speedups = [result.speculative[0].speedup for result in known]
    assert [None if speedup is None else speedup.pairs for speedup in speedups] == [1, 2, 3]


async def test_an_unsteady_machine_takes_more_and_never_more_than_allowed() -> None:
    engine = ScriptedEngine(noise=0.3, rng=random.Random(3))
    result = await compare(engine, 0.05, 6, [])
    assert 3 < result.num_pairs <= 6
    assert len(result.baseline.trials) == len(result.speculative[0].trials) == result.num_pairs


async def test_without_a_limit_all_pairs_are_run_and_nothing_is_told_between() -> None:
    engine, seen = ScriptedEngine(), list[ComparisonProgress]()
    assert (await compare(engine, None, 5, seen)).num_pairs == 5
    assert all(progress.so_far is None for progress in seen)


def test_half_width_is_a_share_of_the_median() -> None:
    assert Estimate(2.0, 1.9, 2.1, 5).half_width == pytest.approx(0.05)
    assert Estimate(2.0, None, None, 1).half_width is None


async def test_the_rate_so_far_is_the_rate_of_what_was_seen() -> None:
    seen: list[ComparisonProgress] = []
    await compare(ScriptedEngine(), None, 1, seen)
    fold = LatencyFold()
    assert fold.decode_tps is None
    for progress in seen[-30:]:
        if progress.event is not None:
            fold.observe(progress.event)
            expected = fold.result().decode_tps
            assert fold.decode_tps == (None if expected is None else pytest.approx(expected))
