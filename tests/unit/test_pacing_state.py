"""What adaptive pacing keeps, and what it makes of texts that are not that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localspec.engine.pacing_state import DrafterState, PacingState, from_text, to_text

STATE = PacingState(
    {1: 0.0123456, 2: 0.02, 5: 0.0333},
    {
        "draft x-q4_0": DrafterState(False, ((3.0, 4.0), (0.0, 0.0)), 0.12, 0.004),
        "suffix": DrafterState(True, ((1.0, 1.5),)),
    },
)


def test_it_comes_back_to_four_digits() -> None:
    again = from_text(to_text(STATE))
    assert again is not None
    assert again.drafters == STATE.drafters
    assert again.step_s == pytest.approx(dict(STATE.step_s), rel=1e-3)
    assert to_text(again) == to_text(STATE)


def test_it_is_one_compact_line() -> None:
    text = to_text(STATE)
    assert "\n" not in text and ": " not in text and json.loads(text)["version"] == 1


@given(st.text(max_size=200))
def test_any_text_is_read_or_ignored(text: str) -> None:
    assert from_text(text) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["version", "step_s", "drafters"]))
def test_any_damage_is_ignored(value: object, key: str) -> None:
    document = json.loads(to_text(STATE))
    document[key] = value
    found = from_text(json.dumps(document))
    assert found is None or found.step_s == {} or found.drafters == {} or value == json.loads(to_text(STATE))[key]


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: document.update(version=2),
        lambda document: document["step_s"].update({"0": 0.1}),
        lambda document: document["step_s"].update({"999": 0.1}),
        lambda document: document["step_s"].update({"3": -1.0}),
        lambda document: document["step_s"].pop("1"),
        lambda document: document["drafters"]["suffix"].update(cells=[[2.0, 1.0]]),
        lambda document: document["drafters"]["suffix"].update(cells=[[True, 1.0]]),
        lambda document: document["drafters"]["suffix"].update(cells=[[0.0, 0.0]] * 100),
        lambda document: document["drafters"]["suffix"].update(step=float("inf")),
        lambda document: document.update(drafters={str(index): {} for index in range(20)}),
    ],
)
def test_values_out_of_range_are_ignored(damage: object) -> None:
    document = json.loads(to_text(STATE))
    assert callable(damage)
    damage(document)
    assert from_text(json.dumps(document)) is None


def test_a_text_of_any_length_is_not_read() -> None:
    assert from_text(to_text(STATE) + " " * 100_000) is None
