"""Adaptive pacing in the engine: what it reports, keeps, and leaves as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localspec.engine.events import PacingReported
from localspec.engine.pacing_state import PacingState, from_text
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.values import SamplingSettings, SpeculationSettings, Verification
from tests.engine_kit import SMALL, Answer, RuntimeKit

ADAPTIVE = SpeculationSettings(method="draft", n_max=6, pacing="adaptive")
AUTO = SpeculationSettings(method="auto")
FIXED = SpeculationSettings(method="draft", n_max=3)
OFF = SpeculationSettings(method="off")
PROMPT = (10, 20, 30, 40, 50)


@pytest.fixture
def kit(tiny_files: dict[str, Path]) -> Iterator[RuntimeKit]:
    kit = RuntimeKit()
    kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), SMALL, str(tiny_files["draft"]), SMALL, ADAPTIVE))
    yield kit
    kit.runtime.close()


def reported(answer: Answer) -> PacingState:
    (event,) = [event for event in answer.events if isinstance(event, PacingReported)]
    assert answer.events.index(event) == len(answer.events) - 2
    state = from_text(event.state)
    assert state is not None
    return state


def request(max_tokens: int = 120, temperature: float = 0.0) -> Generate:
    return Generate(3, tokens=PROMPT, max_tokens=max_tokens, is_fresh=True, sampling=SamplingSettings(temperature))


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_the_text_is_that_of_plain_decoding(kit: RuntimeKit, temperature: float) -> None:
    adaptive = kit.generate(request(temperature=temperature))
    kit.runtime.configure(Configure(4, OFF))
    plain = kit.generate(request(temperature=temperature))
    assert adaptive.ids == plain.ids
    assert any(done.beliefs is not None for done in adaptive.rounds)
    assert all(done.beliefs is None for done in plain.rounds)
    assert not [event for event in plain.events if isinstance(event, PacingReported)]


def test_what_was_learnt_is_reported_once_and_grows_over_answers(kit: RuntimeKit) -> None:
    kit.runtime.configure(Configure(4, AUTO))
    first = reported(kit.generate(request()))
    second = reported(kit.generate(request()))
    assert "draft draft" in first.drafters and len(first.drafters) == 2
    assert first.step_s[1] > 0.0

    def judged(state: PacingState) -> float:
        return sum(count for drafter in state.drafters.values() for _, count in drafter.cells)

    assert judged(second) > judged(first) > 0.0


def cells(state: PacingState) -> dict[str, tuple[tuple[float, float], ...]]:
    return {name: drafter.cells for name, drafter in state.drafters.items()}


def test_it_survives_another_method_and_another_process(kit: RuntimeKit, tiny_files: dict[str, Path]) -> None:
    kit.runtime.configure(Configure(4, AUTO))
    kept = reported(kit.generate(request()))
    kit.runtime.configure(Configure(5, FIXED))
    assert all(done.beliefs is None for done in kit.generate(request(20)).rounds)
    kit.runtime.configure(Configure(6, AUTO))
    # Two tokens leave no room for a draft, so that nothing is learnt.
    assert cells(reported(kit.generate(request(2)))) == cells(kept)
    (text,) = [event.state for event in kit.events if isinstance(event, PacingReported)]
    other = RuntimeKit()
    files = (str(tiny_files["target"]), SMALL, str(tiny_files["draft"]), SMALL)
    other.runtime.load_models(LoadModels(1, *files, speculation=AUTO, pacing_state=text))
    assert cells(reported(other.generate(request(2)))) == cells(kept)
    other.runtime.configure(Configure(2, AUTO, pacing_state="no state"))
    assert cells(reported(other.generate(request(2)))) != cells(kept)
    other.runtime.close()


@pytest.mark.parametrize("verification", ["exact", "rejection", "block"])
def test_auto_runs_with_every_verification(kit: RuntimeKit, verification: Verification) -> None:
    kit.runtime.configure(Configure(4, SpeculationSettings(method="auto", verification=verification)))
    answer = kit.generate(request(100, temperature=0.8))
    assert len(answer.ids) == 100
    assert len(reported(answer).drafters) >= 1
