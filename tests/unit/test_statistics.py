"""Medians, percentiles, and intervals that claim no more than they may."""

from __future__ import annotations

import statistics as stdlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.metrics.comparison import judge
from localspec.metrics.statistics import (
    MIN_BOOTSTRAP_PAIRS,
    bootstrap_median,
    estimate_ratio,
    estimate_unpaired_ratio,
    median,
    percentile,
)

finite = st.floats(0.01, 1000.0)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.lists(finite, min_size=1, max_size=30))
def test_median_is_the_standard_librarys(values: list[float]) -> None:
    assert median(values) == pytest.approx(stdlib.median(values))


@given(st.lists(finite, min_size=1, max_size=30), st.floats(0, 100), st.floats(0, 100))
def test_percentiles_rise_and_stay_within_the_values(values: list[float], one: float, other: float) -> None:
    low, high = sorted((one, other))
    slack = 1e-9 * max(values)
    assert min(values) - slack <= percentile(values, low) <= percentile(values, high) + slack <= max(values) + 2 * slack


def test_percentile_interpolates() -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], 95.0) == pytest.approx(3.85)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="no values"):
        median([])
    with pytest.raises(ValueError, match="rank"):
        percentile([1.0], 101.0)
    with pytest.raises(ValueError, match="positive"):
        estimate_ratio([1.0, 0.0], rng())
    with pytest.raises(ValueError, match="positive"):
        estimate_ratio([1.0, float("nan")], rng())


def test_one_value_has_no_interval() -> None:
    estimate = bootstrap_median([2.0], rng())
    assert (estimate.median, estimate.low, estimate.high, estimate.pairs) == (2.0, None, None, 1)
    assert estimate_ratio([2.0], rng()).low is None


def test_equal_values_have_a_point_as_interval() -> None:
    estimate = estimate_ratio([1.5, 1.5, 1.5], rng())
    assert estimate.low == pytest.approx(1.5)
    assert estimate.high == pytest.approx(1.5)


@given(st.lists(st.floats(0.2, 5.0), min_size=3, max_size=12), st.integers(0, 5))
def test_interval_holds_the_median_and_the_seed_decides(values: list[float], seed: int) -> None:
    estimate = estimate_ratio(values, rng(seed))
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.median <= estimate.high
    assert estimate == estimate_ratio(values, rng(seed))


def test_bootstrap_of_three_is_their_range_and_the_ratio_interval_is_wider() -> None:
    values = [1.02, 1.05, 1.08]
    plain, honest = bootstrap_median(values, rng()), estimate_ratio(values, rng())
    assert (plain.low, plain.high) == (1.02, 1.08)
    assert honest.low is not None
    assert honest.low < 1.0


def test_bootstrap_stands_alone_for_many() -> None:
    values = [1.0 + 0.01 * step for step in range(MIN_BOOTSTRAP_PAIRS)]
    assert estimate_ratio(values, rng()) == bootstrap_median(values, rng())


@pytest.mark.parametrize("num_pairs", [3, 4, 6, 12])
def test_two_equal_things_are_seldom_called_different(num_pairs: int) -> None:
    draw = rng(num_pairs)
    false_calls = 0
    for _ in range(100):
        speeds = draw.uniform(0.85, 1.15, size=(2, num_pairs))
        estimate = estimate_ratio(list(speeds[0] / speeds[1]), rng())
        assert estimate.low is not None
        assert estimate.high is not None
        false_calls += not estimate.low <= 1.0 <= estimate.high
    # 5 are expected; the plain bootstrap makes about 26 of three pairs.
    assert false_calls <= 12


@pytest.mark.parametrize("ratios", [[1.1], [0.001, 1000.0]])
def test_fewer_than_three_pairs_have_no_interval(ratios: list[float]) -> None:
    estimate = estimate_ratio(ratios, rng(0))
    assert (estimate.low, estimate.high, estimate.pairs) == (None, None, len(ratios))
    assert judge(estimate) == "too_little_to_judge"


@pytest.mark.parametrize(("num_above", "num_below"), [(3, 3), (3, 12), (8, 4), (12, 12)])
def test_unpaired_values_of_one_kind_are_seldom_called_different(num_above: int, num_below: int) -> None:
    draw = rng(num_above + num_below)
    false_calls = 0
    for _ in range(100):
        above, below = draw.uniform(85.0, 115.0, num_above), draw.uniform(85.0, 115.0, num_below)
        estimate = estimate_unpaired_ratio(list(above), list(below), rng())
        assert estimate.low is not None
        assert estimate.high is not None
        false_calls += not estimate.low <= 1.0 <= estimate.high
    assert false_calls <= 12


def test_an_unpaired_ratio_finds_a_clear_difference() -> None:
    estimate = estimate_unpaired_ratio([80.0, 81.0, 79.5], [100.0, 101.0, 99.0, 100.5], rng())
    assert estimate.median == pytest.approx(80.0 / 100.25)
    assert estimate.pairs == 3
    assert judge(estimate) == "slower"


@given(st.lists(finite, min_size=3, max_size=12), st.lists(finite, min_size=3, max_size=12))
def test_an_unpaired_interval_holds_its_ratio(above: list[float], below: list[float]) -> None:
    estimate = estimate_unpaired_ratio(above, below, rng())
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= estimate.median <= estimate.high
    assert estimate == estimate_unpaired_ratio(above, below, rng())


@pytest.mark.parametrize("values", [[100.0], [100.0, 100.0]])
def test_fewer_than_three_unpaired_values_have_no_interval(values: list[float]) -> None:
    estimate = estimate_unpaired_ratio(values, [50.0] * 20, rng())
    assert (estimate.median, estimate.low, estimate.high) == (2.0, None, None)


def test_equal_unpaired_values_have_a_point_as_interval() -> None:
    estimate = estimate_unpaired_ratio([10.0] * 3, [20.0] * 4, rng())
    assert (estimate.low, estimate.high) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("values", [[], [0.0], [-1.0], [float("nan")], [float("inf")]])
def test_an_unpaired_ratio_refuses_what_is_no_speed(values: list[float]) -> None:
    with pytest.raises(ValueError):
        estimate_unpaired_ratio([1.0, 2.0, 3.0], values, rng())
