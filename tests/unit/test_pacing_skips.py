"""Adaptive pacing while drafters rest: when it looks at them again, and what goes on in between."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from localspec.engine import adaptive_pacing
from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.drafter_belief import DrafterBelief
from localspec.engine.drafting.drafter import Draft, GoOn
from localspec.engine.loss_budget import SHARE, START
from localspec.engine.pacing import Outcome
from localspec.engine.values import SpeculationSettings
from tests.toys import ScriptedDrafter

STEP_S = 0.05
EVERY, MOST = adaptive_pacing._RESTS_PER_SKIP, adaptive_pacing._MOST_SKIPPED
RIGHT, WRONG = 7, 8
"""The text is one token, over and over."""


class Clock:
    """Passes only when it is told to, and by `tick` whenever it is read."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now_s = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now_s += self.tick
        return self.now_s


class Guesser:
    """Says one token as often as it may, after a match of any length, and remembers in which rounds it was asked."""

    def __init__(self, token: int = WRONG, match_length: int = 2, spend: Callable[[], None] = lambda: None) -> None:
        self.token = token
        self.match_length = match_length
        self.looks: list[int] = []
        self.num_rounds = 0
        self._spend = spend

    def propose(self, text: list[int], limit: int) -> Draft:
        self.looks.append(self.num_rounds)
        self._spend()
        return Draft((self.token,) * limit, "n_max", match_length=self.match_length)

    def gaps(self, since: int = 0) -> list[int]:
        """Return the rounds between one look and the next."""
        return [after - before for before, after in pairwise(look for look in self.looks if look >= since)]


class Free(ScriptedDrafter):
    """A guesser that costs nothing."""

    def __init__(self, guesser: Guesser) -> None:
        super().__init__(guesser.propose, "copier")

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        return self._propose([], limit)


class Model(Free):
    """A guesser that is a model, of which each draft is one token."""

    @property
    def is_free(self) -> bool:
        return False

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        return Draft(self._propose([], 1).tokens, "not_worth", (0.9,))


def pacing_on(clock: Clock) -> AdaptivePacing:
    pacing = AdaptivePacing(SpeculationSettings(method="auto"), clock)
    pacing.begin()
    return pacing


def play(pacing: AdaptivePacing, drafter: ScriptedDrafter, guesser: Guesser, count: int) -> list[Draft]:
    """Go through some rounds of a machine on which each further position costs half a plain step."""
    drafts = []
    for _ in range(count):
        draft = pacing.propose(drafter, 30)
        num_accepted = len(draft.tokens) if draft.tokens[:1] == (RIGHT,) else 0
        verify_s = STEP_S * (1.0 + 0.5 * len(draft.tokens))
        emitted = (RIGHT,) * (num_accepted + 1)
        pacing.learn(Outcome(draft, num_accepted, len(emitted), False, 0.0, verify_s, 0.0, verify_s, 1, emitted))
        drafts.append(draft)
        guesser.num_rounds += 1
    return drafts


def rested(guesser: Guesser, clock: Clock | None = None, drafter: ScriptedDrafter | None = None) -> AdaptivePacing:
    """Return a pacing that has just looked at a drafter which has rested for long, and now passes rounds over."""
    pacing, drafter = pacing_on(clock or Clock()), drafter or Free(guesser)
    play(pacing, drafter, guesser, 200)
    while guesser.looks[-1] != guesser.num_rounds - 1:
        play(pacing, drafter, guesser, 1)
    assert guesser.gaps()[-1] == MOST + 1
    return pacing


def test_a_drafter_that_rests_is_looked_at_less_and_less_and_never_forgotten() -> None:
    guesser = Guesser()
    drafts = play(pacing_on(Clock()), Free(guesser), guesser, 200)
    last_drafted = max((place for place, draft in enumerate(drafts) if draft.tokens), default=-1)
    first_rest = next(place for place, draft in enumerate(drafts) if place > last_drafted and draft.stop == "resting")
    expected = [1 + min(look // EVERY, MOST) for look in range(1, 30)]
    assert guesser.gaps(first_rest)[:29] == expected
    assert expected[-1] == MOST + 1
    assert {draft.stop for draft in drafts[first_rest:]} == {"resting"}
    assert not any(draft.tokens for draft in drafts[first_rest:])


def test_a_drafter_that_has_nothing_to_say_is_asked_in_every_round() -> None:
    asked = []

    def nothing(text: list[int], limit: int) -> Draft:
        asked.append(limit)
        return Draft((), "no_match")

    drafts = play(pacing_on(Clock()), ScriptedDrafter(nothing), Guesser(), 60)
    assert len(asked) == 60
    assert {draft.stop for draft in drafts} == {"no_match"}


@pytest.mark.parametrize(("match_length", "gap"), [(2, MOST + 1), (3, 1), (12, 1)])
def test_only_a_telling_match_that_comes_true_ends_the_skipping(match_length: int, gap: int) -> None:
    guesser = Guesser(WRONG, match_length)
    drafter = Free(guesser)
    pacing = rested(guesser, drafter=drafter)
    guesser.token = RIGHT
    start = guesser.num_rounds
    play(pacing, drafter, guesser, 2 * MOST + 2)
    first, second = [look for look in guesser.looks if look >= start][:2]
    assert first - start == MOST
    assert second - first == gap


def test_what_comes_true_again_is_soon_drafted_again() -> None:
    guesser = Guesser()
    drafter = Free(guesser)
    pacing = rested(guesser, drafter=drafter)
    guesser.token, guesser.match_length = RIGHT, 12
    drafts = play(pacing, drafter, guesser, 60)
    assert next(place for place, draft in enumerate(drafts) if draft.tokens) <= 24
    assert sum(bool(draft.tokens) for draft in drafts[30:]) > 20


def test_a_begun_text_ends_the_skipping() -> None:
    guesser = Guesser()
    drafter = Free(guesser)
    pacing = rested(guesser, drafter=drafter)
    start = guesser.num_rounds
    pacing.begin()
    play(pacing, drafter, guesser, 4)
    assert guesser.looks[-4:] == [start, start + 1, start + 2, start + 3]


def test_a_round_that_was_broken_off_costs_the_next_text_nothing() -> None:
    guesser = Guesser()
    drafter = Free(guesser)
    pacing = rested(guesser, drafter=drafter)
    judged = pacing._by_name["copier"]._judged
    assert pacing.propose(drafter, 30).stop == "resting"
    # Cancelled: nothing is learnt of that round.
    pacing.begin()
    play(pacing, drafter, guesser, 1)
    assert pacing._by_name["copier"]._judged > judged


def probes(num_rounds: int) -> list[int]:
    """Return the rounds in which a model that is always wrong was tried."""
    clock = Clock()

    def think() -> None:
        clock.now_s += 0.1 * STEP_S

    guesser = Guesser(spend=think)
    play(pacing_on(clock), Model(guesser), guesser, num_rounds)
    return guesser.looks


def test_a_model_is_tried_again_as_often_as_without_skipping(monkeypatch: pytest.MonkeyPatch) -> None:
    skipping = probes(300)
    monkeypatch.setattr(adaptive_pacing, "_MOST_SKIPPED", 0)
    steady = probes(300)
    assert len(steady) > 10
    gaps = [[after - before for before, after in pairwise(rounds)] for rounds in (steady, skipping)]
    # Where every round is counted, a probe comes at the first look after it was due.
    for without, with_skips in zip(*gaps, strict=False):
        assert 0 <= with_skips - without <= MOST


def test_what_is_known_of_the_text_fades_with_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    age = DrafterBelief.age
    aged: list[int] = []

    def watch(belief: DrafterBelief, num_tokens: int) -> None:
        aged.append(num_tokens)
        age(belief, num_tokens)

    monkeypatch.setattr(DrafterBelief, "age", watch)
    guesser = Guesser()
    rested(guesser)
    assert len(aged) < guesser.num_rounds
    assert sum(aged) == pytest.approx(guesser.num_rounds, abs=MOST)


def test_skipped_rounds_earn_what_may_be_lost() -> None:
    guesser = Guesser()
    drafter = Free(guesser)
    pacing = rested(guesser, drafter=drafter)
    for _ in range(2 * MOST):
        before = pacing._budget.credit
        play(pacing, drafter, guesser, 1)
        assert pacing._budget.credit == pytest.approx(before + SHARE)


def test_the_time_of_looking_counts_as_lost_and_a_skipped_round_has_none() -> None:
    clock = Clock()

    def think() -> None:
        clock.now_s += 0.2 * STEP_S

    guesser = Guesser(spend=think)
    drafter = Free(guesser)
    pacing = rested(guesser, clock, drafter)
    changes = []
    for _ in range(MOST + 1):
        before = pacing._budget.credit
        play(pacing, drafter, guesser, 1)
        changes.append(pacing._budget.credit - before)
    assert changes == pytest.approx([SHARE] * MOST + [SHARE - 0.2])


def test_the_time_of_learning_counts_in_the_next_round() -> None:
    clock = Clock(tick=0.02 * STEP_S)
    pacing = pacing_on(clock)
    play(pacing, ScriptedDrafter(lambda text, limit: Draft((), "no_match")), Guesser(), 10)
    # Both choosing and learning take a tick each; what learning took in the last round is not settled yet.
    assert pacing._budget.credit == pytest.approx(START + 10 * SHARE - 0.02 * (2 * 10 - 1))


def test_the_time_of_a_models_draft_is_a_cost_of_the_draft_and_not_of_choosing() -> None:
    clock = Clock()

    def think() -> None:
        clock.now_s += 0.2 * STEP_S

    guesser = Guesser(spend=think)
    pacing = pacing_on(clock)
    drafter = Model(guesser)
    while not guesser.looks:
        assert guesser.num_rounds < 20
        play(pacing, drafter, guesser, 1)
    assert pacing._own_s == 0.0
    assert pacing._draft_cost == pytest.approx(0.2)
