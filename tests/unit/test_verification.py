"""The rules of verification one by one: what is emitted, whose it is, and what the dice really do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
import pytest

from localspec.engine.dice import Dice, Purpose, SeededDice, Weights
from localspec.engine.distribution import Distribution, excess, probability_of
from localspec.engine.drafting.drafter import Draft
from localspec.engine.speculative import Round
from localspec.engine.values import FinishReason, Verification
from localspec.engine.verification import Verdict, Verify, verify_exact
from localspec.engine.verification_ratio import VerifyByBlock, VerifyByToken, choose_verify
from tests.verification_kit import (
    EveryOutcome,
    Text,
    ToyChain,
    chi_square_p,
    drawn_drafter,
    emitted,
    generate,
    total_by,
)

RULES: list[Callable[[Dice], Verify]] = [VerifyByToken, VerifyByBlock]
STRICT = 1e-9


def only(*tokens: int) -> Distribution:
    return Distribution(np.array(tokens, np.int32), np.full(len(tokens), 1 / len(tokens)))


class Rows:
    """A sampler over given distributions, which keeps its history."""

    def __init__(self, rows: Sequence[Distribution], fails_at: int = 99) -> None:
        self.rows = rows
        self.accepted: list[int] = []
        self.asked: list[int] = []
        self._fails_at = fails_at

    def sample(self, row: int) -> int:
        token = int(self.rows[row].ids[0])
        self.accept(token)
        return token

    def distribution(self, row: int, prefix: Sequence[int]) -> Distribution:
        self.asked.append(row)
        assert row == len(self.accepted) + len(prefix)
        return self.rows[row]

    def accept(self, token: int) -> None:
        if len(self.accepted) == self._fails_at:
            raise RuntimeError("broken")
        self.accepted.append(token)


class Fixed:
    """Dice of which every event above a probability happens, and which choose the first that has weight."""

    def __init__(self, least: float = 0.0) -> None:
        self._least = least
        self.asked: list[float] = []

    def happens(self, probability: float) -> bool:
        self.asked.append(probability)
        return probability > self._least

    def choose(self, weights: Weights) -> int:
        return int(weights.nonzero()[0][0])


def judge(
    rule: Verify, rows: Sequence[Distribution], draft: Draft, end: int = -1, reason: FinishReason = "stop"
) -> Verdict:
    sampler, verdict, seen = Rows(rows), Verdict(), list[int]()

    def ends(token: int) -> FinishReason | None:
        seen.append(token)
        return reason if token == end else None

    rule(sampler, draft, ends, verdict)
    assert sampler.accepted == verdict.tokens == seen
    assert len(verdict.origins) == len(verdict.tokens)
    return verdict


CERTAIN = [only(token) for token in (1, 2, 3, 4)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("tokens", [(1, 2, 3), (1, 2, 9), (1, 9, 3), (9, 2, 3), (1,), ()])
@pytest.mark.parametrize("end", [-1, 1, 2, 3, 4])
@pytest.mark.parametrize("reason", ["stop", "stop_string"])
@pytest.mark.parametrize("is_drawn", [False, True])
def test_where_nothing_is_left_to_chance_every_rule_is_matching(
    rule: Callable[[Dice], Verify], tokens: tuple[int, ...], end: int, reason: FinishReason, is_drawn: bool
) -> None:
    distributions = tuple(only(token) for token in tokens) if is_drawn else None
    draft = Draft(tokens, "n_max", distributions=distributions)
    wanted = judge(verify_exact, CERTAIN, draft, end, reason)
    assert judge(rule(SeededDice(1, "verification")), CERTAIN, draft, end, reason) == wanted


@pytest.mark.parametrize("rule", RULES)
def test_an_outcome_that_the_target_cannot_emit_is_never_kept(rule: Callable[[Dice], Verify]) -> None:
    rows = [only(1, 2), only(1, 2), only(1, 2)]
    draft = Draft((3, 1), "n_max", distributions=(only(3, 4), only(1, 2)))
    for seed in range(50):
        verdict = judge(rule(SeededDice(seed, "verification")), rows, draft)
        assert verdict.origins == ["correction"] and verdict.tokens[0] in (1, 2)


@pytest.mark.parametrize("rule", RULES)
def test_equal_distributions_are_always_accepted(rule: Callable[[Dice], Verify]) -> None:
    p = Distribution(np.array([1, 5, 7], np.int32), np.array([0.2, 0.7, 0.1]))
    draft = Draft((5, 7, 1), "n_max", distributions=(p, p, p))
    for seed in range(50):
        assert judge(rule(SeededDice(seed, "verification")), [p] * 4, draft).num_accepted == 3


@pytest.mark.parametrize("rule", RULES)
def test_a_residual_of_nothing_is_drawn_from_p(rule: Callable[[Dice], Verify]) -> None:
    """Rounding can reject where p equals q; no weight is then left for any token."""

    class Rejecting(Fixed):
        def happens(self, probability: float) -> bool:
            return False

    p = only(1, 2)
    verdict = judge(rule(Rejecting()), [p, p], Draft((2,), "n_max", distributions=(p,)))
    assert (verdict.tokens, verdict.origins) == ([1], ["correction"])


def test_block_keeps_a_token_that_alone_would_be_rejected() -> None:
    p = Distribution(np.array([1, 2], np.int32), np.array([0.25, 0.75]))
    q = Distribution(np.array([1, 2], np.int32), np.array([0.75, 0.25]))
    draft = Draft((2, 1), "n_max", distributions=(q, q))
    # c: 1 after the first token, however much p exceeds q there, and 1/3 after the second; h of the first is 1.
    dice = Fixed(0.5)
    verdict = judge(VerifyByBlock(dice), [p, p, p], draft)
    assert dice.asked == [pytest.approx(1 / 3), pytest.approx(1.0)]
    assert (verdict.num_accepted, verdict.tokens) == (1, [2, 2])
    backwards = Draft((1, 2), "n_max", distributions=(q, q))
    dice = Fixed(0.5)
    assert judge(VerifyByBlock(dice), [p, p, p], backwards).num_accepted == 2
    # By token the first alone is rejected; jointly both are as probable under p as under q.
    assert dice.asked == [pytest.approx(1.0)]
    assert judge(VerifyByToken(Fixed(0.5)), [p, p, p], backwards).num_accepted == 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("fails_at", [0, 1, 2, 3])
def test_a_sampler_that_fails_leaves_a_verdict_of_what_was_accepted(
    rule: Callable[[Dice], Verify], fails_at: int
) -> None:
    sampler, verdict = Rows(CERTAIN, fails_at), Verdict()
    draft = Draft((1, 2, 3), "n_max", distributions=tuple(CERTAIN[:3]))
    with pytest.raises(RuntimeError, match="broken"):
        rule(SeededDice(1, "verification"))(sampler, draft, lambda token: None, verdict)
    assert verdict.tokens == sampler.accepted == [1, 2, 3][:fails_at]
    assert verdict.num_accepted == fails_at


def test_tokens_that_were_not_drawn_are_judged_one_by_one() -> None:
    sampler, verdict = Rows([only(1, 2), only(1, 2), only(1, 2)]), Verdict()
    VerifyByBlock(Fixed(0.9))(sampler, Draft((1, 2), "n_max"), lambda token: None, verdict)
    assert (sampler.asked, verdict.tokens) == ([0], [2])


@pytest.mark.parametrize("verification", ["exact", "rejection", "block"])
def test_at_temperature_0_every_name_means_matching(verification: Verification) -> None:
    assert choose_verify(verification, 0.0, 1) is verify_exact
    rule = choose_verify(verification, 0.8, 1)
    kinds = {"rejection": VerifyByToken, "block": VerifyByBlock}
    assert rule is verify_exact if verification == "exact" else isinstance(rule, kinds[verification])


def test_parts_of_distributions() -> None:
    p = Distribution(np.array([2, 5, 9], np.int32), np.array([0.5, 0.3, 0.2]))
    q = Distribution(np.array([1, 5, 12], np.int32), np.array([0.4, 0.1, 0.5]))
    assert [probability_of(p, token) for token in (1, 2, 5, 9, 10)] == [0.0, 0.5, 0.3, 0.2, 0.0]
    assert excess(p, q, 1.0).tolist() == pytest.approx([0.5, 0.2, 0.2])
    assert excess(p, q, 0.2).tolist() == pytest.approx([0.1, 0.0, 0.04])
    assert p.probabilities.tolist() == [0.5, 0.3, 0.2]


# What the real dice do: everything else here holds for any.

TARGET, DRAFT = ToyChain(seed=51), ToyChain(seed=52)


def tally(rule: Callable[[Dice], Verify], num_answers: int, draft_purpose: Purpose = "draft") -> Counter[Text]:
    """Counts of the second round's (accepted, emitted tokens), the first token drawn too."""
    counts: Counter[Text] = Counter()
    for seed in range(num_answers):
        drafting = SeededDice(seed, draft_purpose)
        judging, drawing = SeededDice(seed, "verification"), SeededDice(num_answers + seed, "draft")
        drafter = drawn_drafter(DRAFT, drafting)
        answer = generate(TARGET, drafter, rule(judging), drawing, max_tokens=4, num_rounds=2)
        counts[slot(answer)] += 1
    return counts


def slot(answer: Sequence[Round]) -> Text:
    return (answer[1].num_accepted, *emitted(answer))


def wanted(rule: Callable[[Dice], Verify]) -> dict[Text, float]:
    dice = EveryOutcome()
    return total_by(
        dice.outcomes(
            lambda: generate(TARGET, drawn_drafter(DRAFT, dice), rule(dice), dice, max_tokens=4, num_rounds=2)
        ),
        slot,
    )


@pytest.mark.parametrize("rule", RULES)
def test_seeded_dice_give_what_the_rules_say_in_every_slot(rule: Callable[[Dice], Verify]) -> None:
    """Accepted, corrections and bonuses apart, so that errors of one do not vanish among the others."""
    assert chi_square_p(tally(rule, 3000), wanted(rule)) > STRICT


@pytest.mark.parametrize("rule", RULES)
def test_dice_that_the_draft_and_the_verification_share_are_found(rule: Callable[[Dice], Verify]) -> None:
    assert chi_square_p(tally(rule, 3000, "verification"), wanted(rule)) < STRICT


def test_the_chi_square_has_the_tail_of_the_tables() -> None:
    # 3 degrees of freedom: 7.815 at 0.05 and 16.266 at 0.001.
    def p_of(statistic: float) -> float:
        off = (statistic * 2500 / 2) ** 0.5
        counts: dict[Text, int] = {(0,): 2500, (1,): 2500, (2,): round(2500 + off), (3,): round(2500 - off)}
        return chi_square_p(counts, {(key,): 0.25 for key in range(4)})

    assert p_of(7.815) == pytest.approx(0.05, rel=0.05)
    assert p_of(16.266) == pytest.approx(0.001, rel=0.15)
    assert chi_square_p({(0,): 10, (5,): 1}, {(0,): 0.5, (1,): 0.5}) == 0.0


def test_seeded_dice_repeat_themselves_and_no_other() -> None:
    def draws(seed: int, purpose: Purpose) -> list[int]:
        dice = SeededDice(seed, purpose)
        return [dice.choose(np.ones(1000)) for _ in range(20)]

    assert draws(7, "draft") == draws(7, "draft")
    assert len({tuple(draws(seed, purpose)) for seed in (7, 8, 2**32 - 1) for purpose in get_args(Purpose)}) == 6


def test_dice_never_choose_what_has_no_weight() -> None:
    dice = SeededDice(3, "draft")
    weights = np.array([0.0, 1e-300, 0.0, 1.0, 0.0])
    assert {dice.choose(weights) for _ in range(2000)} == {3}
    assert {dice.choose(np.array([0.0, 0.5, 0.0, 0.5, 0.0])) for _ in range(200)} == {1, 3}
    assert not any(dice.happens(0.0) for _ in range(1000))
    assert all(dice.happens(1.0) for _ in range(1000))
