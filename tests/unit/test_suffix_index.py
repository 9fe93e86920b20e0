"""The sorted contexts against a search through the whole text, however the text came and went."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting import suffix_index
from localspec.engine.drafting.suffix_index import SEPARATOR, SuffixIndex

DEPTH = 8

TEXTS = st.lists(st.integers(0, 2), max_size=40)


def common_before(text: list[int], position: int, context: list[int]) -> int:
    """Tokens before a position that agree with a context, both read backwards, at most DEPTH."""
    length = 0
    while length < min(position, len(context), DEPTH) and text[position - 1 - length] == context[-1 - length]:
        length += 1
    return length


def check(index: SuffixIndex, text: list[int], context: list[int], searched: bytes) -> None:
    found = list(index.nearest(searched))
    expected = {position: common_before(text, position, context) for position in range(len(text))}
    assert dict(found) == {position: length for position, length in expected.items() if length}
    assert len(found) == len(dict(found))
    lengths = [length for _, length in found]
    assert lengths == sorted(lengths, reverse=True)


@settings(max_examples=150, deadline=None)
@given(parts=st.lists(st.tuples(TEXTS, st.integers(0, 60)), min_size=1, max_size=5))
def test_finds_every_earlier_place_with_its_length_after_any_growing_and_shrinking(
    parts: list[tuple[list[int], int]],
) -> None:
    index, text = SuffixIndex(DEPTH), list[int]()
    for tokens, length in parts:
        index.extend(tokens)
        text += tokens
        check(index, text, text, index.context())
        index.truncate(length)
        del text[length:]
        assert list(index.text) == text
        check(index, text, text, index.context())


@settings(max_examples=60, deadline=None)
@given(text=TEXTS, other=TEXTS)
def test_finds_the_places_of_another_texts_end(text: list[int], other: list[int]) -> None:
    index, asking = SuffixIndex(DEPTH), SuffixIndex(DEPTH)
    index.extend(text)
    asking.extend(other)
    check(index, text, other, asking.context())


@settings(max_examples=20, deadline=None)
@given(piece=st.lists(st.integers(0, 3), min_size=1, max_size=30), size=st.integers(600, 1500))
def test_sorting_at_once_and_token_by_token_give_one_order(piece: list[int], size: int) -> None:
    text = (piece * size)[:size]
    at_once, singly = SuffixIndex(DEPTH), SuffixIndex(DEPTH)
    at_once.extend(text)
    for token in text:
        singly.extend([token])
    assert [p for block in singly._blocks for p in block] == [p for block in at_once._blocks for p in block]
    assert len(singly._blocks) > 1
    assert list(singly.nearest(singly.context())) == list(at_once.nearest(at_once.context()))


def test_of_contexts_equal_to_the_full_depth_the_latest_comes_first() -> None:
    index = SuffixIndex(2)
    index.extend([1, 2, 3, 9, 1, 2, 3, 8, 1, 2, 3, 7, 1, 2, 3])
    assert list(index.nearest(index.context()))[:3] == [(11, 2), (7, 2), (3, 2)]


class CountingIndex(SuffixIndex):
    """Counts the contexts that are looked at."""

    num_looks = 0

    def _key(self, position: int) -> bytearray:
        self.num_looks += 1
        return super()._key(position)


@pytest.mark.parametrize("kind", ["words", "loop", "all different"])
def test_a_token_costs_a_few_looks_at_100k_tokens_too(kind: str) -> None:
    size = 100_000
    text = {
        "words": [(position * position) % 977 for position in range(size)],
        "loop": [7] * size,
        "all different": list(range(size)),
    }[kind]
    index = CountingIndex()
    index.extend(text)
    assert index.num_looks < size / 50
    index.num_looks = 0
    for token in text[:1000]:
        index.extend([token])
    # About nine within a block, one or two where a block is split.
    assert index.num_looks < 14 * 1000
    assert index.num_bytes < 18 * len(index.text)
    assert max(map(len, index._blocks)) <= 512


def test_ids_of_any_vocabulary_are_kept_as_they_are() -> None:
    index = SuffixIndex(4)
    index.extend([0xFFFFFFFE, 256, 1, 0x01000000, 256, 1])
    assert list(index.nearest(index.context())) == [(3, 2)]
    assert index.text[0] == 0xFFFFFFFE


@settings(max_examples=30, deadline=None)
@given(
    piece=st.lists(st.sampled_from([0, 1, 2, 0xFFFFFFFD, 0xFFFFFFFE, SEPARATOR]), min_size=1, max_size=40),
    rest=st.lists(st.integers(0, 3), max_size=300),
    depth=st.sampled_from([1, 2, 4, 32]),
)
def test_sorting_is_right_for_any_ids_and_depths(piece: list[int], rest: list[int], depth: int) -> None:
    text = (rest + piece * 600)[:800]
    index = SuffixIndex(depth)
    index.extend(text)
    contexts = [tuple(text[max(0, position - depth) : position][::-1]) for position in range(len(text))]
    expected = sorted(range(len(text)), key=lambda position: contexts[position])
    assert [position for block in index._blocks for position in block] == expected


def order(index: SuffixIndex) -> list[int]:
    return [position for block in index._blocks for position in block]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("token"), st.integers(0, 2)),
        st.tuples(st.just("token"), st.integers(0, 2)),
        st.tuples(st.just("many"), st.integers(0, 30)),
        st.tuples(st.just("shorten"), st.integers(0, 6)),
        st.tuples(st.just("search"), st.integers(0, 3)),
        st.tuples(st.just("search elsewhere"), st.integers(0, 3)),
    ),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, is_sorted_at_once=st.booleans())
def test_the_place_that_was_searched_for_is_where_the_next_position_belongs(
    steps: list[tuple[str, int]], is_sorted_at_once: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Blocks so small that short texts fill several and split them.
        patch.setattr(suffix_index, "_FULL_BLOCK", 4)
        patch.setattr(suffix_index, "_NEW_BLOCK", 2)
        patch.setattr(suffix_index, "_BULK_SHARE", 4 if is_sorted_at_once else 1)
        searching, other, text = SuffixIndex(DEPTH), SuffixIndex(DEPTH), list[int]()
        other.extend([0, 1, 2, 0, 1])
        for step, number in steps:
            if step == "token" or step == "many":
                tokens = [number] if step == "token" else [(place * place) % 3 for place in range(number)]
                searching.extend(tokens)
                text += tokens
            elif step == "shorten":
                searching.truncate(max(len(text) - number, 0))
                del text[max(len(text) - number, 0) :]
            else:
                context = (searching if step == "search" else other).context()
                # Whoever searches need not look at everything that there is.
                list(islice(searching.nearest(context), number))
        fresh = SuffixIndex(DEPTH)
        for token in text:
            fresh.extend([token])
        assert list(searching.text) == text
        assert order(searching) == order(fresh)
        check(searching, text, text, searching.context())


def test_a_place_is_searched_for_once_in_a_round() -> None:
    def num_looks(*, is_asked: bool) -> int:
        index = CountingIndex()
        index.extend([(position * position) % 977 for position in range(5000)])
        index.num_looks = 0
        for token in range(100):
            if is_asked:
                next(index.nearest(index.context()), None)
            index.extend([token])
        return index.num_looks

    assert num_looks(is_asked=True) < 1.6 * num_looks(is_asked=False)
