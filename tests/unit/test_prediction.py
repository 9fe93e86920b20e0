"""The cost model against its worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.metrics.prediction import (
    break_even_acceptance,
    break_even_acceptance_rate,
    expected_tokens_per_round,
    predicted_speedup,
)


@pytest.mark.parametrize(("acceptance", "tokens", "speedup"), [(0.7, 2.77, 1.73), (0.4, 1.65, 1.03), (0.3, 1.43, 0.89)])
def test_worked_examples(acceptance: float, tokens: float, speedup: float) -> None:
    assert expected_tokens_per_round(acceptance, 4) == pytest.approx(tokens, abs=0.005)
    assert predicted_speedup(acceptance, 4, 0.15) == pytest.approx(speedup, abs=0.005)


def test_ends_of_the_range() -> None:
    assert expected_tokens_per_round(1.0, 4) == 5.0
    assert expected_tokens_per_round(0.0, 4) == 1.0
    assert expected_tokens_per_round(0.9, 0) == 1.0
    assert predicted_speedup(0.9, 0, 0.5) == 1.0


@given(st.floats(0.0, 0.99), st.integers(0, 32))
def test_equals_the_closed_form(acceptance: float, n: int) -> None:
    assert expected_tokens_per_round(acceptance, n) == pytest.approx((1 - acceptance ** (n + 1)) / (1 - acceptance))


@given(st.integers(1, 16), st.floats(0.0, 1.0), st.floats(1.0, 4.0))
def test_at_break_even_nothing_is_gained(n: int, draft_cost: float, verify_cost: float) -> None:
    acceptance = break_even_acceptance(n, draft_cost, verify_cost)
    if acceptance is None:
        assert predicted_speedup(1.0, n, draft_cost, verify_cost) < 1.0
    elif acceptance > 0.0:
        assert predicted_speedup(acceptance, n, draft_cost, verify_cost) == pytest.approx(1.0)


def test_break_even_at_the_edges() -> None:
    assert break_even_acceptance(4, 2.0) is None
    assert break_even_acceptance(4, 0.0) == 0.0
    assert break_even_acceptance(4, 0.15) == pytest.approx(0.382, abs=0.005)


def test_measured_break_even() -> None:
    # A round that costs 2.2 plain steps must give 2.2 tokens: its own and 1.2 of 4 drafted.
    assert break_even_acceptance_rate(2.2, 4.0) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="drafted"):
        break_even_acceptance_rate(2.0, 0.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="acceptance"):
        expected_tokens_per_round(1.1, 4)
    with pytest.raises(ValueError, match="drafted"):
        expected_tokens_per_round(0.5, -1)
    with pytest.raises(ValueError, match="costs"):
        predicted_speedup(0.5, 4, -0.1)
