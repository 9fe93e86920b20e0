"""The loop's invariants, on a toy model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.drafting.drafter import Draft, Drafter
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.drafting.suffix import SuffixDrafter
from localspec.engine.model import Cancelled
from localspec.engine.pacing import FixedPacing
from localspec.engine.speculative import Round, speculate
from localspec.engine.values import FinishReason, SpeculationSettings
from tests.toys import ScriptedDrafter, ToyModel, ToySampler, always_wrong, oracle, scripted_tokens, silent

PROMPT = (1, 2, 3, 4)

Ends = Callable[[int], FinishReason | None]


def never(_token: int) -> FinishReason | None:
    return None


def on_token(stop_token: int, reason: FinishReason = "stop") -> Ends:
    return lambda token: reason if token == stop_token else None


def plain(model: ToyModel, prompt: Sequence[int], count: int) -> list[int]:
    text = list(prompt)
    for _ in range(count):
        text.append(model.following(text))
    return text[len(prompt) :]


def run(
    target: ToyModel,
    drafter: Drafter | None,
    *,
    n_max: int = 4,
    n_min: int = 0,
    max_tokens: int = 40,
    prompt: Sequence[int] = PROMPT,
    sampler: ToySampler | None = None,
    ends: Ends = never,
) -> list[Round]:
    target.clear()
    target.prefill(prompt)
    if drafter is not None:
        drafter.begin(prompt)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=n_max, n_min=n_min))
    return list(speculate(target, sampler or ToySampler(target), drafter, pacing, max_tokens, ends))


def emitted(rounds: Sequence[Round]) -> list[int]:
    return [token for done in rounds for token in done.emitted]


def drafters(target: ToyModel, seed: int) -> list[Drafter | None]:
    return [
        None,
        silent(),
        always_wrong(target),
        oracle(target),
        oracle(target, noise=0.4, seed=seed),
        NgramDrafter(1, 3),
        DraftModelDrafter(ToyModel(seed=seed), "unrelated", 0.0),
        DraftModelDrafter(ToyModel(seed=target._seed), "twin", 0.0),
        DraftModelDrafter(ToyModel(seed=target._seed), "unsure twin", 0.5),
        SuffixDrafter(2.0, 0.1),
        SuffixDrafter(32.0, 0.0),
        CascadeDrafter((SuffixDrafter(2.0, 0.0), DraftModelDrafter(ToyModel(seed=seed, order=2), "weak", 0.0))),
        CascadeDrafter((always_wrong(target), DraftModelDrafter(ToyModel(seed=seed + 1), "wrong", 0.0))),
        CascadeDrafter((silent(), NgramDrafter(1, 3), oracle(target, noise=0.4, seed=seed))),
    ]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 5),
    which=st.integers(0, 13),
    n_max=st.integers(1, 12),
    prompt=st.lists(st.integers(0, 10), min_size=1, max_size=12),
    sampler_seed=st.one_of(st.none(), st.integers(0, 99)),
    max_tokens=st.integers(1, 50),
)
def test_any_drafter_emits_what_plain_decoding_emits(
    seed: int, which: int, n_max: int, prompt: list[int], sampler_seed: int | None, max_tokens: int
) -> None:
    target = ToyModel(seed=seed)
    without = run(target, None, prompt=prompt, sampler=ToySampler(target, sampler_seed), max_tokens=max_tokens)
    sampler = ToySampler(target, sampler_seed)
    rounds = run(
        target, drafters(target, seed)[which], n_max=n_max, prompt=prompt, sampler=sampler, max_tokens=max_tokens
    )
    assert emitted(rounds) == emitted(without)
    assert sampler.accepted == emitted(rounds)
    assert len(emitted(rounds)) == max_tokens
    assert rounds[-1].finish == "length"


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 5),
    which=st.integers(1, 15),
    n_max=st.integers(1, 8),
    n_min=st.integers(0, 3),
    stop_token=st.integers(0, 10),
    is_string=st.booleans(),
)
def test_counters_add_up_and_caches_hold_the_accepted_text(
    seed: int, which: int, n_max: int, n_min: int, stop_token: int, is_string: bool
) -> None:
    target = ToyModel(seed=seed, order=5)
    draft_model = ToyModel(seed=seed, order=2)
    weak = DraftModelDrafter(draft_model, "weak", 0.0)
    drafter = [*drafters(target, seed), weak, CascadeDrafter((SuffixDrafter(2.0, 0.0), weak))][which]
    target.prefill(PROMPT)
    assert drafter is not None
    drafter.begin(PROMPT)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=max(n_max, n_min), n_min=n_min))
    ends = on_token(stop_token, "stop_string" if is_string else "stop")
    text = list(PROMPT)
    num_passes = num_accepted = num_cut = 0
    for done in speculate(target, ToySampler(target), drafter, pacing, 30, ends):
        text.extend(done.emitted)
        num_passes += 1
        num_accepted += done.num_accepted
        num_cut += done.num_cut
        assert list(target.tokens) == text[: len(target.tokens)]
        assert len(target.tokens) == done.n_past
        assert done.n_past == len(text) - 1 or (done.num_cut and done.n_past == len(text))
        assert list(draft_model.tokens) == text[: len(draft_model.tokens)]
        assert len(done.emitted) == len(done.origins)
        assert done.origins.count("accepted") == done.num_accepted <= len(done.drafted) <= max(n_max, n_min)
        assert done.total_s >= done.draft_s + done.verify_s + done.sample_s
        assert (stop_token in done.emitted) == (done.finish in ("stop", "stop_string"))
    assert len(text) - len(PROMPT) == num_passes + num_accepted - num_cut


def test_the_target_as_its_own_draft_is_always_accepted() -> None:
    target = ToyModel(seed=3)
    rounds = run(target, DraftModelDrafter(ToyModel(seed=3), "twin", 0.0), n_max=4, max_tokens=21)
    assert [done.num_accepted for done in rounds] == [0, 4, 4, 4, 4]
    assert {done.origins[-1] for done in rounds} == {"bonus"}


def test_an_always_wrong_draft_costs_a_correction_each_round() -> None:
    target = ToyModel(seed=3)
    rounds = run(target, always_wrong(target), n_max=4, max_tokens=6)
    assert [done.num_accepted for done in rounds] == [0] * 6
    assert [done.origins for done in rounds[1:-1]] == [("correction",)] * 4
    assert (rounds[-1].drafted, rounds[-1].draft_stop) == ((), "room")


def test_hand_counted_script() -> None:
    target = ToyModel(seed=1)
    truth = plain(target, PROMPT, 12)
    wrong = (truth[3] + 1) % 11
    rounds = run(target, scripted_tokens([(truth[1], truth[2], wrong, 0, 0)]), n_max=5, max_tokens=12)
    assert rounds[1].num_accepted == 2
    assert len(rounds[1].drafted) == 5
    assert rounds[1].emitted == (truth[1], truth[2], truth[3])
    assert rounds[1].origins == ("accepted", "accepted", "correction")


def test_the_draft_model_decodes_each_token_of_the_text_only_once() -> None:
    target, draft_model = ToyModel(seed=3), ToyModel(seed=3)
    rounds = run(target, DraftModelDrafter(draft_model, "twin", 0.0), n_max=4, max_tokens=41)
    # The prompt; the first token and three drafts; then in seven rounds the fourth draft, the bonus and three drafts.
    assert all(done.num_accepted == 4 for done in rounds[1:])
    assert draft_model.num_decoded == len(PROMPT) + 4 + 7 * 5
    wrong_draft = ToyModel(seed=8)
    rounds = run(target, DraftModelDrafter(wrong_draft, "unrelated", 0.0), n_max=3, max_tokens=10)
    rejected_all = [done for done in rounds[1:] if done.num_accepted == 0 and len(done.drafted) == 3]
    assert rejected_all
    assert wrong_draft.num_decoded <= len(PROMPT) + sum(max(len(done.drafted), 1) + 1 for done in rounds)


@pytest.mark.parametrize(("p_min", "expected"), [(0.75, 2), (0.0, 5), (0.95, 0)])
def test_p_min_stops_before_the_first_unsure_token(p_min: float, expected: int) -> None:
    class DeclaredModel(ToyModel):
        def argmax_with_probability(self, row: int) -> tuple[int, float]:
            position = len(self.tokens) - len(PROMPT)
            return self.argmax(row), [0.9, 0.8, 0.1, 0.9, 0.9][position]

    drafter = DraftModelDrafter(DeclaredModel(seed=1), "declared", p_min)
    drafter.begin(PROMPT)
    draft = drafter.draft(5)
    assert len(draft.tokens) == expected
    assert draft.stop == ("n_max" if expected == 5 else "p_min")


def test_a_draft_below_n_min_is_thrown_away_and_counted() -> None:
    target = ToyModel(seed=1)
    rounds = run(target, scripted_tokens([(5, 6), (1, 2, 3)]), n_max=5, n_min=3, max_tokens=12)
    assert (rounds[1].drafted, rounds[1].num_discarded, rounds[1].draft_stop) == ((), 2, "n_min")
    assert len(rounds[2].drafted) == 3


@pytest.mark.parametrize("prompt_length", [240, 253, 254, 255, 256])
@pytest.mark.parametrize("n_max", [1, 4, 16])
def test_no_draft_looks_past_the_end_of_the_context(prompt_length: int, n_max: int) -> None:
    target = ToyModel(n_ctx=256)
    prompt = [index % 11 for index in range(prompt_length)]
    rounds = run(target, oracle(target), n_max=n_max, max_tokens=100, prompt=prompt)
    assert rounds[-1].finish == "context_full"
    assert len(target.tokens) == 256
    assert emitted(rounds) == plain(target, prompt, 257 - prompt_length)


def test_a_draft_context_smaller_than_the_target_only_shortens_drafts() -> None:
    target, draft_model = ToyModel(seed=2, n_ctx=64), ToyModel(seed=2, n_ctx=16)
    rounds = run(target, DraftModelDrafter(draft_model, "small", 0.0), n_max=6, max_tokens=30)
    assert emitted(rounds) == plain(target, PROMPT, 30)
    assert rounds[-2].draft_stop == "room"


def test_ids_that_the_target_lacks_are_cut_before_they_reach_it() -> None:
    target = ToyModel(seed=1)
    truth = plain(target, PROMPT, 12)
    rounds = run(target, scripted_tokens([(truth[1], 11, truth[3])]), n_max=5, max_tokens=12)
    assert rounds[1].drafted == (truth[1],)
    assert rounds[1].num_discarded == 2
    assert emitted(rounds) == truth


def test_a_target_id_that_the_draft_lacks_silences_it() -> None:
    target, draft_model = ToyModel(seed=1, n_vocab=11), ToyModel(seed=1, n_vocab=4)
    rounds = run(target, DraftModelDrafter(draft_model, "small vocabulary", 0.0), prompt=(1, 2, 3), max_tokens=30)
    assert emitted(rounds) == plain(target, (1, 2, 3), 30)
    assert any(token >= 4 for token in emitted(rounds))
    assert rounds[-2].draft_stop == "silent"


@pytest.mark.parametrize("reason", ["stop", "stop_string"])
@pytest.mark.parametrize("position", [1, 2, 3, 4, 5])
def test_nothing_after_a_stop_inside_an_accepted_run_is_emitted(reason: FinishReason, position: int) -> None:
    target = next(
        model
        for model in map(lambda seed: ToyModel(seed=seed), itertools.count())
        if len(set(plain(model, PROMPT, 6))) == 6
    )
    truth = plain(target, PROMPT, 6)
    sampler = ToySampler(target)
    rounds = run(target, oracle(target), n_max=4, ends=on_token(truth[position], reason), sampler=sampler)
    assert emitted(rounds) == truth[: position + 1] == sampler.accepted
    assert rounds[-1].finish == reason
    # llama.cpp counts an end token before the last drafted one as the target's own; after the last, the bonus is cut.
    if position <= 4:
        is_own = reason == "stop" and position < 4
        assert rounds[1].num_accepted == (position - 1 if is_own else position)
        assert rounds[1].num_cut == (0 if is_own else 1)


@pytest.mark.parametrize("step", range(1, 14))
def test_cancel_at_any_step_leaves_both_caches_with_the_text(step: int) -> None:
    target, draft_model = ToyModel(seed=4), ToyModel(seed=4, order=2)
    drafter = DraftModelDrafter(draft_model, "weak", 0.0)
    target.prefill(PROMPT)
    drafter.begin(PROMPT)
    target.num_steps = draft_model.num_steps = 0
    if step % 2:
        draft_model.cancel_at_step = step
    else:
        target.cancel_at_step = step
    text = list(PROMPT)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=4))
    with pytest.raises(Cancelled):
        for done in speculate(target, ToySampler(target), drafter, pacing, 200, never):
            text.extend(done.emitted)
    assert list(target.tokens) == text[:-1]
    assert list(draft_model.tokens) == text[: len(draft_model.tokens)]
    # The next turn goes on from there as if nothing had happened.
    target.cancel_at_step = draft_model.cancel_at_step = None
    rounds = run(target, drafter, prompt=text, max_tokens=20)
    assert emitted(rounds) == plain(target, text, 20)


def test_leaving_the_generator_early_leaves_the_caches_clean() -> None:
    target = ToyModel(seed=4)
    drafter = oracle(target)
    target.prefill(PROMPT)
    drafter.begin(PROMPT)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=4))
    rounds = speculate(target, ToySampler(target), drafter, pacing, 200, never)
    text = [*PROMPT, *next(rounds).emitted, *next(rounds).emitted]
    del rounds
    assert list(target.tokens) == text[:-1]


def test_a_sampler_that_fails_leaves_the_cache_with_what_was_accepted() -> None:
    target = ToyModel(seed=4)

    class FailingSampler(ToySampler):
        def sample(self, row: int) -> int:
            if len(self.accepted) == 3:
                raise RuntimeError("broken")
            return super().sample(row)

    drafter = oracle(target)
    target.prefill(PROMPT)
    drafter.begin(PROMPT)
    sampler = FailingSampler(target)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=4))
    with pytest.raises(RuntimeError, match="broken"):
        list(speculate(target, sampler, drafter, pacing, 20, never))
    assert list(target.tokens) == [*PROMPT, *sampler.accepted]


def test_times_are_of_the_clock_and_add_up() -> None:
    ticks = itertools.count()
    target = ToyModel(seed=1)
    target.prefill(PROMPT)
    drafter = ScriptedDrafter(lambda text, limit: Draft((1,) * limit, "n_max"))
    drafter.begin(PROMPT)
    pacing = FixedPacing(SpeculationSettings(method="draft", n_max=2))
    rounds = list(speculate(target, ToySampler(target), drafter, pacing, 8, never, clock=lambda: float(next(ticks))))
    for done in rounds[1:]:
        assert (done.draft_s, done.verify_s, done.sample_s) == (1.0, 1.0, 1.0)
        assert done.total_s == 5.0
