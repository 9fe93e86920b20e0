"""Rejection and block verification through the real engine: the probabilities of plain sampling, and clean caches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import get_args

import pytest

from localspec.engine.dice import Dice
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.draft_model import DraftModelDrafter, Drawing
from localspec.engine.drafting.drafter import Drafter
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.events import Event, RoundFinished
from localspec.engine.llama import drafters
from localspec.engine.llama.drawn_draft import DrawnDraft
from localspec.engine.llama.loading import LoadedModel
from localspec.engine.llama.sampler import LlamaSampler
from localspec.engine.pacing import FixedPacing
from localspec.engine.requests import Configure, Generate, LoadModels
from localspec.engine.speculative import Round, speculate
from localspec.engine.values import SamplingSettings, SpeculationSettings, Verification
from localspec.engine.verification import Verify
from localspec.engine.verification_ratio import VerifyByBlock, VerifyByToken
from tests.engine_kit import SMALL, Answer, KnownText, RuntimeKit, generate
from tests.verification_kit import EveryOutcome, Text, chi_square_p, emitted, largest_error, total_by

Rule = Callable[[Dice], Verify]
RULES: list[Rule] = [VerifyByToken, VerifyByBlock]
PROMPT = (40, 41, 42, 43, 41)
HOT = 4.0
"""The tiny models' logits lie far apart."""
SAMPLINGS = {
    "top-k": SamplingSettings(HOT, top_k=3, top_p=1.0, min_p=0.0),
    "top-p": SamplingSettings(HOT, top_k=40, top_p=0.7, min_p=0.0),
    "min-p": SamplingSettings(HOT, top_k=0, top_p=1.0, min_p=0.25),
    "penalties": SamplingSettings(HOT, top_k=3, min_p=0.0, repeat_penalty=1.5, presence_penalty=4.0),
    "grammar": SamplingSettings(2 * HOT, top_k=3, min_p=0.0, grammar='root ::= ("ab" | "cad" | "ee "){40}'),
    "both": SamplingSettings(HOT, top_k=3, min_p=0.0, grammar="root ::= [a-h]{200}", frequency_penalty=3.0),
}


class FirstKnown:
    """A sampler whose first draw is the distribution's most probable token: the texts after it are added up."""

    def __init__(self, inner: LlamaSampler) -> None:
        self._inner = inner
        self.distribution = inner.distribution
        self.accept = inner.accept

    def sample(self, row: int) -> int:
        found = self._inner.distribution(row, ())
        token = int(found.ids[found.probabilities.argmax()])
        self._inner.accept(token)
        return token


def plain_texts(target: LoadedModel, sampling: SamplingSettings, length: int) -> dict[Text, float]:
    """The probability of each answer of this length in single steps, given the most probable first token."""
    totals: dict[Text, float] = {}

    def follow(text: Text, share: float) -> None:
        if len(text) == length:
            totals[text] = share
            return
        target.context.clear()
        target.context.prefill((*PROMPT, *text))
        sampler = LlamaSampler(target.context, sampling, PROMPT)
        for token in text:
            sampler.accept(token)
        found = sampler.distribution(0, ())
        sampler.close()
        ids, shares = found.ids.tolist(), found.probabilities.tolist()
        if not text:
            ids, shares = [ids[found.probabilities.argmax()]], [1.0]
        for token, probability in zip(ids, shares, strict=True):
            follow((*text, token), share * probability)

    follow((), 1.0)
    return totals


def drafted_texts(
    target: LoadedModel,
    draft: LoadedModel,
    sampling: SamplingSettings,
    rule: Rule,
    length: int,
    *,
    draft_sampling: SamplingSettings | None = None,
) -> dict[Text, float]:
    """The same with drafts, over every outcome of both dice."""
    dice = EveryOutcome()
    pacing = FixedPacing(SpeculationSettings("draft", n_max=2))

    def answer() -> list[Round]:
        target.context.truncate(len(PROMPT) - 1)
        target.context.decode(PROMPT[-1:], 1)
        drafter = DraftModelDrafter(draft.context, "draft", 0.0)
        drafter.begin(PROMPT)
        proposing = LlamaSampler(draft.context, replace(draft_sampling or sampling, grammar=""), PROMPT)
        judging = LlamaSampler(target.context, sampling, PROMPT)
        drafter.draw(Drawing(proposing, dice))
        rounds = speculate(
            target.context, FirstKnown(judging), drafter, pacing, length, lambda _: None, verify=rule(dice)
        )
        try:
            return list(islice(rounds, 2 * length))
        finally:
            proposing.close()
            judging.close()

    for loaded in (target, draft):
        loaded.context.clear()
    target.context.prefill(PROMPT)
    return total_by(dice.outcomes(answer), emitted)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SAMPLINGS)
def test_every_outcome_adds_up_to_the_probabilities_of_plain_sampling(
    tiny_target: LoadedModel, tiny_draft: LoadedModel, rule: Rule, name: str
) -> None:
    sampling = SAMPLINGS[name]
    wanted = plain_texts(tiny_target, sampling, 4)
    found = drafted_texts(tiny_target, tiny_draft, sampling, rule, 4)
    assert len(wanted) > 2
    assert largest_error(found, wanted) < 1e-6


@pytest.mark.parametrize("rule", RULES)
def test_a_draft_that_is_sampled_otherwise_is_as_good(
    tiny_target: LoadedModel, tiny_draft: LoadedModel, rule: Rule
) -> None:
    sampling = SAMPLINGS["top-k"]
    other = SamplingSettings(3 * HOT, top_k=2, min_p=0.0)
    found = drafted_texts(tiny_target, tiny_draft, sampling, rule, 4, draft_sampling=other)
    assert largest_error(found, plain_texts(tiny_target, sampling, 4)) < 1e-6


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_row_would_be_found(
    tiny_target: LoadedModel, tiny_draft: LoadedModel, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = SAMPLINGS["top-k"]
    wanted = plain_texts(tiny_target, sampling, 4)
    right = LlamaSampler.distribution
    monkeypatch.setattr(LlamaSampler, "distribution", lambda self, row, prefix: right(self, max(row - 1, 0), prefix))
    assert largest_error(drafted_texts(tiny_target, tiny_draft, sampling, rule, 4), wanted) > 1e-2


@pytest.mark.parametrize("rule", RULES)
def test_a_history_that_stands_still_would_be_found(
    tiny_target: LoadedModel, tiny_draft: LoadedModel, rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = SAMPLINGS["penalties"]
    wanted = plain_texts(tiny_target, sampling, 4)
    monkeypatch.setattr(LlamaSampler, "accept", lambda self, token: None)
    assert largest_error(drafted_texts(tiny_target, tiny_draft, sampling, rule, 4), wanted) > 1e-2


# Whole answers, with the settings that a user gives.


@pytest.fixture
def kit(tiny_files: dict[str, object]) -> RuntimeKit:
    kit = RuntimeKit()
    paths = {name: str(tiny_files[name]) for name in ("target", "draft")}
    kit.runtime.load_models(LoadModels(1, paths["target"], SMALL, paths["draft"], SMALL))
    return kit


def configured(kit: RuntimeKit, verification: Verification, **more: object) -> RuntimeKit:
    settings = {"method": "draft", "n_max": 4, "verification": verification, **more}
    kit.runtime.configure(Configure(2, SpeculationSettings(**settings)))  # type: ignore[arg-type]
    return kit


def ask(sampling: SamplingSettings, max_tokens: int = 40, **more: object) -> Generate:
    return Generate(id=3, tokens=PROMPT, max_tokens=max_tokens, sampling=sampling, **more)  # type: ignore[arg-type]


WARM = SamplingSettings(HOT, top_k=10, min_p=0.0, seed=5)


@pytest.mark.parametrize("verification", ["rejection", "block"])
@pytest.mark.parametrize("method", ["draft", "ngram", "cascade"])
def test_the_same_seed_gives_the_same_answer_and_another_another(
    kit: RuntimeKit, verification: Verification, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who of a cascade speaks follows from measured times, and from what became of earlier proposals.
    monkeypatch.setattr(drafters, "CascadeDrafter", partial(CascadeDrafter, clock=lambda: 0.0))
    configured(kit, verification, method=method, ngram_min=1, ngram_max=2)
    first = kit.generate(ask(WARM))
    if method == "cascade":
        configured(kit, verification, method=method, ngram_min=1, ngram_max=2)
    again = kit.generate(ask(WARM))
    assert first.ids == again.ids
    assert [done.drafted for done in first.rounds] == [done.drafted for done in again.rounds]
    assert kit.generate(ask(replace(WARM, seed=6))).ids != first.ids
    assert 0 < first.num_accepted < sum(len(done.drafted) for done in first.rounds)
    kit.runtime.close()


def test_more_is_accepted_than_by_matching(kit: RuntimeKit) -> None:
    counts = {}
    for verification in get_args(Verification):
        configured(kit, verification)
        answers = [kit.generate(ask(replace(WARM, seed=seed))) for seed in range(12)]
        counts[verification] = sum(answer.num_accepted for answer in answers)
    assert counts["block"] > 1.1 * counts["exact"]
    assert counts["rejection"] > 1.1 * counts["exact"]
    kit.runtime.close()


@pytest.mark.parametrize("verification", ["rejection", "block"])
def test_at_temperature_0_the_text_and_the_drafts_are_those_of_exact(
    kit: RuntimeKit, verification: Verification
) -> None:
    greedy = ask(SamplingSettings())
    wanted = configured(kit, "exact").generate(greedy)
    found = configured(kit, verification).generate(greedy)
    assert [(done.drafted, done.num_accepted) for done in found.rounds] == [
        (done.drafted, done.num_accepted) for done in wanted.rounds
    ]
    assert found.ids == wanted.ids
    kit.runtime.close()


@pytest.mark.parametrize("verification", ["rejection", "block"])
def test_a_rule_of_drafts_leaves_plain_decoding_alone(kit: RuntimeKit, verification: Verification) -> None:
    wanted = configured(kit, "exact", method="off").generate(ask(WARM))
    assert configured(kit, verification, method="off").generate(ask(WARM)).ids == wanted.ids
    kit.runtime.close()


@pytest.mark.parametrize("verification", ["rejection", "block"])
def test_exact_draws_no_drafts_after_another_rule(kit: RuntimeKit, verification: Verification) -> None:
    wanted = configured(kit, "exact").generate(ask(WARM))
    configured(kit, verification).generate(ask(WARM))
    found = configured(kit, "exact").generate(ask(WARM))
    assert [done.drafted for done in found.rounds] == [done.drafted for done in wanted.rounds]
    plain = configured(kit, "exact", method="off").generate(ask(WARM))
    assert found.ids == wanted.ids == plain.ids
    kit.runtime.close()


@pytest.mark.parametrize("verification", ["rejection", "block"])
@pytest.mark.parametrize("name", SAMPLINGS)
def test_rounds_and_caches_keep_what_they_promise(kit: RuntimeKit, verification: Verification, name: str) -> None:
    configured(kit, verification, n_max=3, p_min=0.05)
    target, draft = kit.runtime._target, kit.runtime._draft
    assert target is not None and draft is not None
    text = list(PROMPT)

    def check(event: Event) -> None:
        kit.events.append(event)
        if isinstance(event, RoundFinished):
            text.extend(token.id for token in event.emitted)
            assert list(target.context.tokens) == text[: event.n_past]
            assert event.n_past == len(text) - 1
            assert list(draft.context.tokens) == text[: len(draft.context.tokens)]

    kit.runtime._emit = check
    answer = kit.generate(ask(replace(SAMPLINGS[name], seed=3), 50))
    assert len(answer.ids) == 50 == len(answer.rounds) + answer.num_accepted
    assert answer.finished.finish_reason == "length"
    for done in answer.rounds:
        origins = [token.origin for token in done.emitted]
        assert origins[:-1] == ["accepted"] * done.num_accepted
        assert origins[-1] == ("bonus" if done.num_accepted == len(done.drafted) else "correction")
        assert tuple(token.id for token in done.emitted[:-1]) == done.drafted[: done.num_accepted]
    kit.runtime.close()


@pytest.mark.parametrize("verification", ["rejection", "block"])
def test_a_grammar_is_kept_to_its_end(kit: RuntimeKit, verification: Verification) -> None:
    grammar = SamplingSettings(HOT, min_p=0.0, grammar='root ::= ("ab" | "cad" | "ee "){6}')
    configured(kit, verification)
    for seed in range(5):
        answer = kit.generate(ask(replace(grammar, seed=seed), 60))
        assert answer.finished.finish_reason == "stop"
        assert answer.text.replace("ab", "").replace("cad", "").replace("ee ", "") == ""
    kit.runtime.close()


def forced(target: LoadedModel, drafter: Drafter, verification: Verification, request: Generate) -> Answer:
    return generate(target, request, drafter, SpeculationSettings("draft", n_max=8, verification=verification))


@pytest.mark.parametrize("verification", ["rejection", "block"])
def test_a_stop_inside_an_accepted_run_ends_text_and_count(
    tiny_target: LoadedModel, verification: Verification
) -> None:
    grammar = SamplingSettings(1.0, grammar='root ::= "hello there, stop here and go on"')
    request = ask(grammar, 80, stop=("op he", "never"), is_fresh=True)
    whole = forced(tiny_target, NgramDrafter(1, 2), verification, ask(grammar, 80, is_fresh=True))
    cut = forced(tiny_target, KnownText(whole.ids), verification, request)
    assert cut.text == "hello there, st"
    assert cut.finished.finish_reason == "stop_string"
    assert cut.num_accepted > 0
    assert list(tiny_target.context.tokens) == [*PROMPT, *cut.ids][: len(tiny_target.context.tokens)]


def test_the_draft_proposes_no_id_that_the_target_lacks(tiny_files: dict[str, object]) -> None:
    kit = RuntimeKit()
    kit.runtime.load_models(LoadModels(1, str(tiny_files["target"]), SMALL, str(tiny_files["padded"]), SMALL))
    configured(kit, "block")
    drawn = kit.runtime._drafting.drawn_draft
    assert isinstance(drawn, DrawnDraft)
    assert drawn.context.n_vocab == 384
    for seed in range(6):
        answer = kit.generate(ask(SamplingSettings(8.0, top_k=300, top_p=1.0, min_p=0.0, seed=seed), 30))
        drafted = [token for done in answer.rounds for token in done.drafted]
        assert drafted and max(drafted) < 320
        assert not any(done.num_discarded for done in answer.rounds)
    kit.runtime.close()


def count_texts(kit: RuntimeKit, sampling: SamplingSettings, num_answers: int, length: int) -> dict[Text, int]:
    counts: dict[Text, int] = {}
    for seed in range(num_answers):
        text = tuple(kit.generate(ask(replace(sampling, seed=1000 + seed), length)).ids)
        counts[text] = counts.get(text, 0) + 1
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("verification", ["exact", "rejection", "block"])
@pytest.mark.parametrize("name", ["top-k", "penalties", "grammar"])
def test_many_answers_are_spread_as_plain_sampling_is(kit: RuntimeKit, verification: Verification, name: str) -> None:
    """Seeds, dice and all: the first three tokens of an answer, in the engine as it is used."""
    sampling = SAMPLINGS[name]
    target = kit.runtime._target
    assert target is not None
    wanted = all_texts(target, sampling, 3)
    configured(kit, verification, n_max=2)
    assert chi_square_p(count_texts(kit, sampling, 2000, 3), wanted) > 1e-9
    kit.runtime.close()


def all_texts(target: LoadedModel, sampling: SamplingSettings, length: int) -> dict[Text, float]:
    """The probability of each answer of this length."""
    totals: dict[Text, float] = {(): 1.0}
    for _ in range(length):
        longer: dict[Text, float] = {}
        for text, share in totals.items():
            target.context.clear()
            target.context.prefill((*PROMPT, *text))
            sampler = LlamaSampler(target.context, sampling, PROMPT)
            for token in text:
                sampler.accept(token)
            found = sampler.distribution(0, ())
            sampler.close()
            for token, probability in zip(found.ids.tolist(), found.probabilities.tolist(), strict=True):
                longer[*text, token] = share * probability
        totals = longer
    return totals


def test_a_chat_goes_on_after_an_answer(kit: RuntimeKit) -> None:
    configured(kit, "block")
    first = kit.generate(ask(WARM, 10))
    longer: Sequence[int] = (*PROMPT, *first.ids, 50, 51)
    second = kit.generate(Generate(4, tokens=tuple(longer), max_tokens=10, sampling=WARM))
    assert second.started.num_reused == len(PROMPT) + len(first.ids) - 1
    assert len(second.ids) == 10
    kit.runtime.close()
