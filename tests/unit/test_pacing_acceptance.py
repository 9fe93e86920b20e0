"""What is believed of a drafter's tokens."""

from __future__ import annotations

import random

import pytest

from localspec.engine.acceptance_model import FREE_PRIORS, MODEL_PRIORS, AcceptanceModel, cells_of, confidence_cell
from localspec.engine.drafter_belief import DrafterBelief
from localspec.engine.drafting.drafter import Draft

SURE = confidence_cell(0.999)


def judged(model: AcceptanceModel, cell: int, outcomes: str) -> AcceptanceModel:
    for outcome in outcomes:
        model.judge(cell, outcome == "+")
    return model


def test_a_draft_that_is_sure_and_always_wrong_is_found_out_in_a_few_tokens() -> None:
    model = AcceptanceModel(MODEL_PRIORS)
    beliefs = []
    for _ in range(6):
        beliefs.append(model.expected(SURE))
        model.judge(SURE, False)
    assert beliefs[0] > 0.8
    assert beliefs == sorted(beliefs, reverse=True)
    assert model.expected(SURE) < 0.2


def test_a_draft_that_is_right_is_believed_soon() -> None:
    model = judged(AcceptanceModel(MODEL_PRIORS), SURE, "++++++++")
    assert model.expected(SURE) > 0.9


def test_the_confidence_is_calibrated_by_what_came_of_it() -> None:
    rng = random.Random(1)
    model = AcceptanceModel(MODEL_PRIORS)
    for _ in range(600):
        confidence = rng.choice((0.3, 0.9))
        model.judge(confidence_cell(confidence), rng.random() < (0.7 if confidence < 0.5 else 0.8))
    assert model.expected(confidence_cell(0.3)) == pytest.approx(0.7, abs=0.1)
    assert model.expected(confidence_cell(0.9)) == pytest.approx(0.8, abs=0.1)


def test_a_steady_text_looks_steady_and_a_change_shows_within_twelve_tokens() -> None:
    rng = random.Random(4)
    model = AcceptanceModel(MODEL_PRIORS)
    seen = []
    for _ in range(300):
        model.judge(SURE, rng.random() < 0.8)
        seen.append(model.expected(SURE))
    assert max(seen[100:]) - min(seen[100:]) < 0.25
    judged(model, SURE, "------------")
    assert model.expected(SURE) < 0.45


def test_a_change_in_one_cell_moves_the_others() -> None:
    model = AcceptanceModel(MODEL_PRIORS)
    unsure = confidence_cell(0.5)
    judged(model, SURE, "+" * 30)
    before = model.expected(unsure)
    judged(model, SURE, "-" * 8)
    assert model.expected(unsure) < before


def test_the_level_fades_with_the_text() -> None:
    model = judged(AcceptanceModel(MODEL_PRIORS), SURE, "+" * 60 + "-" * 10)
    low = model.expected(SURE)
    model.age(400)
    assert model.expected(SURE) > low + 0.1


def test_without_evidence_nothing_is_certain() -> None:
    model = AcceptanceModel(MODEL_PRIORS)
    assert model.doubted(SURE) == 0.0 == model.level_doubted
    judged(model, SURE, "++++")
    assert 0.5 < model.level_doubted <= 4 / 6
    assert model.doubted(SURE) < model.expected(SURE)


def test_what_is_kept_counts_again() -> None:
    model = judged(AcceptanceModel(MODEL_PRIORS), SURE, "+" * 40)
    again = AcceptanceModel(MODEL_PRIORS, model.cells)
    assert again.expected(SURE) > AcceptanceModel(MODEL_PRIORS).expected(SURE)
    assert AcceptanceModel(MODEL_PRIORS, model.cells[:3]).expected(SURE) == AcceptanceModel(MODEL_PRIORS).expected(SURE)


def test_a_copied_token_has_the_match_that_the_tokens_before_it_would_make() -> None:
    long = cells_of(Draft((1,) * 20, "n_max", match_length=2), True)
    assert long == sorted(long) and len(set(long)) > 2
    assert cells_of(Draft((1,), "n_max", match_length=14), True)[0] == long[12]
    shares = cells_of(Draft((1, 1), "n_max", (1.0, 0.2), match_length=4), True)
    assert FREE_PRIORS[shares[0]] > FREE_PRIORS[shares[1]]


def test_only_tokens_that_were_reached_are_judged() -> None:
    belief = DrafterBelief(False, 0.1)
    draft = Draft((5, 6, 7, 8), "n_max", (0.9, 0.9, 0.9, 0.9))
    belief.judge(draft.tokens, belief.cells(draft), (5, 9))
    assert belief.acceptance.num_judged == pytest.approx(1.0, abs=1.0)
    assert sum(judged for _, judged in belief.acceptance.cells) == pytest.approx(2.0, abs=0.02)
    assert sum(kept for kept, _ in belief.acceptance.cells) == pytest.approx(1.0, abs=0.02)


def test_a_proposal_that_was_not_verified_is_judged_by_the_target_s_own_token() -> None:
    belief = DrafterBelief(True, 0.0)
    draft = Draft((5, 6, 7), "n_max", match_length=6)
    belief.judge(draft.tokens, belief.cells(draft), (5,))
    assert sum(kept for kept, _ in belief.acceptance.cells) == 1.0
    assert belief.mean > 0.5
