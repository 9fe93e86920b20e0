"""Times to first and per token, against events timed by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.events import EmittedToken, Event, GenerationFinished, GenerationStarted, RoundFinished
from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.metrics.latency import Latency, LatencyFold
from localspec.metrics.meter import RateMeter
from tests.scripted_engine import FakeClock

_OFF = SpeculationState(False, "off", "", "switched off", SpeculationSettings())


def make_round(at_s: float, *texts: str) -> RoundFinished:
    emitted = tuple(EmittedToken(1, text, "bonus") for text in texts)
    return RoundFinished(1, 0, "", (), 0, 0, emitted, 0, "off", 0.0, 0.0, 0.0, 0.0, at_s, 0)


def fold(*events: Event) -> Latency:
    latency = LatencyFold()
    for event in events:
        latency.observe(event)
    return latency.result()


def test_hand_timed_rounds() -> None:
    latency = fold(
        GenerationStarted(1, tuple(range(12)), 2, _OFF, 0.0),
        make_round(0.5, "a"),
        make_round(0.7, "b", "c"),
        make_round(1.0, "d", "e", "f"),
        GenerationFinished(1, "length", "", _OFF, 0.4, 0, 0, 0, 1.0),
    )
    assert latency.num_tokens == 6
    assert latency.ttft_s == 0.5
    assert latency.tpot_s == pytest.approx(0.5 / 5)
    assert latency.decode_tps == pytest.approx(10.0)
    assert latency.prefill_tps == pytest.approx(10 / 0.4)
    assert latency.gaps is not None
    assert latency.gaps.p50 == pytest.approx(0.1)
    assert latency.longest_gap_s == pytest.approx(0.3)


def test_first_round_with_several_tokens_is_not_decoding() -> None:
    latency = fold(make_round(1.0, "a", "b", "c"), make_round(1.5, "d"))
    assert latency.tpot_s == pytest.approx(0.5)


def test_a_round_counts_as_equal_shares() -> None:
    latency = fold(make_round(0.0, "a"), make_round(0.4, "b", "c", "d", "e"), make_round(0.9, "f"))
    assert latency.gaps is not None
    assert latency.gaps.p50 == pytest.approx(0.1)
    assert latency.gaps.p99 == pytest.approx(0.1 + (0.5 - 0.1) * 0.96)


def test_first_text_counts_and_not_the_first_token() -> None:
    assert fold(make_round(0.5, ""), make_round(0.6, "", "é")).ttft_s == 0.6


def test_without_any_visible_text_the_first_token_counts() -> None:
    assert fold(make_round(0.5, ""), make_round(0.6, "")).ttft_s == 0.5


@pytest.mark.parametrize("events", [(), (make_round(0.5, "a"),)])
def test_too_few_tokens_have_no_rate(events: tuple[RoundFinished, ...]) -> None:
    latency = fold(*events)
    assert latency.tpot_s is None
    assert latency.decode_tps is None
    assert latency.prefill_tps is None
    assert latency.gaps is None


@given(st.lists(st.tuples(st.floats(0.001, 1.0), st.integers(1, 8)), min_size=2, max_size=20))
def test_shares_add_up_to_the_time_per_token(rounds: list[tuple[float, int]]) -> None:
    at_s = 0.0
    events = []
    for gap_s, count in rounds:
        at_s += gap_s
        events.append(make_round(at_s, *["x"] * count))
    latency = fold(*events)
    shares = [gap_s / count for gap_s, count in rounds[1:] for _ in range(count)]
    assert latency.tpot_s == pytest.approx(sum(shares) / len(shares))
    assert latency.gaps is not None
    slack = 1e-9
    assert min(shares) - slack <= latency.gaps.p50 <= latency.gaps.p95 + slack <= latency.gaps.p99 + 2 * slack
    assert latency.gaps.p99 <= max(shares) + slack


def test_meter_counts_the_window_only() -> None:
    clock = FakeClock()
    meter = RateMeter(clock, window_s=2.0)
    assert meter.rate() is None
    meter.add(100)
    assert meter.rate() is None
    for _ in range(30):
        clock.advance(0.1)
        meter.add(2)
    assert meter.rate() == pytest.approx(20.0)
    for _ in range(30):
        clock.advance(0.1)
        meter.add(1)
    assert meter.rate() == pytest.approx(10.0)


def test_meter_falls_while_nothing_comes_and_then_knows_nothing() -> None:
    clock = FakeClock()
    meter = RateMeter(clock, window_s=2.0)
    for _ in range(11):
        meter.add(1)
        clock.advance(0.1)
    moving = meter.rate()
    clock.advance(1.0)
    slower = meter.rate()
    assert moving is not None
    assert slower is not None
    assert slower < moving
    clock.advance(2.0)
    assert meter.rate() is None
    meter.reset()
    assert meter.rate() is None
