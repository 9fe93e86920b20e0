"""The suffix drafter: what it keeps between prompts, why a draft ends, and earlier answers beside the text."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.remembered import RememberedAnswers
from localspec.engine.drafting.suffix import SuffixDrafter
from localspec.engine.drafting.suffix_index import SuffixIndex

ANSWER = list(range(50, 90))


class WatchedIndex(SuffixIndex):
    """Remembers how much it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.num_given = 0

    def extend(self, tokens: object) -> None:
        self.num_given += len(tokens)  # type: ignore[arg-type]
        super().extend(tokens)  # type: ignore[arg-type]


def begun(prompt: list[int], p_min: float = 0.1, remembered: RememberedAnswers | None = None) -> SuffixDrafter:
    drafter = SuffixDrafter(2.0, p_min, remembered)
    drafter.begin(prompt)
    return drafter


@pytest.mark.parametrize(
    ("prompt", "num_new"),
    [
        ([1, 2, 3, 4, 5, 1, 2], 1),
        ([1, 2, 3, 4, 5, 1], 0),
        ([1, 2, 3, 9, 9], 2),
        ([1, 2], 0),
        ([7, 8], 2),
        ([], 0),
    ],
)
def test_only_what_differs_from_the_old_text_is_indexed(prompt: list[int], num_new: int) -> None:
    drafter = SuffixDrafter(2.0, 0.1)
    drafter._index = index = WatchedIndex()
    drafter.begin([1, 2, 3, 4])
    drafter.observe([5, 1], 0)
    drafter.draft(1)
    index.num_given = 0
    drafter.begin(prompt)
    assert index.num_given == num_new
    assert list(index.text) == prompt
    fresh = begun(prompt)
    for more in ([], [1], [2], [3, 1, 2]):
        drafter.observe(more, 0)
        fresh.observe(more, 0)
        assert drafter.draft(5) == fresh.draft(5)


def test_a_draft_says_what_it_rests_on_and_why_it_ends() -> None:
    drafter = begun([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3])
    draft = drafter.draft(4)
    assert (draft.tokens, draft.match_length, draft.stop) == ((4, 5, 6, 7), 3, "n_max")
    assert draft.probabilities is not None and len(draft.probabilities) == 4
    assert 0.6 < draft.probabilities[0] < 0.8
    assert (drafter.draft(8).tokens, drafter.draft(8).stop) == ((4, 5, 6, 7, 8, 9), "silent")
    unsure = begun([1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3], p_min=0.2)
    assert (unsure.draft(8).tokens, unsure.draft(8).stop) == ((4, 5, 6, 7), "p_min")
    assert SuffixDrafter(2.0, 0.1).draft(4).stop == "no_match"
    assert begun([1, 2, 3]).draft(4).stop == "no_match"
    assert (begun([1, 2, 1], p_min=0.9).draft(4).tokens, begun([1, 2, 1], p_min=0.9).draft(4).stop) == ((), "p_min")


def test_a_loop_is_read_on() -> None:
    assert begun([4] * 20).draft(12).tokens == (4,) * 12


def test_forgetting_empties_the_text() -> None:
    drafter = begun([1, 2, 3, 1, 2])
    assert drafter.draft(1).tokens == (3,)
    drafter.forget()
    drafter.begin([1, 2])
    assert drafter.draft(1).tokens == ()


def test_an_answer_is_kept_and_copied_from_in_another_text(tmp_path: Path) -> None:
    remembered = RememberedAnswers(tmp_path / "x.answers")
    drafter = begun([1, 2, 3], remembered=remembered)
    drafter.observe(ANSWER, 0)
    drafter.keep_answer()
    drafter.keep_answer()
    assert remembered.num_tokens == len(ANSWER) + 1
    drafter.begin([8, 9])
    drafter.observe(ANSWER[:6], 0)
    draft = drafter.draft(4)
    assert (draft.tokens, draft.match_length) == (tuple(ANSWER[6:10]), 6)
    # Only the answer: nothing of the prompt that came before it.
    assert not {1, 2, 3} & set(remembered.index.text)


def test_of_text_and_earlier_answers_the_higher_score_speaks(tmp_path: Path) -> None:
    remembered = RememberedAnswers(tmp_path / "x.answers")
    remembered.add([1, 2, 3, 4, 60, 61, 62, 63])
    longer_here = begun([9, 1, 2, 3, 4, 70, 71, 72, 73, 9, 1, 2, 3, 4], remembered=remembered)
    assert longer_here.draft(2).tokens == (70, 71)
    longer_there = begun([4, 70, 71, 72, 73, 1, 2, 3, 4], remembered=remembered)
    assert longer_there.draft(2).tokens == (60, 61)


def test_a_fresh_answer_neither_profits_from_earlier_ones_nor_is_kept(tmp_path: Path) -> None:
    remembered = RememberedAnswers(tmp_path / "x.answers")
    remembered.add(ANSWER)
    num_tokens = remembered.num_tokens
    drafter = begun([1], remembered=remembered)
    drafter.forget()
    drafter.begin([1])
    drafter.observe(ANSWER[:10], 0)
    assert drafter.draft(4).tokens == ()
    drafter.keep_answer()
    assert remembered.num_tokens == num_tokens
    drafter.begin([1, 2, *ANSWER[:10]])
    assert drafter.draft(4).tokens == tuple(ANSWER[10:14])


class EagerDrafter(SuffixDrafter):
    """Indexes whatever it hears at once."""

    def observe(self, tokens: Sequence[int], num_accepted: int) -> None:
        super().observe(tokens, num_accepted)
        self._read()


def test_the_text_is_indexed_only_when_something_is_asked_of_it() -> None:
    drafter = SuffixDrafter(2.0, 0.1)
    drafter._index = index = WatchedIndex()
    drafter.begin([1, 2, 3])
    for token in range(20):
        drafter.observe([token], 0)
    assert index.num_given == 3
    drafter.draft(4)
    assert index.num_given == 23
    drafter.observe([1], 0)
    drafter.keep_answer()
    assert index.num_given == 24
    # The next prompt is read as a whole, so what was not asked for is never indexed at all.
    drafter.observe([8, 9], 0)
    drafter.begin([1, 2, 3, 5, 6])
    assert list(index.text) == [1, 2, 3, 5, 6]
    assert index.num_given == 24 + 2


TOKENS = st.lists(st.integers(0, 3), max_size=12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("observe"), TOKENS),
        st.tuples(st.just("observe"), TOKENS),
        st.tuples(st.just("begin"), TOKENS),
        # A further turn of the same conversation: what was said so far, up to a place, and something new.
        st.tuples(st.just("go on"), TOKENS),
        st.tuples(st.sampled_from(["draft", "keep_answer", "forget"]), st.just([])),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(steps=STEPS, remembers=st.booleans(), limit=st.integers(1, 8))
def test_when_the_text_is_indexed_changes_no_draft(
    steps: list[tuple[str, list[int]]], remembers: bool, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        drafters = [
            kind(2.0, 0.1, RememberedAnswers(Path(folder) / f"{kind.__name__}.answers") if remembers else None)
            for kind in (SuffixDrafter, EagerDrafter)
        ]
        text: list[int] = []
        for step, tokens in [*steps, ("draft", [])]:
            if step in ("begin", "go on"):
                text = [*text[: max(len(text) - len(tokens) // 2, 0)], *tokens] if step == "go on" else list(tokens)
            elif step == "observe":
                text += tokens
            for drafter in drafters:
                if step in ("begin", "go on"):
                    drafter.begin(text)
                elif step == "observe":
                    drafter.observe(tokens, 0)
                elif step == "keep_answer":
                    drafter.keep_answer()
                elif step == "forget":
                    drafter.forget()
            if step == "forget":
                text = []
            if step == "draft":
                lazy, eager = (drafter.draft(limit) for drafter in drafters)
                assert lazy == eager
                assert all(list(drafter._index.text) == text for drafter in drafters)
        if remembers:
            first, second = (drafter._remembered for drafter in drafters)
            assert first is not None and second is not None
            assert list(first.index.text) == list(second.index.text)
