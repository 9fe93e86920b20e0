"""The cost model against its worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.metrics.prediction import (
    best_length,
    break_even_acceptance,
    break_even_acceptance_rate,
    expected_tokens,
    expected_tokens_per_round,
    predict_lengths,
    predict_mix,
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


@given(st.floats(0.0, 1.0), st.integers(0, 16))
def test_positions_alike_are_one_acceptance(acceptance: float, n: int) -> None:
    assert expected_tokens((acceptance,) * n) == pytest.approx(expected_tokens_per_round(acceptance, n))


def test_positions_that_differ() -> None:
    assert expected_tokens((0.8, 0.5, 0.25)) == pytest.approx(1 + 0.8 + 0.4 + 0.1)


def test_all_lengths_of_the_worked_example() -> None:
    lengths = predict_lengths((0.7,) * 4, 0.15)
    assert [length.n for length in lengths] == [0, 1, 2, 3, 4]
    assert (lengths[0].tokens, lengths[0].steps, lengths[0].speedup, lengths[0].break_even) == (1.0, 1.0, 1.0, None)
    assert lengths[4].tokens == pytest.approx(2.77, abs=0.005)
    assert lengths[4].steps == pytest.approx(1.6)
    assert lengths[4].speedup == pytest.approx(predicted_speedup(0.7, 4, 0.15))
    assert lengths[4].break_even == pytest.approx(0.382, abs=0.005)
    # The fourth token adds 0.24 tokens for 0.15 steps, less than the 1.75 tokens a step of the first three.
    assert best_length(lengths).n == 3
    # Where nothing pays, plain decoding is the best.
    assert best_length(predict_lengths((0.1,) * 4, 0.15)).n == 0


def test_a_stair_of_verify_costs_moves_the_best_length() -> None:
    flat = predict_lengths((0.8,) * 4, 0.05)
    stair = predict_lengths((0.8,) * 4, 0.05, (1.0, 1.0, 2.0, 2.0))
    assert (best_length(flat).n, best_length(stair).n) == (4, 2)
    assert stair[3].steps == pytest.approx(2.15)


def test_lengths_refuse_nonsense() -> None:
    for arguments in (((1.2,), 0.1), ((0.5,), -0.1), ((0.5,), float("nan")), ((0.5,), 0.1, (0.0,))):
        with pytest.raises(ValueError, match=r"within|positive|finite"):
            predict_lengths(*arguments)
    with pytest.raises(ValueError, match="2 lengths"):
        predict_lengths((0.5, 0.5), 0.1, (1.0,))


def test_a_mix_of_lengths_weighs_tokens_and_steps() -> None:
    lengths = predict_lengths((0.5, 0.5), 0.25)
    assert predict_mix(lengths, (3,)) == 1.0
    assert predict_mix(lengths, (1, 0, 2)) == pytest.approx((1 + 2 * 1.75) / (1 + 2 * 1.5))
    assert predict_mix(lengths, (0, 0)) is None
