"""Prompt lookup against a naive search, and what a round costs at any text length."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.ngram import NgramDrafter


def naive(text: list[int], n_min: int, n_max: int, limit: int) -> list[int]:
    for length in range(n_max, n_min - 1, -1):
        suffix = text[-length:]
        if len(suffix) < length:
            continue
        for end in range(len(text) - 1, length - 1, -1):
            if text[end - length : end] == suffix:
                copied = list(text)
                for offset in range(limit):
                    copied.append(copied[end + offset])
                return copied[len(text) :]
    return []


@settings(max_examples=200)
@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    later=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), max_size=5),
    n_min=st.integers(1, 3),
    more=st.integers(0, 3),
    limit=st.integers(1, 9),
)
def test_finds_the_longest_and_latest_match(
    text: list[int], later: list[list[int]], n_min: int, more: int, limit: int
) -> None:
    drafter = NgramDrafter(n_min, n_min + more)
    drafter.begin(text)
    for part in [[], *later]:
        drafter.observe(part, 0)
        text = [*text, *part]
        assert list(drafter.draft(limit).tokens) == naive(text, n_min, n_min + more, limit)


def test_a_loop_is_continued_to_any_length() -> None:
    drafter = NgramDrafter(2, 3)
    drafter.begin([1, 2, 3, 1, 2, 3])
    assert drafter.draft(7).tokens == (1, 2, 3, 1, 2, 3, 1)


def test_no_match_says_so() -> None:
    drafter = NgramDrafter(2, 3)
    drafter.begin([1, 2, 3, 4])
    assert (drafter.draft(4).tokens, drafter.draft(4).stop) == ((), "no_match")


def test_a_text_that_goes_on_is_not_indexed_again() -> None:
    drafter = NgramDrafter(2, 3)
    drafter.begin([1, 2, 3, 4])
    drafter.observe([5, 1], 0)
    index = drafter._followers
    drafter.begin([1, 2, 3, 4, 5, 1, 2])
    assert drafter._followers is index
    assert drafter.draft(2).tokens == (3, 4)
    drafter.begin([9, 9])
    assert drafter._followers is not index
    assert drafter.draft(1).tokens == ()


def test_a_round_does_as_much_at_32k_tokens_as_at_1k() -> None:
    class CountingDict(dict[tuple[int, ...], int]):
        num_calls = 0

        def get(self, key, default=None):  # type: ignore[no-untyped-def]
            CountingDict.num_calls += 1
            return super().get(key, default)

        def __setitem__(self, key: tuple[int, ...], value: int) -> None:
            CountingDict.num_calls += 1
            super().__setitem__(key, value)

    counts = []
    for length in (1_000, 32_000):
        drafter = NgramDrafter(2, 4)
        drafter.begin(list(range(length)))
        drafter._followers = {n: CountingDict(entries) for n, entries in drafter._followers.items()}
        CountingDict.num_calls = 0
        drafter.draft(8)
        drafter.observe([1, 2, 3], 0)
        counts.append(CountingDict.num_calls)
    assert counts[0] == counts[1]
