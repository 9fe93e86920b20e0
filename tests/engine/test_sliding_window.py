"""Gemma 3: a sliding window forgets old positions, so that not every prefix of its cache can be used again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localspec.catalog.embedded import find_gemma3
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.values import ContextSettings, SpeculationSettings
from localspec.errors import ModelFileError
from tests.engine_kit import RuntimeKit

pytestmark = [pytest.mark.model, pytest.mark.timeout(400)]

WORDS = " ".join(f"Line {number}: the {number}th lamp of the street is lit." for number in range(1, 90))


@pytest.fixture(scope="module")
def kit() -> Iterator[RuntimeKit]:
    try:
        path = find_gemma3()
    except ModelFileError as error:
        pytest.skip(error.message)
    kit = RuntimeKit()
    kit.runtime.load_models(LoadModels(1, str(path), ContextSettings(n_ctx=2048)))
    yield kit
    kit.runtime.close()


def test_a_prefix_inside_the_window_is_kept(kit: RuntimeKit) -> None:
    kit.runtime.configure(Configure(2, SpeculationSettings("off")))
    first = kit.generate(Generate(3, text=WORDS, max_tokens=8))
    longer = (*first.started.prompt_tokens, *first.ids, 100, 101)
    second = kit.generate(Generate(4, tokens=longer, max_tokens=4))
    assert second.started.num_reused == len(first.started.prompt_tokens) + len(first.ids) - 1


def test_a_prefix_that_the_window_has_left_is_read_again(kit: RuntimeKit) -> None:
    kit.runtime.configure(Configure(2, SpeculationSettings("off")))
    # After the test before, most of it is there.
    whole = kit.generate(Generate(3, text=WORDS, max_tokens=8))
    tokens = whole.started.prompt_tokens
    assert len(tokens) > 1200
    early = (*tokens[:100], tokens[200])
    reused = kit.generate(Generate(4, tokens=early, max_tokens=12))
    assert reused.started.num_reused == 0
    assert reused.ids == kit.generate(Generate(5, tokens=early, max_tokens=12, is_fresh=True)).ids


@pytest.mark.slow
def test_drafts_are_taken_back_without_a_trace_past_the_window(kit: RuntimeKit) -> None:
    kit.runtime.configure(Configure(2, SpeculationSettings("off")))
    plain = kit.generate(Generate(3, text=WORDS, max_tokens=60, is_fresh=True, ignore_eog=True))
    kit.runtime.configure(Configure(2, SpeculationSettings("ngram", n_max=8, ngram_min=1, ngram_max=3)))
    spec = kit.generate(Generate(4, text=WORDS, max_tokens=60, is_fresh=True, ignore_eog=True))
    assert spec.num_accepted > 0
    assert sum(len(done.drafted) for done in spec.rounds) > spec.num_accepted
    # The text is a counting pattern that the model continues with certainty: rounding has no near-tie to move.
    assert spec.text[:80] == plain.text[:80]
