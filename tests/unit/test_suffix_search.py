"""The chosen continuation against one that counts through the whole text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localspec.engine.drafting.suffix_index import SEPARATOR, SuffixIndex
from localspec.engine.drafting.suffix_search import MOST_OCCURRENCES, Bounds, Continuation, best_continuation, novelty


def searched(text: list[int], bounds: Bounds, most: int = 1000) -> Continuation:
    index = SuffixIndex()
    index.extend(text)
    return best_continuation(index, index.context(), bounds, most)


def counted(text: list[int], match_length: int, bounds: Bounds) -> tuple[list[int], list[float]]:
    """Follow the most frequent token after the last `match_length`, by looking at all of the text."""
    suffix = text[-match_length:]
    places = [end for end in range(match_length, len(text)) if text[end - match_length : end] == suffix]
    tokens: list[int] = []
    shares: list[float] = []
    product = 1.0
    while places and len(tokens) < min(bounds.limit, max(int(bounds.factor * match_length), 1)):
        following = [*text, *tokens]
        said = [following[place] for place in places]
        token = max(set(said), key=lambda one: (said.count(one), max(p for p in places if following[p] == one)))
        share = said.count(token) / (len(said) + novelty(match_length))
        product *= share
        if product < bounds.p_min:
            break
        tokens.append(token)
        shares.append(share)
        places = [place + 1 for place in places if following[place] == token]
    return tokens, shares


def score(shares: list[float]) -> float:
    total, product = 0.0, 1.0
    for share in shares:
        product *= share
        total += product
    return total


@settings(max_examples=300, deadline=None)
@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    limit=st.integers(1, 9),
    factor=st.sampled_from([0.5, 1.0, 2.0, 32.0]),
    p_min=st.sampled_from([0.0, 0.1, 0.4, 0.8]),
)
def test_chooses_the_highest_score_over_all_suffixes(text: list[int], limit: int, factor: float, p_min: float) -> None:
    bounds = Bounds(limit, factor, p_min)
    found = searched(text, bounds)
    choices = [(length, *counted(text, length, bounds)) for length in range(1, min(len(text), 33))]
    best = max(score(shares) for _, _, shares in choices) if choices else 0.0
    assert found.score == pytest.approx(best)
    assert found.score == pytest.approx(score(list(found.probabilities)))
    assert len(found.tokens) == len(found.probabilities) <= limit
    if found.tokens:
        tokens, shares = counted(text, found.match_length, bounds)
        assert list(found.tokens) == tokens
        assert list(found.probabilities) == pytest.approx(shares)


def test_a_frequent_short_match_is_judged_by_the_occurrences_that_agree_longest() -> None:
    # Token 1 is followed by 2 a hundred times and by 3 forty times; the latter agree in one more token.
    text = [5, 1, 2] * 100 + [6, 1, 3] * MOST_OCCURRENCES + [6, 1]
    found = searched(text, Bounds(1, 8.0, 0.0), MOST_OCCURRENCES)
    assert found.tokens == (3,)
    assert found.probabilities[0] > 0.95


@pytest.mark.parametrize("period", [1, 2, 5])
def test_a_loop_goes_on_to_any_length(period: int) -> None:
    loop = list(range(period))
    found = searched(loop * 40, Bounds(32, 2.0, 0.1))
    assert list(found.tokens) == (loop * 40)[:32]


def test_one_long_passage_promises_more_than_one_short_word() -> None:
    passage = list(range(100, 120))
    long = searched([*passage, 7, 8, *passage], Bounds(1, 2.0, 0.0))
    short = searched([1, 7, 8, 1], Bounds(1, 2.0, 0.0))
    assert (long.tokens, short.tokens) == ((7,), (7,))
    assert short.score < 0.4 < 0.9 < long.score


def test_what_would_not_fit_the_bounds_is_left_out() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]
    assert searched(text, Bounds(8, 1.0, 0.0)).tokens == (3, 4)
    assert searched(text, Bounds(8, 2.0, 0.0)).tokens == (3, 4, 5, 6)
    unsure = searched(text, Bounds(8, 8.0, 0.5))
    assert (unsure.tokens, unsure.is_unsure) == ((3,), True)


def test_a_separator_is_neither_proposed_nor_crossed() -> None:
    index, asking = SuffixIndex(), SuffixIndex()
    index.extend([1, 2, 3, SEPARATOR, 4, 5, 6, SEPARATOR])
    asking.extend([9, 1, 2])
    assert best_continuation(index, asking.context(), Bounds(8, 8.0, 0.0)).tokens == (3,)
    asking.extend([3])
    assert best_continuation(index, asking.context(), Bounds(8, 8.0, 0.0)).tokens == ()


def test_nothing_is_found_in_no_text_and_where_the_last_token_is_new() -> None:
    for text in ([], [1], [1, 2, 3]):
        found = searched(text, Bounds(4, 2.0, 0.1))
        assert (found.tokens, found.is_found, found.score) == ((), False, 0.0)


class CountingIndex(SuffixIndex):
    """Counts the contexts that are looked at."""

    num_looks = 0

    def _key(self, position: int) -> bytearray:
        self.num_looks += 1
        return super()._key(position)

    def _agrees(self, context: bytes, length: int, position: int) -> bool:
        self.num_looks += 1
        return super()._agrees(context, length, position)


@pytest.mark.parametrize("kind", ["words", "loop", "one long cycle"])
def test_a_draft_looks_at_no_more_places_in_100k_tokens_than_it_may(kind: str) -> None:
    text = {
        "words": [(position * position) % 977 for position in range(100_000)],
        "loop": [7] * 100_000,
        "one long cycle": list(range(1000)) * 100,
    }[kind]
    index = CountingIndex()
    index.extend(text)
    index.num_looks = 0
    found = best_continuation(index, index.context(), Bounds(16, 2.0, 0.1))
    assert len(found.tokens) == 16
    # A bisection within a block, and at most two looks at each place.
    assert index.num_looks <= 2 * MOST_OCCURRENCES + 14
