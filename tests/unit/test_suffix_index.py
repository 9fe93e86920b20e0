"""The sorted contexts against a search through the whole text, however the text came and went."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.suffix_index import SuffixIndex

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
