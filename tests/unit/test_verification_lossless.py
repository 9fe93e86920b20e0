"""Every outcome of drawing and verifying, added up: the emitted texts have exactly the target's probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from localspec.engine import verification_ratio
from localspec.engine.adaptive_pacing import AdaptivePacing
from localspec.engine.dice import Dice, SeededDice
from localspec.engine.distribution import Distribution, excess
from localspec.engine.drafting.cascade import CascadeDrafter
from localspec.engine.drafting.draft_model import DraftModelDrafter, Drawing
from localspec.engine.drafting.drafter import Draft, Drafter, GoOn
from localspec.engine.drafting.ngram import NgramDrafter
from localspec.engine.pacing import FixedPacing
from localspec.engine.speculative import Round
from localspec.engine.values import SpeculationSettings
from localspec.engine.verification import Verify
from localspec.engine.verification_ratio import VerifyByBlock, VerifyByToken
from tests.toys import ScriptedDrafter
from tests.verification_kit import (
    PROMPT,
    ChainSampler,
    EveryOutcome,
    Misreporting,
    Text,
    TextModel,
    ToyChain,
    drawn_drafter,
    emitted,
    generate,
    largest_error,
    texts_of,
    total_by,
)

Rule = Callable[[Dice], Verify]
MakeDrafter = Callable[[Dice], Drafter]

RULES: list[Rule] = [VerifyByToken, VerifyByBlock]
EXACT = 1e-12
"""What rounding may add up to."""
WRONG = 1e-3
"""What each mistake must exceed."""


def error_of(
    target: ToyChain,
    make_drafter: MakeDrafter,
    rule: Rule,
    max_tokens: int = 4,
    end: int | None = None,
    **more: object,
) -> float:
    """The largest error of a text's probability. What the rounds leave open is completed without drafts."""
    dice = EveryOutcome()

    def answer() -> list[Round]:
        return generate(target, make_drafter(dice), rule(dice), dice, max_tokens=max_tokens, end=end, **more)  # type: ignore[arg-type]

    found: dict[Text, float] = {}
    for text, share in total_by(dice.outcomes(answer), emitted).items():
        for longer, probability in texts_of(target, max_tokens, end, text).items():
            found[longer] = found.get(longer, 0.0) + share * probability
    return largest_error(found, texts_of(target, max_tokens, end))


def drawn_from(chain: ToyChain, p_min: float = 0.0) -> MakeDrafter:
    return lambda dice: drawn_drafter(chain, dice, p_min)


TARGET, DRAFT = ToyChain(seed=1), ToyChain(seed=2)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_max", [1, 2, 3])
def test_a_drawn_draft_changes_no_probability(rule: Rule, seed: int, n_max: int) -> None:
    target, draft = ToyChain(seed=10 + seed), ToyChain(seed=20 + seed)
    assert error_of(target, drawn_from(draft), rule, max_tokens=n_max + 2, n_max=n_max, num_rounds=2) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("target", "draft"),
    [
        (ToyChain(seed=3, top_p=0.7), ToyChain(seed=4)),
        (ToyChain(seed=3), ToyChain(seed=4, top_p=0.7)),
        (ToyChain(seed=3, top_p=0.6), ToyChain(seed=5, top_p=0.6)),
        (ToyChain(seed=3, order=9, penalty=1.5), ToyChain(seed=4)),
        (ToyChain(seed=3, order=9, penalty=1.5), ToyChain(seed=3, order=9, penalty=1.0)),
        (ToyChain(seed=3, forbids=lambda text, token: token == text[-1]), ToyChain(seed=4)),
        (ToyChain(seed=3, forbids=lambda _, token: token == 2), ToyChain(seed=3, forbids=lambda _, token: token < 2)),
        (ToyChain(seed=3), ToyChain(seed=3)),
        (ToyChain(seed=3, n_vocab=4), ToyChain(seed=3, n_vocab=4, spread=0.1)),
        (ToyChain(seed=3, spread=0.1), ToyChain(seed=4, spread=4.0)),
    ],
    ids=["p cut", "q cut", "both cut", "penalties", "both penalised", "grammar", "apart", "equal", "flat q", "sharp q"],
)  # fmt: skip
def test_whatever_the_chains_do_no_probability_changes(rule: Rule, target: ToyChain, draft: ToyChain) -> None:
    assert error_of(target, drawn_from(draft), rule) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("limits", [(1, 2), (2, 0, 1), (0, 2)])
def test_lengths_may_change_from_round_to_round(rule: Rule, limits: Sequence[int]) -> None:
    assert error_of(TARGET, drawn_from(DRAFT), rule, n_max=3, limits=limits) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("reason", ["stop", "stop_string"])
@pytest.mark.parametrize("end", [0, 1, 2])
def test_an_end_in_the_middle_of_a_draft(rule: Rule, reason: str, end: int) -> None:
    assert error_of(TARGET, drawn_from(DRAFT), rule, end=end, reason=reason, n_max=3) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_p_min_and_n_min_leave_drawn_drafts_lossless(rule: Rule) -> None:
    assert error_of(TARGET, drawn_from(DRAFT, p_min=0.6), rule, n_max=3) < EXACT
    assert error_of(TARGET, drawn_from(DRAFT, p_min=0.6), rule, n_max=3, n_min=2) < EXACT


class Hesitant(DraftModelDrafter):
    """Goes on by the drawn token's probability, as adaptive pacing does."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        return super().draft(limit, lambda count, probability: probability > 0.4)


@pytest.mark.parametrize("rule", RULES)
def test_stopping_after_a_drawn_token_for_its_probability_is_lossless(rule: Rule) -> None:
    assert error_of(TARGET, custom(Hesitant), rule, n_max=3) < EXACT


def custom(kind: type[DraftModelDrafter], claimed: Callable[[Distribution], Distribution] | None = None) -> MakeDrafter:
    def make(dice: Dice) -> DraftModelDrafter:
        model = TextModel(DRAFT.n_vocab)
        drafter = kind(model, "toy", 0.0)
        drafter.begin(PROMPT)
        sampler = ChainSampler(model, DRAFT, PROMPT, dice)
        drafter.draw(Drawing(Misreporting(sampler, claimed) if claimed else sampler, dice))
        return drafter

    return make


def point_masses(tokens: Sequence[int], as_distributions: Sequence[bool] = ()) -> Callable[[Dice], ScriptedDrafter]:
    def propose(text: list[int], limit: int) -> Draft:
        proposed = tuple((token + len(text)) % 3 for token in tokens)[:limit]
        if not as_distributions:
            return Draft(proposed, "n_max")
        flat = Distribution(np.arange(3, dtype=np.int32), np.full(3, 1 / 3))
        alone = [Distribution(np.array([token], np.int32), np.ones(1)) for token in proposed]
        return Draft(proposed, "n_max", distributions=tuple(alone) if all(as_distributions) else (flat,) * len(alone))

    class Whole(ScriptedDrafter):
        def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
            return propose(list(self.text), limit)

    def make(dice: Dice) -> ScriptedDrafter:
        drafter = Whole(propose)
        drafter.begin(PROMPT)
        return drafter

    return make


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tokens", [(0,), (0, 1), (2, 2, 1)])
def test_tokens_that_were_not_drawn_change_no_probability(rule: Rule, tokens: Sequence[int]) -> None:
    target = ToyChain(seed=3, order=9, penalty=0.7, forbids=lambda text, token: token == text[-1])
    for as_distributions in ((), (True,)):
        make = point_masses(tokens, as_distributions)
        assert error_of(target, make, rule, n_max=3) < EXACT


class Machine:
    """A clock by which everything takes a little, and the target's steps much more."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += 0.01
        return self._now

    def step(self) -> None:
        self._now += 1.0


def cascade(dice: Dice) -> CascadeDrafter:
    drafter = CascadeDrafter([NgramDrafter(1, 2), drawn_drafter(DRAFT, dice, p_min=0.45)], clock=Machine())
    drafter.begin(PROMPT)
    return drafter


@pytest.mark.parametrize("rule", RULES)
def test_a_cascade_that_draws_is_lossless(rule: Rule) -> None:
    assert error_of(TARGET, cascade, rule, n_max=3) < EXACT


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("make", [drawn_from(DRAFT), cascade])
def test_adaptive_pacing_is_lossless(rule: Rule, make: MakeDrafter) -> None:
    settings = SpeculationSettings("auto", pacing="adaptive", verification="block")
    learning, clock = SeededDice(1, "draft"), Machine()
    before = AdaptivePacing(settings, clock)
    generate(
        TARGET, make(learning), rule(learning), learning, max_tokens=60, pacing=before, clock=clock, spend=clock.step
    )
    lengths: set[int] = set()
    found: dict[Text, float] = {}
    dice = EveryOutcome()

    def answer() -> list[Round]:
        clock = Machine()
        pacing = AdaptivePacing(settings, clock, before.state)
        return generate(
            TARGET, make(dice), rule(dice), dice, max_tokens=4, pacing=pacing, clock=clock, spend=clock.step
        )

    for probability, rounds in dice.outcomes(answer):
        lengths |= {len(done.drafted) for done in rounds[1:]}
        found[emitted(rounds)] = found.get(emitted(rounds), 0.0) + probability
    assert len(lengths) > 1
    assert largest_error(found, texts_of(TARGET, 4)) < EXACT


# Each of these is a mistake that looks harmless. The tests above would find it.


class DropsTheUnlikely(DraftModelDrafter):
    """p_min on the drawn token itself: what is improbable is left out of drafts, and so comes too seldom there."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = super().draft(limit)
        assert draft.probabilities is not None and draft.distributions is not None
        length = next((i for i, share in enumerate(draft.probabilities) if share < 0.5), len(draft.tokens))
        return Draft(draft.tokens[:length], "p_min", distributions=draft.distributions[:length])


def flattened(found: Distribution) -> Distribution:
    weights = found.probabilities**0.5
    return Distribution(found.ids, weights / weights.sum())


class SaysAnother(DraftModelDrafter):
    """Hands on another distribution than the one it drew from."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = super().draft(limit)
        assert draft.distributions is not None
        return Draft(draft.tokens, draft.stop, distributions=tuple(map(flattened, draft.distributions)))


class TakesTheBest(DraftModelDrafter):
    """Proposes the most probable token as if it had been drawn."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = super().draft(limit)
        assert draft.distributions is not None
        first = draft.distributions[0]
        return Draft((int(first.ids[first.probabilities.argmax()]),), "n_max", distributions=(first,))


class ForgetsItWasDrawn(DraftModelDrafter):
    """Draws, and lets the tokens stand for themselves."""

    def draft(self, limit: int, go_on: GoOn | None = None) -> Draft:
        draft = super().draft(limit)
        return Draft(draft.tokens, draft.stop)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("mistake", [DropsTheUnlikely, SaysAnother, TakesTheBest])
def test_a_draft_that_is_not_what_it_says_is_found(rule: Rule, mistake: type[DraftModelDrafter]) -> None:
    assert error_of(TARGET, custom(mistake), rule) > WRONG


@pytest.mark.parametrize("rule", RULES)
def test_a_drawn_token_may_stand_for_itself(rule: Rule) -> None:
    """Not a mistake, only a waste: whatever chose the token, accepting it with p alone is lossless."""
    assert error_of(TARGET, custom(ForgetsItWasDrawn), rule) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_throwing_short_drawn_drafts_away_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    def apply(self: FixedPacing, draft: Draft, limit: int) -> Draft:
        return draft if len(draft.tokens) >= 2 else Draft((), "n_min")

    monkeypatch.setattr(FixedPacing, "apply", apply)
    assert error_of(TARGET, custom(Hesitant), rule) > WRONG


def test_a_residual_without_the_joint_probability_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification_ratio, "excess", lambda p, q, scale: excess(p, q, 1.0))
    assert error_of(TARGET, drawn_from(DRAFT), VerifyByBlock) > WRONG
    assert error_of(TARGET, drawn_from(DRAFT), VerifyByToken) < EXACT


@pytest.mark.parametrize("rule", RULES)
def test_a_residual_that_is_not_clipped_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    def absolute(p: Distribution, q: Distribution, scale: float) -> object:
        dense = np.zeros(8)
        dense[q.ids] = q.probabilities
        return np.abs(scale * p.probabilities - dense[p.ids])

    monkeypatch.setattr(verification_ratio, "excess", absolute)
    assert error_of(TARGET, drawn_from(DRAFT), rule) > WRONG


@pytest.mark.parametrize("rule", RULES)
def test_a_rejection_that_draws_from_p_is_found(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification_ratio, "excess", lambda p, q, scale: scale * p.probabilities)
    assert error_of(TARGET, drawn_from(DRAFT), rule) > WRONG


def test_more_is_accepted_by_block_than_by_token_than_by_matching() -> None:
    for seed in range(4):
        target, draft = ToyChain(seed=30 + seed), ToyChain(seed=40 + seed)
        by_token, by_block = (mean_accepted(target, draft, rule) for rule in RULES)
        assert by_block >= by_token >= matched(target, draft)
        assert by_block > by_token + 1e-4
        # At least i tokens are kept with the mean of c_i, the capped product of ratios.
        assert by_block == pytest.approx(sum(capped_products(target, draft, 3)), abs=1e-12)


def mean_accepted(target: ToyChain, draft: ToyChain, rule: Rule) -> float:
    dice = EveryOutcome()

    def first_round() -> int:
        answer = generate(target, drawn_drafter(draft, dice), rule(dice), dice, max_tokens=5, n_max=3, num_rounds=2)
        return answer[1].num_accepted

    return sum(probability * count for probability, count in dice.outcomes(first_round))


def each_draft(target: ToyChain, draft: ToyChain, length: int) -> list[tuple[float, list[tuple[float, float]]]]:
    """Every first token and draft after it: probability, and for each place (p, q) of its token."""
    paths: list[tuple[float, Text, list[tuple[float, float]]]] = []
    for token, share in zip(*_lists(target.following(PROMPT)), strict=True):
        paths.append((share, (*PROMPT, token), []))
    for _ in range(length):
        longer = []
        for probability, text, pairs in paths:
            p = dict(zip(*_lists(target.following(text)), strict=True))
            for token, share in zip(*_lists(draft.following(text)), strict=True):
                longer.append((probability * share, (*text, token), [*pairs, (p.get(token, 0.0), share)]))
        paths = longer
    return [(probability, pairs) for probability, _, pairs in paths]


def _lists(found: Distribution) -> tuple[list[int], list[float]]:
    return found.ids.tolist(), found.probabilities.tolist()


def capped_products(target: ToyChain, draft: ToyChain, length: int) -> list[float]:
    means = [0.0] * length
    for probability, pairs in each_draft(target, draft, length):
        joint = 1.0
        for place, (p, q) in enumerate(pairs):
            joint = min(joint * p / q, 1.0)
            means[place] += probability * joint
    return means


def matched(target: ToyChain, draft: ToyChain, length: int = 3) -> float:
    """Mean accepted where drawn tokens are matched with the target's draws."""
    total = 0.0
    for probability, pairs in each_draft(target, draft, length):
        joint = 1.0
        for p, _ in pairs:
            joint *= p
            total += probability * joint
    return total


def test_the_rows_that_a_forbidden_token_leads_to_are_never_asked_for() -> None:
    asked: list[Text] = []

    class Watched(ToyChain):
        def following(self, text: Sequence[int]) -> Distribution:
            asked.append(tuple(text))
            return ToyChain.following(self, text)

    target = Watched(seed=3, forbids=lambda text, token: token == 2)
    for rule in RULES:
        asked.clear()
        assert error_of(target, drawn_from(ToyChain(seed=4)), rule, n_max=3) < EXACT
        assert asked and not any(2 in text for text in asked)
