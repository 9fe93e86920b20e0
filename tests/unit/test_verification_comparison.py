"""Only a verification that promises the same text is held to it."""

from __future__ import annotations

import pytest

from localspec.engine.events import DifferenceExplained
from localspec.engine.requests import ExplainDifference
from localspec.engine.values import SamplingSettings, SpeculationSettings, Verification
from localspec.session.arms import PromptCase, build_arms
from localspec.session.comparison import run_comparison
from localspec.session.verdict import same_text_sentence
from tests.scripted_engine import ArmScript, ScriptedEngine


@pytest.mark.parametrize(
    ("verification", "temperature", "kind"),
    [
        ("exact", 0.8, "error"),
        ("rejection", 0.8, None),
        ("block", 0.8, None),
        ("exact", 0.0, "error"),
        ("rejection", 0.0, "error"),
        ("block", 0.0, "error"),
    ],
)
async def test_another_text_is_an_error_only_where_the_same_was_promised(
    verification: Verification, temperature: float, kind: str | None
) -> None:
    found = DifferenceExplained(0, 5.0, 0.01, 1007, 1007)
    engine = ScriptedEngine(scripts={"draft": ArmScript(changed_token=7)}, explained=found)
    arms = build_arms(("off", "draft"), SpeculationSettings(verification=verification))
    sampling = SamplingSettings(temperature=temperature)
    result = await run_comparison(
        engine, "chat", (PromptCase("one", text="One."),), arms, sampling, 40, lambda _: None, num_pairs=1
    )
    answer = result.speculative[0].same_text
    assert (answer and answer.kind) == kind
    assert bool(same_text_sentence(answer)) == (kind is not None)
    assert any(isinstance(request, ExplainDifference) for request in engine.requests) == (kind is not None)
    assert len(result.speculative[0].trials) == 1
