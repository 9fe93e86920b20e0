"""The suffix drafter: what it keeps between prompts, why a draft ends, and earlier answers beside the text."""

from __future__ import annotations

from pathlib import Path

import pytest

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
