"""Steps timed after loading, so that adaptive pacing begins with costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localspec.engine.events import PacingReported
from localspec.engine.llama.calibration import calibrate
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.model import Cancelled
from localspec.engine.pacing_state import DrafterState, PacingState, from_text
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.values import SpeculationSettings
from tests.engine_kit import SMALL, RuntimeKit

AUTO = SpeculationSettings(method="auto")


class Clock:
    """Each look at it is a millisecond later."""

    def __init__(self) -> None:
        self._ticks = itertools.count()

    def __call__(self) -> float:
        return next(self._ticks) / 1000.0


@pytest.fixture
def kit() -> Iterator[RuntimeKit]:
    kit = RuntimeKit()
    yield kit
    kit.runtime.close()


def test_steps_of_several_widths_and_a_draft_are_timed(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    found = calibrate(tiny_target, tiny_draft, "draft X", None, Clock())
    assert {1, 2, 4, 8, 16} <= set(found.step_s) and list(found.step_s) == sorted(found.step_s)
    assert found.step_s[1] == pytest.approx(0.001)
    assert found.drafters["draft X"].step == pytest.approx(1.0)
    assert 0.0 < found.drafters["draft X"].catch_up < 0.1


def test_caches_stay_as_they_were(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    for loaded in (tiny_target, tiny_draft):
        loaded.context.clear()
        loaded.context.prefill([5, 6, 7])
    calibrate(tiny_target, tiny_draft, "draft X", None, Clock())
    assert [list(loaded.context.tokens) for loaded in (tiny_target, tiny_draft)] == [[5, 6, 7]] * 2


def test_what_is_known_is_not_timed_again(tiny_target: LoadedModel, tiny_draft: LoadedModel) -> None:
    known = PacingState({1: 0.5, 4: 0.9}, {"draft X": DrafterState(False, ((1.0, 2.0),), 0.3, 0.1)})
    assert calibrate(tiny_target, tiny_draft, "draft X", known, Clock()) == known
    other = calibrate(tiny_target, tiny_draft, "draft Y", known, Clock())
    assert other.step_s == known.step_s
    assert other.drafters["draft Y"].step == pytest.approx(0.002)


def test_slow_steps_are_timed_at_few_widths(tiny_target: LoadedModel) -> None:
    ticks = itertools.count()
    found = calibrate(tiny_target, None, "", None, lambda: next(ticks) * 0.4)
    assert 1 in found.step_s and len(found.step_s) <= 4


def test_a_full_cache_is_left_alone(tiny_target: LoadedModel) -> None:
    tiny_target.context.clear()
    tiny_target.context.prefill([5] * tiny_target.context.n_ctx)
    try:
        assert calibrate(tiny_target, None, "", None, Clock()) == PacingState()
        assert len(tiny_target.context.tokens) == tiny_target.context.n_ctx
    finally:
        tiny_target.context.clear()


def test_adaptive_pacing_begins_with_measured_costs(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    paths = str(tiny_files["target"]), str(tiny_files["draft"])
    kit.runtime.load_models(LoadModels(1, paths[0], SMALL, paths[1], SMALL, AUTO))
    answer = kit.generate(Generate(2, tokens=(10, 20, 30), max_tokens=20, is_fresh=True))
    first = answer.rounds[1].beliefs
    assert first is not None and first.plain_s > 0.0
    reported = next(event for event in answer.events if isinstance(event, PacingReported))
    state = from_text(reported.state)
    assert state is not None and {1, 2, 4, 8} <= set(state.step_s)


def test_a_cold_start_measures_anew_and_other_settings_do_not(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), SMALL, "", SMALL, AUTO))
    steps = kit.runtime._pacing
    assert steps is not None
    before = from_text(steps.state)
    kit.runtime.configure(Configure(2, replace(AUTO, n_max=20)))
    again = kit.runtime._pacing
    assert again is not None and from_text(again.state) == before
    kit.runtime.configure(Configure(3, AUTO, pacing_state="{}"))
    cold = kit.runtime._pacing
    assert cold is not None and from_text(cold.state) != before


def test_an_abort_while_timing_ends_the_load_with_nothing_loaded(
    kit: RuntimeKit, tiny_files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(*_: object) -> PacingState:
        raise Cancelled

    monkeypatch.setattr("localspec.engine.llama.runtime.calibrate", cancelled)
    with pytest.raises(Cancelled):
        kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), SMALL, "", SMALL, AUTO))
    assert kit.runtime._target is None
