"""Speed and time to go, against a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.catalog.hub.rate import RateMeter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_claimed_in_the_beginning() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    assert meter.speed is None and meter.eta_s(10) is None
    meter.start()
    clock.now += 0.2
    meter.add(1_000_000)
    assert meter.speed is None and meter.eta_s(10) is None
    clock.now += 0.3
    assert meter.speed == pytest.approx(2_000_000)


def test_steady_speed_and_time_to_go() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    meter.start()
    for _ in range(200):
        clock.now += 0.05
        meter.add(500)
    assert meter.speed == pytest.approx(10_000, rel=0.01)
    assert meter.eta_s(50_000) == pytest.approx(5.0, rel=0.01)
    assert meter.eta_s(0) == 0.0


def test_only_the_window_counts() -> None:
    clock = Clock()
    meter = RateMeter(clock, window_s=5)
    meter.start()
    for speed in (1_000_000, 1_000):
        for _ in range(60):
            clock.now += 0.1
            meter.add(speed // 10)
    assert meter.speed == pytest.approx(1_000, rel=0.01)


def test_a_stall_shows() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    meter.start()
    for _ in range(100):
        clock.now += 0.1
        meter.add(1_000)
    clock.now += 2.5
    assert meter.speed == pytest.approx(5_000, rel=0.05)
    clock.now += 2.6
    assert meter.speed == 0.0
    assert meter.eta_s(1) is None


def test_one_big_piece_after_a_long_silence_counts_in_part() -> None:
    clock = Clock()
    meter = RateMeter(clock, window_s=5)
    meter.start()
    clock.now += 10
    meter.add(1_000)
    assert meter.speed == pytest.approx(100)


def test_a_new_start_forgets_a_pause() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    meter.start()
    clock.now += 1
    meter.add(1_000)
    clock.now += 60
    meter.start()
    assert meter.speed is None
    clock.now += 1
    meter.add(2_000)
    assert meter.speed == pytest.approx(2_000)


@given(
    st.lists(
        st.tuples(st.floats(0, 20, allow_nan=False), st.integers(0, 10**9)),
        max_size=60,
    )
)
def test_speed_is_never_negative_nor_above_all_bytes_in_half_a_second(steps: list[tuple[float, int]]) -> None:
    clock = Clock()
    meter = RateMeter(clock)
    for wait_s, num_bytes in steps:
        clock.now += wait_s
        meter.add(num_bytes)
        speed = meter.speed
        assert speed is None or 0 <= speed <= sum(num for _, num in steps) / 0.5
