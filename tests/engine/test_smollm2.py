"""The real model: drafts do not change its text, or a replay calls the difference rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localspec.catalog.embedded import find_smollm2
from localspec.engine.events import DifferenceExplained
from localspec.engine.requests import Configure, ExplainDifference, Generate, LoadModels
from localspec.engine.values import ContextSettings, Message, SamplingSettings, SpeculationSettings
from localspec.session.demo import DemoModels
from localspec.session.same_text import classify, first_difference
from tests.engine_kit import PAIR_N_CTX, Answer, RuntimeKit

pytestmark = [pytest.mark.model, pytest.mark.timeout(400)]

QUESTION = "Repeat the following text exactly: The old mill by the river was sold in spring, and the river was glad."
SETTINGS = (
    SpeculationSettings("draft", n_max=2),
    SpeculationSettings("draft", n_max=8, p_min=0.5),
    SpeculationSettings("ngram", n_max=6, ngram_min=2),
)


@pytest.fixture(scope="module", params=["F16", "Q4_1"])
def kit(request: pytest.FixtureRequest, models: DemoModels) -> Iterator[RuntimeKit]:
    kit = RuntimeKit()
    target = models.target if request.param == "F16" else find_smollm2()
    context = ContextSettings(n_ctx=PAIR_N_CTX)
    kit.runtime.load_models(LoadModels(1, str(target), context, str(models.draft), context))
    yield kit
    kit.runtime.close()


@pytest.fixture(scope="module")
def plain(kit: RuntimeKit) -> Callable[[SamplingSettings], Answer]:
    """The answers without drafts, each given once."""
    answers: dict[SamplingSettings, Answer] = {}

    def plain(sampling: SamplingSettings) -> Answer:
        if sampling not in answers:
            answers[sampling] = answer(kit, SpeculationSettings("off"), sampling)
        return answers[sampling]

    return plain


def answer(kit: RuntimeKit, speculation: SpeculationSettings, sampling: SamplingSettings) -> Answer:
    kit.runtime.configure(Configure(2, speculation))
    messages = (Message("user", QUESTION),)
    return kit.generate(Generate(3, messages, sampling=sampling, max_tokens=40, is_fresh=True, ignore_eog=True))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("speculation", SETTINGS, ids=lambda settings: f"{settings.method}-{settings.n_max}")
def test_the_text_is_that_of_plain_decoding_or_differs_by_rounding(
    kit: RuntimeKit,
    plain: Callable[[SamplingSettings], Answer],
    speculation: SpeculationSettings,
    temperature: float,
) -> None:
    sampling = SamplingSettings(temperature=temperature, seed=11)
    without = plain(sampling)
    spec = answer(kit, speculation, sampling)
    assert spec.num_accepted > 0
    assert len(spec.ids) == len(without.ids) == 40
    place = first_difference(tuple(without.ids), tuple(spec.ids))
    if place is None:
        assert spec.text == without.text
        return
    rounds = spec.rounds[1:]
    kit.runtime.explain_difference(
        ExplainDifference(
            4,
            without.started.prompt_tokens,
            tuple(without.ids[:place]),
            tuple(done.drafted for done in rounds),
            tuple(done.num_accepted for done in rounds),
            sampling,
            ignore_eog=True,
        )
    )
    found = kit.events[-1]
    assert isinstance(found, DifferenceExplained)
    verdict = classify(found, place, without.ids[place], spec.ids[place], sampling)
    print(f"differs at token {place}: gap {found.top2_gap:.4f}, noise {found.noise:.4f}")
    assert verdict.kind == "rounding", verdict.reason


def test_a_follow_up_reads_only_the_new_question(kit: RuntimeKit) -> None:
    kit.runtime.configure(Configure(2, SpeculationSettings("draft")))
    turns = [Message("user", QUESTION)]
    first = kit.generate(Generate(3, tuple(turns), max_tokens=30, is_fresh=True))
    turns += [Message("assistant", first.text), Message("user", "Thanks. And now in French?")]
    second = kit.generate(Generate(4, tuple(turns), max_tokens=4))
    num_cached = len(first.started.prompt_tokens) + len(first.ids) - 1
    assert second.started.num_reused >= num_cached - 1
    assert len(second.started.prompt_tokens) - second.started.num_reused < 25


def test_the_header_of_the_embedded_file_says_what_it_is(kit: RuntimeKit) -> None:
    from localspec.engine.llama.header import read_header

    header = read_header(str(find_smollm2()))
    assert header.architecture == "llama"
    assert header.arch_integer("block_count") == 30
    assert header.num_params == 134_515_008
    assert Path(header.path).stat().st_size == header.file_bytes
