"""Who of a cascade speaks, what is counted for each, and caches that stay right when speakers alternate."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.cascade_record import AcceptanceRecord, CostRecord, num_common
from localspec.engine.drafting.draft_model import DraftModelDrafter
from localspec.engine.drafting.drafter import Draft
from localspec.engine.drafting.suffix import SuffixDrafter
from localspec.engine.pacing import FixedPacing
from localspec.engine.speculative import speculate
from localspec.engine.values import SpeculationSettings
from tests.toys import ScriptedDrafter, ToyModel, ToySampler, always_wrong, oracle

PROMPT = (1, 2, 3, 4)


class HandClock:
    """A clock that is moved by hand, and by each look a little."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class ScriptedModel(ScriptedDrafter):
    """A scripted drafter that says it costs something, and takes its time."""

    def __init__(self, drafts: Sequence[Sequence[int]], clock: HandClock, step_s: float) -> None:
        remaining = [tuple(draft) for draft in drafts]

        def propose(text: list[int], limit: int) -> Draft:
            clock.now += step_s * limit
            return Draft(remaining.pop(0), "n_max")

        super().__init__(propose, "model")

    @property
    def is_free(self) -> bool:
        return False


def free(tokens: Sequence[int], match_length: int = 3, probability: float = 0.9, name: str = "free") -> ScriptedDrafter:
    class Matching(ScriptedDrafter):
        def draft(self, limit: int, go_on: object = None) -> Draft:
            said = tuple(tokens)[:limit]
            return Draft(said, "n_max", (probability,) * len(said), match_length=match_length)

    return Matching(lambda text, limit: Draft((), "silent"), name)


def test_the_names_and_costs_are_those_of_the_members() -> None:
    model = DraftModelDrafter(ToyModel(), "draft toy", 0.0)
    cascade = CascadeDrafter((SuffixDrafter(2.0, 0.1), model))
    cascade.begin(PROMPT)
    assert cascade.name == "suffix + draft toy"
    assert [member.name for member in cascade.members] == ["suffix", "draft toy"]
    assert (cascade.is_free, cascade.num_unseen) == (False, 1)
    assert CascadeDrafter((SuffixDrafter(2.0, 0.1),)).is_free
    with pytest.raises(ValueError, match="needs a drafter"):
        CascadeDrafter(())


def play(cascade: CascadeDrafter, clock: HandClock, answers: Sequence[Sequence[int]], limit: int = 2) -> list[str]:
    """Draft and observe in turn, each verification taking one second; return who spoke."""
    speakers = []
    for answer in answers:
        draft = cascade.draft(limit)
        speakers.append(draft.drafter)
        clock.now += 1.0
        cascade.observe(answer, num_common(draft.tokens, answer))
    return speakers


def test_a_free_member_that_is_right_speaks_instead_of_the_model() -> None:
    clock = HandClock()
    cascade = CascadeDrafter((free((5, 6)), ScriptedModel([(7, 8)] * 30, clock, 0.1)), clock=clock)
    cascade.begin(PROMPT)
    assert play(cascade, clock, [(5, 6, 1)] * 10) == ["free"] * 10
    assert cascade.counts[0].num_accepted == cascade.counts[0].num_drafted == 20
    assert cascade.counts[1].num_rounds == 0


def test_one_that_was_wrong_falls_silent_and_is_heard_again_once_its_proposals_come_true() -> None:
    clock = HandClock()
    cascade = CascadeDrafter((free((5, 6)), ScriptedModel([(7, 8)] * 60, clock, 0.01)), clock=clock)
    cascade.begin(PROMPT)
    wrong = play(cascade, clock, [(7, 8, 1)] * 20)
    assert wrong[0] == "free" and set(wrong[5:]) == {"model"}
    # Its proposals were counted all along, though nobody saw them.
    assert cascade.counts[0].num_rounds == 20
    right = play(cascade, clock, [(5, 6, 1)] * 30)
    assert right[0] == "model" and right[-1] == "free"


def test_a_match_length_that_fails_says_nothing_of_another() -> None:
    record = AcceptanceRecord()
    short, long = (Draft((5, 6), "n_max", (0.9, 0.9), match_length=length) for length in (1, 20))
    before = record.expected_accepted(long)
    for _ in range(10):
        record.learn(short, (9,))
    assert record.expected_accepted(short) < 0.6
    assert record.expected_accepted(long) == before == pytest.approx(0.9 + 0.81)


def test_tokens_behind_the_first_wrong_one_or_behind_the_end_are_not_counted() -> None:
    record = AcceptanceRecord()
    draft = Draft((1, 2, 3, 4), "n_max", match_length=2)
    assert record.learn(draft, (1, 2, 9)) == (3, 2)
    assert record.learn(draft, (9,)) == (1, 0)
    assert record.learn(draft, (1, 2)) == (2, 2)
    assert record.learn(draft, (1, 2, 3, 4, 5)) == (4, 4)


def test_a_dear_model_is_passed_over_for_less_than_a_cheap_one() -> None:
    def speakers(step_s: float) -> list[str]:
        clock = HandClock()
        # The model has one right token of two in each round; the free one is asked with even chances from the start.
        cascade = CascadeDrafter(
            (free((5,), probability=0.5), ScriptedModel([(7, 6)] * 40, clock, step_s)), clock=clock
        )
        cascade.begin(PROMPT)
        return play(cascade, clock, [(7, 8)] * 3 + [(5, 8), (7, 8)] * 12)

    assert speakers(0.01).count("free") < speakers(0.5).count("free")


def test_the_models_record_forgets() -> None:
    costs = CostRecord()
    assert (costs.mean_accepted, costs.relative_s) == (1.0, 1.0)
    for _ in range(100):
        costs.learn(4, 0.5, 1.0)
    assert costs.mean_accepted == pytest.approx(4.0, abs=0.4)
    assert costs.relative_s == pytest.approx(1.5)
    for _ in range(100):
        costs.learn(0, 0.5, 1.0)
    assert costs.mean_accepted < 0.5


def test_where_the_last_is_free_too_the_first_with_something_to_say_speaks() -> None:
    cascade = CascadeDrafter((free((), name="a"), free((5,), name="b"), free((6,), name="c")))
    cascade.begin(PROMPT)
    draft = cascade.draft(3)
    assert (draft.tokens, draft.drafter) == ((5,), "b")


def test_a_model_without_a_proposal_leaves_the_word_to_a_doubtful_free_member() -> None:
    model = DraftModelDrafter(ToyModel(n_vocab=4), "small", 0.0)
    cascade = CascadeDrafter((free((5, 6), probability=0.01), model))
    cascade.begin((1, 9))
    draft = cascade.draft(2)
    assert (draft.tokens, draft.drafter) == ((5, 6), "free")


def test_a_free_draft_that_would_be_thrown_away_for_its_length_does_not_speak() -> None:
    clock = HandClock()
    members = (free((5,)), ScriptedModel([(7, 8, 9)], clock, 0.1))
    cascade = CascadeDrafter(members, n_min=2, clock=clock)
    cascade.begin(PROMPT)
    assert cascade.draft(3).drafter == "model"


def test_shadows_are_asked_once_and_count() -> None:
    cascade = CascadeDrafter((free((5, 6)), DraftModelDrafter(ToyModel(), "toy", 0.0)))
    cascade.begin(PROMPT)
    cascade.shadow(2)
    cascade.observe((5, 9), 0)
    cascade.observe((5, 9), 0)
    assert [(each.num_rounds, each.num_drafted, each.num_accepted) for each in cascade.counts] == [(1, 2, 1), (0, 0, 0)]


def test_asking_a_member_directly_is_counted_as_well() -> None:
    cascade = CascadeDrafter((free((5, 6)), DraftModelDrafter(ToyModel(), "toy", 0.0)))
    cascade.begin(PROMPT)
    assert cascade.members[0].draft(1).tokens == (5,)
    assert cascade.draft_by(0, 2).drafter == "free"
    cascade.observe((5, 6, 1), 2)
    assert (cascade.counts[0].num_rounds, cascade.counts[0].num_accepted) == (1, 2)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 5),
    order=st.integers(2, 5),
    calls=st.lists(st.tuples(st.sampled_from(["suffix", "model", "both", "none"]), st.integers(1, 6)), max_size=25),
)
def test_a_models_cache_holds_the_text_whoever_spoke(seed: int, order: int, calls: list[tuple[str, int]]) -> None:
    target, draft_model = ToyModel(seed=seed, order=order), ToyModel(seed=seed, order=2)
    cascade = CascadeDrafter((oracle(target, noise=0.3), DraftModelDrafter(draft_model, "weak", 0.0)))
    cascade.begin(PROMPT)
    text = list(PROMPT)
    for call, limit in calls:
        drafts = []
        if call in ("suffix", "both"):
            drafts.append(cascade.draft_by(0, limit))
        if call in ("model", "both"):
            drafts.append(cascade.draft_by(1, limit))
        # As a target would: keep what is right of the draft that was asked for last, and add a token of its own.
        used = drafts[-1].tokens if drafts else ()
        emitted: list[int] = []
        for proposal in (*used, None):
            emitted.append(target.following([*text, *emitted]))
            if emitted[-1] != proposal:
                break
        cascade.observe(emitted, len(emitted) - 1)
        text += emitted
        assert list(draft_model.tokens) == text[: len(draft_model.tokens)]
    fresh = DraftModelDrafter(ToyModel(seed=seed, order=2), "weak", 0.0)
    fresh.begin(text)
    assert cascade.draft_by(1, 4).tokens == fresh.draft(4).tokens


def test_what_the_model_missed_is_read_in_one_go() -> None:
    draft_model = ToyModel(seed=1)
    cascade = CascadeDrafter((free((5,)), DraftModelDrafter(draft_model, "toy", 0.0)))
    cascade.begin(PROMPT)
    for token in range(6):
        cascade.draft_by(0, 1)
        cascade.observe((token,), 0)
    assert (cascade.num_unseen, draft_model.num_decoded) == (6, len(PROMPT))
    draft_model.num_steps = 0
    cascade.draft_by(1, 1)
    assert (draft_model.num_steps, draft_model.num_decoded) == (1, len(PROMPT) + 6)


def test_a_proposal_that_was_not_used_but_came_true_is_not_decoded_again() -> None:
    draft_model, target = ToyModel(seed=3), ToyModel(seed=3)
    cascade = CascadeDrafter((always_wrong(target), DraftModelDrafter(draft_model, "twin", 0.0)))
    cascade.begin(PROMPT)
    proposal = cascade.draft_by(1, 4).tokens
    cascade.draft_by(0, 4)
    cascade.observe(proposal[:3], 0)
    assert list(draft_model.tokens) == [*PROMPT, *proposal[:3]]


def test_over_a_whole_answer_the_speakers_are_named_and_a_better_free_one_saves_steps() -> None:
    target, draft_model = ToyModel(seed=2), ToyModel(seed=2, order=2)
    cascade = CascadeDrafter((oracle(target), DraftModelDrafter(draft_model, "weak", 0.0)))
    target.prefill(PROMPT)
    cascade.begin(PROMPT)
    pacing = FixedPacing(SpeculationSettings(method="cascade", n_max=4))
    rounds = list(speculate(target, ToySampler(target), cascade, pacing, 60, lambda token: None))
    speakers = [done.drafter for done in rounds[1:] if done.drafted]
    assert speakers[-8:] == ["oracle"] * 8
    assert draft_model.num_decoded < len(PROMPT) + 5 * 4
    right = sum(done.num_accepted for done in rounds if done.drafter == "oracle")
    assert cascade.counts[0].num_accepted >= right > 40
    assert cascade.counts[0].num_drafted == cascade.counts[0].num_accepted


@pytest.mark.parametrize("seed", range(4))
def test_adaptive_pacing_asks_the_members_itself_and_their_caches_stay_right(seed: int) -> None:
    target, draft_model = ToyModel(seed=seed), ToyModel(seed=seed, order=2)
    cascade = CascadeDrafter((SuffixDrafter(2.0, 0.1), DraftModelDrafter(draft_model, "weak", 0.0)))
    target.prefill(PROMPT)
    cascade.begin(PROMPT)
    text = list(PROMPT)
    pacing = AdaptivePacing(SpeculationSettings(method="auto"))
    plain = list(PROMPT)
    for done in speculate(target, ToySampler(target), cascade, pacing, 200, lambda token: None):
        text += done.emitted
        assert list(draft_model.tokens) == text[: len(draft_model.tokens)]
        if done.drafted:
            assert done.drafter in ("suffix", "weak")
    while len(plain) < len(text):
        plain.append(target.following(plain))
    assert text == plain
    assert cascade.counts[0].num_rounds > 20
