"""Sentences say what the numbers allow, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localspec.engine.events import DifferenceExplained
from localspec.engine.values import Method, SamplingSettings, SpeculationSettings
from localspec.session.arms import PromptCase, build_arms
from localspec.session.comparison import run_comparison
from localspec.session.outcome import ComparisonResult
from localspec.session.verdict import (
    arm_sentence,
    best_arm,
    is_reliable,
    round_costs,
    same_text_sentence,
    settings_phrase,
    summary_sentence,
    verdict_sentences,
)
from tests.scripted_engine import ArmScript, ScriptedEngine

FAST = ArmScript(accepted=(3,), draft_step_s=0.001)
SLOW = ArmScript(accepted=(0,), draft_step_s=0.005, verify_cost=1.5)
EVEN = ArmScript(accepted=(0,), draft_step_s=0.0)


async def compare(
    *methods: Method,
    draft: ArmScript = FAST,
    ngram: ArmScript = FAST,
    num_pairs: int = 3,
    max_tokens: int = 41,
    explained: DifferenceExplained | None = None,
    slowdown: float = 1.0,
) -> ComparisonResult:
    return await run_comparison(
        ScriptedEngine(scripts={"draft": draft, "ngram": ngram}, explained=explained, slowdown=slowdown),
        "chat",
        (PromptCase("one", text="One."),),
        build_arms(methods or ("off", "draft"), SpeculationSettings(n_max=4)),
        SamplingSettings(),
        max_tokens,
        lambda progress: None,
        num_pairs=num_pairs,
    )


async def sentence(draft: ArmScript, num_pairs: int = 3) -> str:
    result = await compare(draft=draft, num_pairs=num_pairs)
    return arm_sentence(result.speculative[0], result.baseline)


async def test_faster() -> None:
    text = await sentence(FAST)
    assert text.startswith("Faster here: 2.88x (2.88 to 2.88) with draft n_max 4. ")
    # 40 tokens in ten rounds of a verification and 4 draft steps of a tenth of a plain one, 3 steps in the last:
    # 13.9 plain steps; 30 of 39 accepted, 0.39 of 3.9 needed; 3.9 of 13.9 for drafting.
    assert "took 1.39 plain steps and gave 4.00 tokens (acceptance 77 %; 10 % would break even)" in text
    assert "28 % of the time went into drafting" in text


async def test_slower_says_leave_it_off() -> None:
    text = await sentence(SLOW)
    assert text.startswith("Slower here: 0.30x")
    assert "leave it off" in text
    assert "acceptance 0 %; 63 % would break even" in text
    assert "Faster" not in text


async def test_a_round_that_cannot_pay() -> None:
    assert "not even full acceptance would pay" in await sentence(ArmScript(accepted=(4,), verify_cost=9.0))


async def test_no_clear_difference() -> None:
    text = await sentence(EVEN)
    assert text.startswith("No clear difference with draft n_max 4: 1.00x (1.00 to 1.00).")


async def test_one_pair_claims_nothing() -> None:
    text = await sentence(FAST, num_pairs=1)
    assert text.startswith("With draft n_max 4, 2.88x in a single pair: too little to judge. A round with drafts took")
    assert "break even" not in text and "acceptance 77 %)" in text


async def test_one_pair_does_not_say_what_would_pay() -> None:
    assert "not even full acceptance" not in await sentence(ArmScript(accepted=(4,), verify_cost=9.0), num_pairs=1)


async def test_two_pairs_claim_nothing_either() -> None:
    text = await sentence(FAST, num_pairs=2)
    assert text.startswith("With draft n_max 4, 2.88x in 2 pairs: too little to judge.")


async def test_figures_of_an_unsteady_machine_claim_nothing() -> None:
    # Every run takes half as long again as the one before.
    result = await compare(draft=ArmScript(accepted=(4,), verify_cost=9.0), slowdown=1.5)
    assert "unusable" in result.notes[0] and not is_reliable(result)
    (text,) = verdict_sentences(result)
    assert text.startswith("With draft n_max 4, 0.") and text.endswith(", which is not to be relied on.")
    fast = await compare(draft=FAST, slowdown=1.5)
    assert fast.speculative[0].verdict == "faster" and best_arm([fast]) is None


async def test_not_run() -> None:
    text = await sentence(ArmScript(off_reason="no draft model is loaded"))
    assert text == "Not run with draft n_max 4: no draft model is loaded."


async def test_nothing_to_copy() -> None:
    result = await compare("off", "ngram", ngram=ArmScript(drafts_every=0))
    text = arm_sentence(result.speculative[0], result.baseline)
    assert text.endswith("Nothing was drafted: the text held nothing to copy.")
    assert round_costs(result.speculative[0], result.baseline) is None


async def test_few_steps_with_drafts_are_mentioned() -> None:
    result = await compare("off", "ngram", ngram=ArmScript(accepted=(4,), drafts_every=4))
    assert "of the steps had anything to check" in arm_sentence(result.speculative[0], result.baseline)


async def test_answers_of_one_round_cannot_be_compared() -> None:
    result = await compare(draft=ArmScript(num_tokens=1))
    assert arm_sentence(result.speculative[0], result.baseline).startswith("No speed to compare")


async def test_every_arm_has_a_sentence_and_the_best_comes_first() -> None:
    sentences = verdict_sentences(await compare("off", "draft", "ngram", draft=SLOW, ngram=FAST))
    assert [sentence.partition(":")[0] for sentence in sentences] == ["Faster here", "Slower here"]
    assert "ngram n_max 4" in sentences[0]


async def test_an_unclear_arm_does_not_hide_a_slow_one() -> None:
    sentences = verdict_sentences(await compare("off", "draft", "ngram", draft=SLOW, ngram=EVEN))
    assert sentences[0].startswith("No clear difference with ngram")
    assert sentences[1].startswith("Slower here: 0.30x")
    assert "leave it off" in sentences[1]


async def test_arms_that_have_not_run_come_last() -> None:
    off = ArmScript(off_reason="no draft model is loaded")
    result = await compare("off", "draft", "ngram", draft=off, ngram=SLOW)
    first, last = verdict_sentences(result)
    assert first.startswith("Slower here")
    assert last == "Not run with draft n_max 4: no draft model is loaded."
    assert summary_sentence(result) == f"{first} {last}"


async def test_an_interrupted_comparison_says_how_many_pairs_it_stands_on() -> None:
    result = replace(await compare(draft=SLOW), num_pairs=5, is_interrupted=True)
    assert verdict_sentences(result)[0].endswith(" That stands on 3 of 5 pairs.")


async def test_the_best_arm_must_be_faster_somewhere_and_on_the_whole() -> None:
    fast = await compare("off", "draft", "ngram", draft=SLOW, ngram=FAST)
    slow = await compare("off", "draft", "ngram", draft=FAST, ngram=SLOW)
    even = await compare("off", "draft", "ngram", draft=EVEN, ngram=EVEN)
    best = best_arm([fast, even])
    assert best is not None and best.name == "ngram"
    assert best_arm([even]) is None
    # 2.88 times 0.30 is under 1.
    assert best_arm([fast, slow]) is None
    assert best_arm([]) is None


async def test_summary_without_anything_to_compare() -> None:
    assert summary_sentence(await compare("off")).startswith("Nothing to compare")
    off = ArmScript(off_reason="recurrent memory")
    assert summary_sentence(await compare(draft=off)) == "Not run with draft n_max 4: recurrent memory."


@pytest.mark.parametrize(
    ("script", "explained", "expected"),
    [
        (FAST, None, "Same text as without drafts."),
        (
            ArmScript(changed_token=7),
            DifferenceExplained(0, 0.0081, 0.02, 0, 0),
            "The text differs from token 8 on: rounding between two almost equal candidates "
            "(gap 0.0081 logits, noise 0.02).",
        ),
        (
            ArmScript(changed_token=7),
            DifferenceExplained(0, 1.5, 0.02, 0, 0),
            "The text differs from token 8 on, and that is an error: the gap between the two best candidates is larger "
            "than rounding can bridge (gap 1.5 logits, noise 0.02).",
        ),
        (ArmScript(off_reason="damaged"), None, ""),
    ],
)
async def test_same_text(script: ArmScript, explained: DifferenceExplained | None, expected: str) -> None:
    result = await compare(draft=script, explained=explained)
    assert same_text_sentence(result.speculative[0].same_text) == expected


def test_settings_phrase_names_what_is_not_default() -> None:
    assert settings_phrase(SpeculationSettings("draft", 8, 2, 0.75)) == "draft n_max 8, n_min 2, p_min 0.75"
    assert settings_phrase(SpeculationSettings("ngram", 8, 0, 0.75)) == "ngram n_max 8"
