from __future__ import annotations

import pytest

from localspec.engine.events import EmittedToken, GenerationStarted, PrefillProgress, RoundFinished
from localspec.engine.values import SpeculationSettings, SpeculationState
from localspec.metrics.live import LiveFold

STATE = SpeculationState(True, "draft", "draft tiny", "", SpeculationSettings("draft"))


def round_at(at_s: float, count: int, index: int = 1) -> RoundFinished:
    emitted = tuple(EmittedToken(1, "x", "bonus") for _ in range(count))
    return RoundFinished(1, index, "", (), 0, 0, emitted, 0, "off", 0.0, 0.0, 0.0, 0.1, at_s, 10)


def test_speed_is_taken_over_the_last_second() -> None:
    fold = LiveFold()
    for step in range(31):
        fold.observe(round_at(0.1 * step, 1 if step <= 20 else 5))
    speed = dict((round(at_s, 1), round(rate)) for at_s, rate in fold.figures().speed)
    assert speed[1.5] == 10
    assert speed[2.5] == 30
    assert speed[3.0] == 50
    assert fold.figures().now_tps == pytest.approx(50.0)


def test_a_slow_model_has_a_speed_too() -> None:
    fold = LiveFold()
    for step in range(4):
        fold.observe(round_at(5.0 * step, 1))
    assert fold.figures().now_tps == pytest.approx(0.2)


def test_the_series_stays_short() -> None:
    fold = LiveFold()
    for step in range(20_000):
        fold.observe(round_at(0.06 * step, 1))
    speed = fold.figures().speed
    assert len(speed) <= 240
    assert speed[-1][0] > 0.9 * 0.06 * 20_000
    assert [at_s for at_s, _ in speed] == sorted(at_s for at_s, _ in speed)


def test_nothing_is_known_at_first_and_then_how_far_the_prompt_is_read() -> None:
    fold = LiveFold()
    assert fold.figures().now_tps is None
    assert fold.figures().stats.acceptance_rate is None
    fold.observe(GenerationStarted(1, (1, 2, 3, 4), 1, STATE, 0.0))
    fold.observe(PrefillProgress(1, "draft", 4, 4, 0.1))
    fold.observe(PrefillProgress(1, "target", 3, 4, 0.1))
    figures = fold.figures()
    assert (figures.num_read, figures.num_prompt, figures.n_past, figures.speculation) == (3, 4, 1, STATE)
