from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import pytest

from localspec.engine import adaptive_pacing
from localspec.engine.values import MAX_DRAFT_TOKENS, SpeculationSettings
from localspec.methods import (
    AUTO_N_MAX,
    DRAFTING_SETTINGS,
    METHODS,
    PACINGS,
    WORDS,
    is_adaptive,
    longest_draft,
    needs_draft,
    settings_read_by,
    takes_draft,
)
from localspec.metrics.pacing import PacingStats
from localspec.session.arms import arms_from_settings
from localspec.session.drafting_text import drafter_phrase, resting_phrase, settings_phrase
from localspec.settings import DraftGroup
from tests.made_up_rounds import beliefs


def test_every_setting_is_named() -> None:
    assert {field.name for field in fields(SpeculationSettings)} == {"method", *DRAFTING_SETTINGS}
    assert set(DRAFTING_SETTINGS) <= set(DraftGroup.model_fields)
    assert tuple(WORDS) == METHODS


def test_the_engine_agrees_on_what_is_adaptive() -> None:
    for method, pacing in product(METHODS[1:], PACINGS):
        settings = SpeculationSettings(method, pacing=pacing)
        assert is_adaptive(method, pacing) == adaptive_pacing.is_adaptive(settings)
    assert not is_adaptive("off", "adaptive")
    assert MAX_DRAFT_TOKENS // 2 == AUTO_N_MAX


@pytest.mark.parametrize(
    ("method", "needs", "takes"),
    [("off", 0, 0), ("draft", 1, 1), ("ngram", 0, 0), ("suffix", 0, 0), ("cascade", 1, 1), ("auto", 0, 1)],
)
def test_who_needs_a_draft_model(method: str, needs: int, takes: int) -> None:
    assert (needs_draft((method,)), takes_draft((method,))) == (bool(needs), bool(takes))
    assert needs_draft(("off", method)) == bool(needs)


def test_what_makes_a_difference() -> None:
    assert settings_read_by("off") == ()
    assert settings_read_by("draft") == ("n_max", "n_min", "p_min", "pacing", "verification")
    assert settings_read_by("ngram") == ("n_max", "n_min", "ngram_max", "ngram_min", "pacing", "verification")
    assert "draft_temperature" in settings_read_by("draft", "block")
    assert "draft_temperature" not in settings_read_by("suffix", "block")
    assert "pacing" not in settings_read_by("auto") and "suffix_factor" in settings_read_by("cascade")
    assert settings_read_by("of a later release") == DRAFTING_SETTINGS


@pytest.mark.parametrize(
    ("settings", "phrase"),
    [
        (SpeculationSettings("off"), "off"),
        (SpeculationSettings("draft", 8, 2, 0.75), "draft n_max 8, n_min 2, p_min 0.75"),
        (SpeculationSettings("ngram", 8, 0, 0.75), "ngram n_max 8"),
        (SpeculationSettings("auto"), "auto up to 16"),
        (SpeculationSettings("auto", 24, pacing="adaptive"), "auto up to 24"),
        (
            SpeculationSettings("suffix", pacing="adaptive", suffix_factor=3.0),
            "suffix adaptive up to 4, suffix_factor 3",
        ),
        (
            SpeculationSettings("draft", verification="block", draft_temperature=0.5),
            "draft n_max 4, draft_temperature 0.5, block",
        ),
        (SpeculationSettings("suffix", remembers=True), "suffix n_max 4, with earlier answers"),
    ],
)
def test_an_arm_in_words(settings: SpeculationSettings, phrase: str) -> None:
    assert settings_phrase(settings) == phrase
    draft = DraftGroup(**{field.name: getattr(settings, field.name) for field in fields(settings)})
    assert settings_phrase(draft) == phrase


def test_what_is_in_use_in_words() -> None:
    assert drafter_phrase("draft X", "draft", 4) == "draft X, n_max 4"
    assert drafter_phrase("suffix + draft X", "auto", 4) == "auto: suffix + draft X, up to 16"
    assert (
        drafter_phrase("suffix", "suffix", 6, "adaptive", "block") == "suffix, adaptive up to 6, block at a temperature"
    )
    assert longest_draft("auto", 20) == 20 and longest_draft("draft", 2) == 2


def test_why_it_rests() -> None:
    resting = beliefs(acceptance=0.31, needed=0.58, is_resting=True)
    assert resting_phrase(PacingStats(last=resting)) == "resting: acceptance 0.31, needs 0.58 here"
    assert "cost too much" in resting_phrase(PacingStats(last=replace(resting, needed=1.0)))
    assert resting_phrase(PacingStats(last=replace(resting, is_resting=False))) == ""
    assert resting_phrase(PacingStats()) == ""


def test_arms_of_one_method_are_told_apart_by_what_differs() -> None:
    arms = [
        SpeculationSettings("draft"),
        SpeculationSettings("draft", verification="block"),
        SpeculationSettings("draft", verification="block", draft_temperature=0.5),
        SpeculationSettings("suffix"),
        SpeculationSettings("suffix", pacing="adaptive"),
        SpeculationSettings("auto"),
    ]
    names = [arm.name for arm in arms_from_settings(arms)]
    assert names[0] == "off" and len(set(names)) == 7
    assert names[2:4] == [
        "draft n_max 4 block draft_temperature -1",
        "draft n_max 4 block draft_temperature 0.5",
    ]
    assert names[4:] == ["suffix n_max 4 fixed", "suffix n_max 4 adaptive", "auto"]
